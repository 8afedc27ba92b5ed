package labfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A lab reads files of its own folder only, wherever links point.
func TestFilesBesideALab(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "labs")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "traces", "step.csv"), "here")
	write(filepath.Join(top, "secret"), "there")
	if err := os.Symlink("../../secret", filepath.Join(dir, "traces", "link.csv")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(dir, "large"), strings.Repeat("x", maxTrace+1))
	read := beside(filepath.Join(dir, "lab.yaml"))
	if text, err := read("traces/step.csv"); err != nil || string(text) != "here" {
		t.Errorf("%q, %v", text, err)
	}
	for _, name := range []string{"traces/link.csv", "../secret", "traces", "none", "pipe", "large"} {
		if text, err := read(name); err == nil {
			t.Errorf("%s: read %q", name, text)
		}
	}
}
