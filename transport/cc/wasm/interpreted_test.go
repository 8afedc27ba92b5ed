package wasm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"weft/internal/sandbox"
)

// The modules of examples/cc answer the same, and remember the same, whether they are compiled or
// interpreted, and take the same fuel.
func TestInterpretedIsCompiled(t *testing.T) {
	for _, name := range []string{"aimd", "swift", "dcqcn"} {
		file := filepath.Join(t.TempDir(), name+".wasm")
		build := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file,
			"weft/examples/cc/"+name)
		build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", build.Args, err, out)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var both [2]*Sender
		for i := range both {
			m, err := load(t.Context(), text, sandbox.Options{Memory: memoryPages, Start: startFuel, Interpret: i == 1})
			if err != nil {
				t.Fatal(err)
			}
			defer m.program.Close()
			both[i] = newSender(m, Params{Values: defaults(t, m)}, probeLink)
		}
		for i := range 2000 {
			a, b := both[0].probe(i, i%500 > 400), both[1].probe(i, i%500 > 400)
			left, right := both[0].last.running.Fuel(), both[1].last.running.Fuel()
			if a != b || left != right || !bytes.Equal(both[0].state, both[1].state) || both[0].err != nil {
				t.Fatalf("%s, event %d: compiled %+v, %d left, %v; interpreted %+v, %d left, %v", name, i, a, left, both[0].err,
					b, right, both[1].err)
			}
		}
	}
}
