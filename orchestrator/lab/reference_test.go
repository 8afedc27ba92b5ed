package lab

import (
	"strings"
	"testing"

	"weft/internal/golden"
)

// docs/lab-reference.md is what the schema says; `make reference` writes it anew.
func TestReferenceIsCurrent(t *testing.T) {
	golden.File(t, "../../docs/lab-reference.md", string(Reference()))
}

// Every default of the table is shown with its source.
func TestReferenceHasEveryDefault(t *testing.T) {
	text := string(Reference())
	for path, d := range defaults {
		found := false
		for line := range strings.Lines(text) {
			key, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
			found = found || (key == path || matches(path, key)) && strings.Contains(line, "`"+d.text+"`")
		}
		if !found {
			t.Errorf("the default of %s is not shown", path)
		}
	}
}
