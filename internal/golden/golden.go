// Package golden compares what a test produced with a file under testdata, and rewrites the file
// when the test runs with -update, so that a change of output is reviewed as a diff. Output that a
// user sees is compared as it is (Check, File); measurements go below a title and column headings
// (Table). It is for tests only.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files instead of comparing with them")

// T is the part of *testing.T that this package uses.
type T interface {
	Name() string
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Check compares got with testdata/<name>.golden of the package under test.
func Check(t T, name, got string) {
	t.Helper()
	compare(t, filepath.Join("testdata", name+".golden"), got, *update)
}

// Table compares rows of measurements with testdata/<name>.golden. Two lines come before them in
// the file: what the rows show, and the command that makes the file again. The rows begin with
// headings that name each column and its unit.
func Table(t T, name, title, rows string) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	head := fmt.Sprintf("# %s\n# Regenerate: go test ./%s -run '^%s$' -update\n\n", title, folder(t), test)
	Check(t, name, head+rows)
}

// folder returns the folder of the package under test, from the top of the module.
func folder(t T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("%v", err)
	}
	for rel := ""; ; {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return rel
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatalf("no go.mod above the test's working directory")
			return ""
		}
		dir, rel = parent, path.Join(filepath.Base(dir), rel)
	}
}

// File is Check for a file named by its path, such as a schema that is checked in beside what it
// describes.
func File(t T, path, got string) {
	t.Helper()
	compare(t, path, got, *update)
}

func compare(t T, path, got string, rewrite bool) {
	t.Helper()
	if rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("%v", err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatalf("%v", err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to make it", err)
		return
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; look at the difference, then run the test with -update if it is right (-want +got):\n%s",
			path, diff)
	}
}
