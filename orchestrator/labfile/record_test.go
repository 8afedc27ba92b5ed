package labfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/results/store"
)

// A run keeps the files of its lab as they were when the lab was read. What is too large for its
// directory can still be read.
func TestRunsKeepWhatWasRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"lab.yaml", "a", "b"} {
		write(name, "first")
	}
	src, err := Open(filepath.Join(dir, "lab.yaml"), false)
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	src = r.Record(src)
	for range 2 {
		if text, err := src.Read("./a"); err != nil || string(text) != "first" {
			t.Errorf("%q, %v", text, err)
		}
		if text, err := fs.ReadFile(src.Files, "b"); err != nil || string(text) != "first" {
			t.Errorf("%q, %v", text, err)
		}
		write("a", "second")
		write("b", "second")
	}
	if in := r.inputs(src.Name); len(in.Files) != 2 || string(in.Files["a"]) != "first" || in.Left != "" {
		t.Errorf("%+v", in)
	}

	large := strings.Repeat("x", store.MaxInputs)
	write("large", large)
	if text, err := fs.ReadFile(src.Files, "large"); err != nil || string(text) != large {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if in := r.inputs(src.Name); in.Files != nil || in.Left != store.TooLarge {
		t.Errorf("%d files, %q", len(in.Files), in.Left)
	}
}
