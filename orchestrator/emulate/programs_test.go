package emulate

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/quiettest"
	"weft/orchestrator/runtime"
)

// heard is what processes and programs of a lab wrote.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) has(what string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(h.text.String(), what)
}

// Programs of hosts run beside the workload; those that do not end by themselves end with it.
func TestPrivProgramsRunBesideTheWorkload(t *testing.T) {
	privileged(t)
	x := star(3, 1000)
	x.Programs = []Program{
		{Host: 0, Command: runtime.Command{Args: []string{"sh", "-c", "echo I am $(hostname)"}}},
		{Host: 2, Command: runtime.Command{Args: []string{"sh", "-c", "echo so am I; exec sleep 1000"}}},
	}
	var out heard
	x.Processes.Stderr = &out
	wants := []string{"h0: I am h0\n", "h2: so am I\n"}
	x.During = func(ctx context.Context, _ runtime.Cluster) error {
		for ctx.Err() == nil && !(out.has(wants[0]) && out.has(wants[1])) {
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), quiettest.Patience)
	defer cancel()
	if _, err := Run(ctx, x); err != nil {
		t.Fatalf("%v; heard %q, expected %q", err, out.text.String(), wants)
	}
}

// A program that fails ends the run, by the name of its host and with its last words.
func TestPrivAProgramThatFailsEndsTheRun(t *testing.T) {
	privileged(t)
	for want, args := range map[string][]string{
		"the program of h1: exit status 3: no way":    {"sh", "-c", "echo no way; exit 3"},
		"h1: stat /absent: no such file or directory": {"/absent"},
	} {
		x, _ := long()
		x.Programs = []Program{{Host: 1, Command: runtime.Command{Args: args}}}
		if _, err := Run(t.Context(), x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q", err, want)
		}
	}
	x, _ := long()
	x.Programs = []Program{{Host: 1, Command: runtime.Command{Image: "alpine:3"}}}
	if _, err := Run(t.Context(), x); err == nil || !strings.Contains(err.Error(), "--runtime docker") {
		t.Errorf("got %v", err)
	}
}
