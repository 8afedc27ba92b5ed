package agent

import (
	"fmt"
	"io"
	"os"

	"weft/internal/control"
	"weft/internal/sandbox"
	"weft/transport/cc/wasm"
)

// Module names the congestion control of a node's transport that is a WebAssembly module. The first
// descriptor beside the configuration is a file with its bytes, and then those of its compiled
// code: a node has no other files of the lab.
type Module struct {
	Hash string // wasm.HashOf of the bytes
	Size int
	// Compiled is the name of the compiled code, and CompiledSize its size; 0: there is none, and
	// the node compiles the module. The orchestrator's program is the node's, which runs its code
	// anyway.
	Compiled     string `json:",omitempty"`
	CompiledSize int    `json:",omitempty"`
}

// MaxModule is the most bytes of a module and its compiled code.
const MaxModule = wasm.MaxBytes + sandbox.MaxCode

// load makes the module known to this process, if it is not yet. It closes fds.
func (m *Module) load(fds []int) error {
	if m == nil {
		return nil
	}
	if _, ok := wasm.Loaded(m.Hash); ok {
		control.CloseAll(fds)
		return nil
	}
	f := os.NewFile(uintptr(fds[0]), "module")
	defer f.Close()
	bytes, code := make([]byte, m.Size), make([]byte, m.CompiledSize)
	r := io.NewSectionReader(f, 0, int64(m.Size+m.CompiledSize))
	for _, to := range [][]byte{bytes, code} {
		if _, err := io.ReadFull(r, to); err != nil {
			return fmt.Errorf("module: %w", err)
		}
	}
	if len(code) > 0 {
		if _, err := wasm.LoadCompiled(bytes, sandbox.Code{Name: m.Compiled, Bytes: code}); err == nil {
			return nil
		}
	}
	if _, err := wasm.Load(bytes); err != nil {
		return fmt.Errorf("module: %w", err)
	}
	return nil
}
