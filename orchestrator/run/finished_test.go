package run

import (
	"testing"

	"weft/orchestrator/lab"
	"weft/results/record"
	"weft/results/store"
)

// Points of one sweep may come to the same settings. None takes the run of another, whose numbers a
// reader of the sweep would find at the wrong point; a run made alone, or in a sweep of other
// settings, is that of any point.
func TestSameRunIsOfNoOtherPoint(t *testing.T) {
	for _, c := range []struct {
		of, point map[string]any
		same      bool
	}{
		{nil, map[string]any{"seed": int64(1)}, true},
		{map[string]any{"seed": 2.0}, nil, true},
		{map[string]any{"a": "auto", "seed": 1.0}, map[string]any{"a": "auto", "seed": int64(1)}, true},
		{map[string]any{"a": "auto", "seed": 1.0}, map[string]any{"a": "ring", "seed": int64(1)}, false},
		{map[string]any{"size": 1e9}, map[string]any{"size": int64(1_000_000_000), "b": true}, true},
	} {
		m := &record.Manifest{Status: record.OK, Program: store.Program(), Engine: "sim", Point: c.of}
		if got := sameRun(m, &lab.Lab{Point: c.point}, "auto"); got != c.same {
			t.Errorf("the run of %v is that of %v: %t", c.of, c.point, got)
		}
	}
}
