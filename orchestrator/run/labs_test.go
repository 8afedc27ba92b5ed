package run

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"weft/internal/quiettest"
	"weft/internal/sample"
	"weft/orchestrator/lab"
)

// The labs of the baselines and of the PC4 paper meet their expectations in the simulator.
func TestLabsMeetTheirExpectations(t *testing.T) {
	if quiettest.Race {
		t.Skip("half an hour under the race detector, of an engine whose own tests run under it")
	}
	takesSeconds := map[string]bool{"b3-dcqcn-fairness": true, "b7-permutation": true, "b9-hpcc-public": true,
		"pc4-queueing-open": true}
	var files []string
	for _, pattern := range []string{"../../labs/baselines/*.yaml", "../../labs/pc4/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, names...)
	}
	for _, file := range sample.Of(t, 4, files...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			read := func(beside string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(file), beside)) }
			labs, err := lab.Parse(file, text, lab.Options{Read: read})
			if err != nil {
				t.Fatal(err)
			}
			if takesSeconds[labs[0].Name] {
				t.Skip("takes seconds; make baselines or weft paper pc4 runs it")
			}
			for _, l := range labs {
				s, err := runLab(context.Background(), l, Options{Engine: "sim", Root: t.TempDir()})
				if err != nil {
					t.Fatalf("%v: %v", l.Point, err)
				}
				for _, e := range s.Expect {
					if !e.OK {
						t.Errorf("%v: %s: %s", l.Point, e.That, e.Note)
					}
				}
				if len(s.Expect) == 0 {
					t.Errorf("%v expects nothing", l.Point)
				}
			}
		})
	}
}
