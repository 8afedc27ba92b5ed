package agent

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weft/transport/cc/wasm"
)

// Module names the congestion control of a node's transport that is a WebAssembly module. The first
// descriptor beside the configuration is a file with its bytes: a node has no other files of the
// lab.
type Module struct {
	Hash string // wasm.HashOf of the bytes
	Size int
}

// load makes the module known to this process, if it is not yet. It closes fds. Bytes that differ
// from what the hash says are an error.
func (m *Module) load(fds []int) error {
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	if m == nil {
		return nil
	}
	if _, ok := wasm.Loaded(m.Hash); ok {
		return nil
	}
	if len(fds) == 0 || m.Size < 0 || m.Size > wasm.MaxBytes {
		return fmt.Errorf("module of %d bytes with %d descriptors; expected one, and at most %d bytes", m.Size,
			len(fds), wasm.MaxBytes)
	}
	f := os.NewFile(uintptr(fds[0]), "module")
	fds = fds[1:]
	defer f.Close()
	bytes := make([]byte, m.Size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(m.Size)), bytes); err != nil {
		return fmt.Errorf("module: %w", err)
	}
	if wasm.HashOf(bytes) != m.Hash {
		return fmt.Errorf("module: its bytes do not have the hash %.12s", m.Hash)
	}
	if _, err := wasm.Load(bytes); err != nil {
		return fmt.Errorf("module: %w", err)
	}
	return nil
}
