// Package golden compares what a test produced with a file under testdata, and rewrites the file when the test
// runs with -update, so that a change of output is reviewed as a diff. It holds pages of documentation to the code that they quote, too. It is for tests only.
package golden

import (
	"flag"
	"os"
	"path/filepath"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite golden files instead of comparing with them")

// T is what a test lends: *testing.T has it.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Check compares got with testdata/<name>.golden of the package under test.
func Check(t T, name, got string) {
	t.Helper()
	compare(t, filepath.Join("testdata", name+".golden"), got, *update)
}

// File is Check for a file named by its path, such as a schema that is checked in beside what it describes.
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
		t.Errorf("%s differs; look at the difference, then run the test with -update if it is right (-want +got):\n%s", path, diff)
	}
}
