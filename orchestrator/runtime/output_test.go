package runtime_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"weft/internal/testenv"
	"weft/orchestrator/runtime"
)

// Output runs a program of this machine in the network namespace of a process, here the test
// itself, and returns what it prints. A missing program and one that fails give different errors.
func TestPrivOutput(t *testing.T) {
	self := &runtime.Proc{Name: "self", PID: os.Getpid()}
	if out, err := self.Output(t.Context(), "weft-absent"); !errors.Is(err, exec.ErrNotFound) || out != nil {
		t.Errorf("an absent program: %q, %v", out, err)
	}
	testenv.NeedNamespaces(t)
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := self.Output(t.Context(), "readlink", "/proc/self/ns/net"); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%q, %v, want %s", out, err, want)
	}
	var status *exec.ExitError
	if out, err := self.Output(t.Context(), "sh", "-c", "echo words; exit 3"); !errors.As(err, &status) || string(out) != "words\n" {
		t.Errorf("a program that fails: %q, %v", out, err)
	}
}
