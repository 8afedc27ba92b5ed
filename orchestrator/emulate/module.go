package emulate

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/nodeimg/agent"
	"weft/transport/cc/wasm"
)

// moduleFile returns a sealed file with the bytes of a module and its compiled code, for the nodes,
// and its description. Both are nil if there is no module.
func moduleFile(m *wasm.Module) (*os.File, *agent.Module, error) {
	if m == nil {
		return nil, nil, nil
	}
	ref := &agent.Module{Hash: m.Hash, Size: len(m.Bytes)}
	code, ok := m.Code()
	if ok {
		ref.Compiled, ref.CompiledSize = code.Name, len(code.Bytes)
	}
	f, err := Sealed("module", m.Bytes, code.Bytes)
	if err != nil {
		return nil, nil, err
	}
	return f, ref, nil
}

// Sealed returns a file in memory with some bytes, which cannot change.
func Sealed(name string, all ...[]byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, os.NewSyscallError("memfd_create", err))
	}
	f := os.NewFile(uintptr(fd), name)
	for _, b := range all {
		if err == nil {
			_, err = f.Write(b)
		}
	}
	if err == nil {
		const seals = unix.F_SEAL_SEAL | unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}
