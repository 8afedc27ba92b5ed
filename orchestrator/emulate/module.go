package emulate

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/nodeimg/agent"
	"weft/transport/cc/wasm"
)

// moduleFile returns a file with the bytes of a module that nobody can change, for the nodes. Nil
// if there is no module.
func moduleFile(m *wasm.Module) (*os.File, error) {
	if m == nil {
		return nil, nil
	}
	fd, err := unix.MemfdCreate("module", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("module: %w", os.NewSyscallError("memfd_create", err))
	}
	f := os.NewFile(uintptr(fd), "module")
	_, err = f.Write(m.Bytes)
	if err == nil {
		const seals = unix.F_SEAL_SEAL | unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("module: %w", err)
	}
	return f, nil
}

// moduleRef returns what nodes are told about a module.
func moduleRef(m *wasm.Module) *agent.Module {
	if m == nil {
		return nil
	}
	return &agent.Module{Hash: m.Hash, Size: len(m.Bytes)}
}
