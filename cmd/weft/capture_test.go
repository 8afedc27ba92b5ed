package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/regular"
)

// Opening a FIFO that nobody reads is an error, and does not block forever.
func TestCaptureToAFIFOWithoutReader(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := new(app).createCapture(pipe); !errors.Is(err, regular.ErrNoReader) {
		t.Error(err)
	}
}

// Impossible values of --capture are errors before anything runs, with the name and a remedy.
func TestCaptureUsageErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.pcapng")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--capture", "h0"}, []string{"POINT=FILE"}},
		{[]string{"--capture", "=" + file}, []string{"POINT=FILE"}},
		{[]string{"--capture", "h0=-"}, []string{"standard output"}},
		{[]string{"--capture", "h99=" + file}, []string{`"h99"`, "h0->"}},
		{[]string{"--capture", "h0=" + file, "--engine", "sim"}, []string{"simulator", "--engine emu"}},
		{[]string{"--capture", "h0=" + file, "--engine", "both"}, []string{"simulator", "--engine emu"}},
		{[]string{"--capture", "h0=" + file, "--engine", "emu", "--datapath", "kernel"}, []string{"datapath kernel", "datapath fabric"}},
		{[]string{"--capture", "h0=" + file, "--engine", "emu", "--resume"}, []string{"--resume"}},
		{[]string{"--capture", "h0=" + file, "--engine", "emu", "labs/pc4/incast.yaml"}, []string{"works on one run, and these labs are 5"}},
	} {
		var f fake
		code, stdout, stderr := weft(t, &f, append([]string{"run", "labs/quickstart.yaml"}, c.args...)...)
		if code != exitUsage || stdout != "" || len(f.runs) > 0 {
			t.Errorf("%v: code %d, %q, runs %v", c.args, code, stdout, f.runs)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%v: %q does not say %q", c.args, stderr, w)
			}
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was left")
	}
}
