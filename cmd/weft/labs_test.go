package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/orchestrator/lab"
)

// labs returns the paths of all labs of the repository.
func labs(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("labs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".yaml") {
			out = append(out, path)
		}
		return err
	})
	if err != nil || len(out) < 5 {
		t.Fatalf("%d labs: %v", len(out), err)
	}
	return out
}

func TestEveryLabValidates(t *testing.T) {
	code, stdout, stderr := weft(t, &fake{}, append([]string{"validate"}, labs(t)...)...)
	if code != 0 || strings.Count(stdout, ": ok, ") != len(labs(t)) {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
}

// Editors find the schema in the first line, newcomers the purpose of the lab in the lines below.
func TestEveryLabBeginsWithItsSchemaAndAComment(t *testing.T) {
	for _, path := range labs(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		first, rest, _ := strings.Cut(string(text), "\n")
		schema, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		if !ok {
			t.Errorf("%s begins with %q", path, first)
			continue
		}
		if found := filepath.Join(filepath.Dir(path), schema); found != filepath.Join("labs", "schema.json") {
			t.Errorf("%s names the schema %s, which is %s", path, schema, found)
		}
		if !strings.HasPrefix(rest, "#") {
			t.Errorf("%s does not say what it is for", path)
		}
	}
}

func TestSchemaFileIsWhatWeftPrints(t *testing.T) {
	golden.File(t, "labs/schema.json", string(lab.Schema()))
}

// The README's lab, which has parameters of PC4, also runs with another transport by one flag.
func TestLabInTheREADMEValidates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "readme.yaml")
	write(t, path, labOnPage(t, "README.md"))
	for _, args := range [][]string{{"validate", path}, {"validate", path, "--set", "transport.kind=roce"}} {
		if code, _, stderr := weft(t, &fake{}, args...); code != 0 {
			t.Errorf("%q: exit code %d: %s", args, code, stderr)
		}
	}
}
