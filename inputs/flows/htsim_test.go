package flows

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"weft/collectives/graph"
)

// TestMatricesOfHTSim loads all matrices below WEFT_HTSIM, a checkout of htsim, and compares their
// flows and bytes with what a search for "N->M ... size S" finds.
func TestMatricesOfHTSim(t *testing.T) {
	dir := os.Getenv("WEFT_HTSIM")
	if dir == "" {
		t.Skip("WEFT_HTSIM names no checkout of htsim")
	}
	form := regexp.MustCompile(`(?m)^\d+->\d+ .*size (\d+)`)
	files, flows, total := 0, 0, int64(0)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".cm" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		l, err := Parse(path, bytes.NewReader(text))
		if filepath.Base(path) == "a2a.cm" { // its header has other numbers than there are: htsim refuses it
			if err == nil {
				t.Error(path + " was not refused")
			}
			return nil
		}
		if err != nil {
			t.Error(err)
			return nil
		}
		g, err := l.Graph()
		if err != nil {
			t.Error(err)
			return nil
		}
		_, got, err := graph.Compile(g)
		if err != nil {
			t.Error(err)
			return nil
		}
		found := form.FindAllSubmatch(text, -1)
		want := int64(0)
		for _, m := range found {
			n, _ := strconv.ParseInt(string(m[1]), 10, 64)
			want += n
		}
		if len(l.Flows) != len(found) || int64(got) != want {
			t.Errorf("%s: %d flows of %d bytes; the text has %d of %d", path, len(l.Flows), got, len(found), want)
		}
		files, flows, total = files+1, flows+len(found), total+want
		return nil
	})
	if err != nil || files == 0 {
		t.Fatal(files, err)
	}
	t.Logf("%d files, %d flows, %d bytes", files, flows, total)
}
