package run

import (
	"context"
	"testing"

	"weft/orchestrator/lab"
)

const leaves = "{kind: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 3}"

// Every host keeps time, and knows how well, behind a boundary clock or not.
func TestBoundaryClocksKeepTime(t *testing.T) {
	text := "weft: 1\nname: boundary\ntopology: " + leaves + "\nclocks: {sync: ptp, offset: ±10us, for: 120ms, sample: 100us, ptp: {boundary: edge}}\nmeasure: {from: 80ms}\n"
	labs, err := lab.Parse("boundary.yaml", []byte(text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := runLab(context.Background(), labs[0], Options{Engine: "sim", Root: t.TempDir(), LabText: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Clocks
	if c.Error.P99 > 200 || c.Coverage == nil || *c.Coverage < 0.999 {
		t.Errorf("%+v", c)
	}
}
