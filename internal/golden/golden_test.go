package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that records its failures.
type recorder struct{ said []string }

func (r *recorder) Helper() {}

func (r *recorder) Name() string { return "TestRecorder/sub" }

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func TestCompare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "x.golden")
	var r recorder
	compare(&r, path, "one\n", false)
	if len(r.said) != 1 || !strings.Contains(r.said[0], "-update") {
		t.Errorf("a missing file: %q", r.said)
	}
	r = recorder{}
	compare(&r, path, "one\n", true)
	compare(&r, path, "one\n", false)
	if len(r.said) != 0 {
		t.Errorf("after an update: %q", r.said)
	}
	compare(&r, path, "two\n", false)
	if len(r.said) != 1 || !strings.Contains(r.said[0], "one") || !strings.Contains(r.said[0], "two") {
		t.Errorf("a difference: %q", r.said)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "one\n" {
		t.Errorf("comparing changed the file: %q, %v", b, err)
	}
}

func TestUpdateSaysWhyItCannot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var r recorder
	compare(&r, filepath.Join(file, "x.golden"), "one\n", true)
	if len(r.said) == 0 {
		t.Error("nothing was said")
	}
}

func TestCheckReadsTestdata(t *testing.T) {
	Check(t, "hello", "hello\n")
	File(t, "testdata/hello.golden", "hello\n")
}

func TestTableNamesItsSubjectAndCommand(t *testing.T) {
	Table(t, "table", "Squares of small numbers.", "n  square\n2       4\n3       9\n")
}
