package run

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"weft/orchestrator/experiment"
	"weft/orchestrator/experiment/experimenttest"
	"weft/orchestrator/lab"
	"weft/results/record"
)

const star, faultyLab = experimenttest.Star, experimenttest.FaultyLab

var parse, build = experimenttest.Parse, experimenttest.Build

// runLab builds the experiment of a lab and runs it.
func runLab(ctx context.Context, l *lab.Lab, o Options) (*record.Summary, error) {
	x, err := experiment.Build(l)
	if err != nil {
		return nil, err
	}
	return Run(ctx, x, o)
}

// simulateLab simulates a lab, with settings of the command line, and returns its summary. A failed
// run has a summary, too.
func simulateLab(t *testing.T, text string, set ...string) (*record.Summary, error) {
	t.Helper()
	return runLab(t.Context(), parse(t, text, set...), Options{Engine: "sim", Root: t.TempDir()})
}

// mustSimulate returns the summary of a lab in the simulator. The test fails if the run does.
func mustSimulate(t *testing.T, text string) *record.Summary {
	t.Helper()
	s, err := simulateLab(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A flow alone on the network takes the ideal time, with a slowdown of 1: PC4 does not slow itself
// down.
func TestLoneFlowIsIdeal(t *testing.T) {
	for _, size := range []string{"4B", "4096B", "8KB", "100KB", "10MB"} {
		s := mustSimulate(t, star+"workload: [{collective: incast, ranks: [h1], root: h0, size: "+size+"}]")
		if got := s.Flows.Slowdown.Mean; math.Abs(got-1) > 0.005 {
			t.Errorf("%s alone: slowdown %.4f, want 1", size, got)
		}
		if !s.Verified || s.Network.Drops != 0 {
			t.Errorf("%s alone: verified %t, %d drops", size, s.Verified, s.Network.Drops)
		}
	}
}

// The same lab, seed and version leave the same bytes.
func TestSimulationIsReproducible(t *testing.T) {
	text := star + `
measure: {queues: 1us, cwnd: true}
workload:
  - {collective: all-to-all, size: 1MB, repeat: 2}
  - {collective: all-reduce, size: 1MB, start: previous}
`
	var dirs [2]string
	for i := range dirs {
		s := mustSimulate(t, text)
		dirs[i] = s.Run
	}
	checkSameData(t, dirs)
}

// A network in several partitions gives the same results with one worker and with several.
func TestProcessorsMakeNoDifference(t *testing.T) {
	for _, kind := range []string{"pc4", "strack", "roce"} {
		text := `
weft: 1
name: parts
topology: {kind: leaf-spine, leaves: 8, spines: 4, hosts_per_leaf: 16, oversubscription: 1, link: {rate: 100Gbps, delay: 1us}}
queues: {ecn: {kmin: 25%bdp, kmax: 75%bdp, pmax: 1}}
transport: {kind: ` + kind + `}
measure: {queues: 10us, rates: 10us, cwnd: true}
workload:
  - {collective: permute, size: 100KB}
  - {collective: all-reduce, size: 1MB, start: previous}
`
		var dirs [2]string
		var events [2]int64
		for i, workers := range []int{1, 3} {
			s, err := runLab(t.Context(), parse(t, text), Options{Engine: "sim", Root: t.TempDir(), Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			dirs[i], events[i] = s.Run, s.Events
		}
		if _, parts := build(t, text).Fabric.Partition(); parts < 2 || events[0] != events[1] {
			t.Errorf("%s: %d parts, %d events", kind, parts, events)
		}
		checkSameData(t, dirs)
	}
}

// checkSameData fails unless two run directories hold the same data.
func checkSameData(t *testing.T, dirs [2]string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dirs[0], "*.parquet"))
	if err != nil || len(names) < 5 {
		t.Fatalf("data files %v: %v", names, err)
	}
	for _, name := range names {
		a, err1 := os.ReadFile(name)
		b, err2 := os.ReadFile(filepath.Join(dirs[1], filepath.Base(name)))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if len(a) == 0 || string(a) != string(b) {
			t.Errorf("%s: %d and %d bytes that differ", filepath.Base(name), len(a), len(b))
		}
	}
}

func TestInterruptedRunKeepsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	s, err := runLab(ctx, parse(t, star+"workload: [{collective: all-to-all, size: 10MB}]"), Options{Engine: "sim", Root: t.TempDir()})
	if err == nil || s == nil || s.Status != "interrupted" || s.Error != "enough" || s.Verified {
		t.Fatalf("summary %+v, error %v", s, err)
	}
	if _, err := os.Stat(filepath.Join(s.Run, "summary.json")); err != nil {
		t.Error(err)
	}
}
