package run

import (
	"strings"
	"testing"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
)

const trained = `name,collective,size,compute,jitter,group,stride
grads,all-reduce,64KB,10us,5us,4,
moe,all-to-all,64KB,,,2,4
again,all-reduce,64KB,,,4,
`

// The collectives of a trace share connections, as those of a communicator do, and every step is
// verified.
func TestTraceRuns(t *testing.T) {
	labs, err := lab.Parse("lab.yaml", []byte(eight+"workload: [{trace: step.csv, repeat: 3}]"), lab.Options{
		Read: func(string) ([]byte, error) { return []byte(trained), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	x, err := experiment.Build(labs[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := 8 + 8; len(x.Conns) != want { // two rings of four, four pairs in both directions
		t.Errorf("%d connections, want %d", len(x.Conns), want)
	}
	s, err := runLab(t.Context(), labs[0], Options{Engine: "sim", Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Verified || len(s.Collectives) != 3 {
		t.Fatalf("verified %t, %+v", s.Verified, s.Collectives)
	}
	c := s.Collectives[0]
	if c.Label != "grads" || c.Groups != 2 || c.Ranks != 4 || c.Repeat != 3 || !(c.FastestUS > 0) || c.TimeUS < c.FastestUS || c.Checked != 3*8*16_000 {
		t.Errorf("%+v", c)
	}
	if p := s.Collectives[1]; p.Groups != 4 || p.Ranks != 2 || !(p.BusBWGbps > 0) {
		t.Errorf("%+v", p)
	}
	// Computing is not part of a collective's time, but part of the run's.
	if s.LabTimeUS < 30 || c.TimeUS > 40 {
		t.Errorf("lab time %g us, all-reduce %g us", s.LabTimeUS, c.TimeUS)
	}
}

func TestErrorsNameTheCollective(t *testing.T) {
	_, err := simulateLab(t, eight+`
workload: [{collective: all-reduce, ranks: {groups: 2, size: 4}, size: 1MB}]
transport: {kind: roce, roce: {tries: 2}}
faults: [{at: 0s, link: h5-switch0, down: true}]
`)
	if err == nil || !strings.Contains(err.Error(), "item 0, group ") {
		t.Errorf("error %v; want one that names the group", err)
	}
}
