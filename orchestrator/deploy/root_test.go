package deploy

import (
	"os"
	"path/filepath"
	"testing"
)

// Weft removes an empty state directory that it created, even after reopening it, and leaves one
// that the user created.
func TestOnlyAStateDirectoryOfWeftIsRemoved(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	made := newStatePath(t)
	for _, path := range []string{own, made} {
		for range 2 { // as deploy and destroy do
			r, err := OpenRoot(path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
		}
		if found, err := Down(t.Context(), path, "absent", Options{}); found || err != nil {
			t.Errorf("%s: found %v, %v", path, found, err)
		}
	}
	if _, err := os.Lstat(own); err != nil {
		t.Errorf("the user's directory: %v", err)
	}
	if _, err := os.Lstat(made); !missing(err) {
		t.Errorf("that of Weft: %v", err)
	}
}
