package store

import (
	"os"
	"strings"
	"testing"
)

// A binary of the Go linker has a build ID, other files have none.
func TestBuildID(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	if id := buildID(f); len(id) < 40 {
		t.Errorf("build id %q", id)
	}
	if id := buildID(strings.NewReader("package store")); id != nil {
		t.Errorf("build id of a text: %q", id)
	}
}
