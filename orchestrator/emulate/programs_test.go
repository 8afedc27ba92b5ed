package emulate

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"weft/internal/quiettest"
	"weft/internal/testenv"
	"weft/orchestrator/runtime"
)

// output is what the processes and programs of a lab have written.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{} // receives after a write
}

func newOutput() *output { return &output{wrote: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.wrote <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await returns when the output contains all of the texts, or with the context's error.
func (o *output) await(ctx context.Context, texts ...string) error {
	for _, text := range texts {
		for !strings.Contains(o.String(), text) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-o.wrote:
			}
		}
	}
	return nil
}

// TestPrivProgramsRunBesideTheWorkload checks that a host's programs run during the workload, and
// that those that do not end by themselves end with it.
func TestPrivProgramsRunBesideTheWorkload(t *testing.T) {
	bothNICs(t, checkProgramsRunBesideTheWorkload)
}

func checkProgramsRunBesideTheWorkload(t *testing.T, bypass bool) {
	x := star(3, 1000)
	x.Processes.Bypass = bypass
	x.Programs = []Program{
		{Host: 0, Command: runtime.Command{Args: []string{"sh", "-c", "echo I am $(hostname)"}}},
		{Host: 2, Command: runtime.Command{Args: []string{"sh", "-c", "echo so am I; exec sleep 1000"}}},
	}
	out := newOutput()
	x.Processes.Stderr = out
	wants := []string{"h0: I am h0\n", "h2: so am I\n"}
	x.During = func(ctx context.Context, _ runtime.Cluster) error {
		return out.await(ctx, wants...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), quiettest.Patience)
	defer cancel()
	if _, err := Run(ctx, x); err != nil {
		t.Fatalf("%v; the programs wrote %q, want %q", err, out, wants)
	}
}

// A program that fails ends the run, by the name of its host and with its last words.
func TestPrivAProgramThatFailsEndsTheRun(t *testing.T) {
	testenv.NeedNamespaces(t)
	for want, args := range map[string][]string{
		"the program of h1: exit status 3: no way":    {"sh", "-c", "echo no way; exit 3"},
		"h1: stat /absent: no such file or directory": {"/absent"},
	} {
		x, _ := endlessWorkload()
		x.Programs = []Program{{Host: 1, Command: runtime.Command{Args: args}}}
		if _, err := Run(t.Context(), x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q", err, want)
		}
	}
	x, _ := endlessWorkload()
	x.Programs = []Program{{Host: 1, Command: runtime.Command{Image: "alpine:3"}}}
	if _, err := Run(t.Context(), x); err == nil || !strings.Contains(err.Error(), "--runtime docker") {
		t.Errorf("got %v", err)
	}
}
