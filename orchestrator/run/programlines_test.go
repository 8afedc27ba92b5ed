package run

import (
	"regexp"
	"testing"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/summary"
)

// Metrics are read from all that a program prints, on whichever stream: what is shown and kept.
func TestMetricsOfBothStreams(t *testing.T) {
	x := &experiment.Experiment{}
	x.Programs = []experiment.Program{{
		Program: &lab.Program{Args: []string{"x"}, Metrics: regexp.MustCompile(`(?P<lat_us>\d+) us`)}, Names: []string{"h0", "h1"},
	}}
	var spec emulate.Experiment
	shown := 0
	all, err := newPrograms(x, &spec, t.TempDir(), func(string, bool, []byte) { shown++ })
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range []string{"5 us", "900 us", "7 us", "1000 us"} {
		spec.Groups[0].Line(i/2, i%2 == 1, []byte(line), 0)
	}
	var out summary.Outcome
	all.report(&emulate.Outcome{}, &out)
	if err := all.close(); err != nil {
		t.Fatal(err)
	}
	if len(out.Metrics) != 4 || out.Metrics[1].Value != 900 || out.Metrics[3].Value != 1000 || shown != 4 {
		t.Errorf("%d lines are shown, and the metrics are %+v", shown, out.Metrics)
	}
}
