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

// labs lists every lab of the repository.
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

// Editors find the schema by the first line, and a newcomer what the lab is for by the lines below.
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

func TestLabInTheREADMEValidates(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	block, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the README shows no lab")
	}
	path := filepath.Join(t.TempDir(), "readme.yaml")
	write(t, path, block)
	if code, _, stderr := weft(t, &fake{}, "validate", path); code != 0 {
		t.Error(stderr)
	}
}

// The README's lab, which has parameters of PC4, runs with another transport by one flag.
func TestLabInTheREADMEHasAnotherTransportByAFlag(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ := strings.Cut(rest, "```")
	write(t, path, example)
	if code, _, stderr := weft(t, &fake{}, "validate", path, "--set", "transport.kind=roce"); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
