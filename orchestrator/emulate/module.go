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
	fd, err := unix.MemfdCreate("module", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("module: %w", os.NewSyscallError("memfd_create", err))
	}
	f := os.NewFile(uintptr(fd), "module")
	_, err = f.Write(m.Bytes)
	if err == nil {
		_, err = f.Write(code.Bytes)
	}
	if err == nil {
		const seals = unix.F_SEAL_SEAL | unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, fmt.Errorf("module: %w", err)
	}
	return f, ref, nil
}
