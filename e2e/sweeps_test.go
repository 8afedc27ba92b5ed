package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
)

// Processes that sweep one lab at the same time leave a sweep each, whose runs are theirs alone.
func TestSweepsOfProcessesAtOnce(t *testing.T) {
	const processes, points = 4, 3
	d := newWorkspace(t)
	d.writeLab("lab.yaml", "weft: 1\nname: sweep\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: "+
		"permute, size: 8KB}]\nsweep: {seed: [1, 2, 3]}\n")
	var started []*process
	for i := range processes {
		started = append(started, d.start("run", "lab.yaml", "--engine", "sim", "--json", "--set",
			fmt.Sprintf("workload.0.size=%dKB", 10*(i+1))))
	}
	taken := map[string]bool{}
	for _, p := range started {
		for _, s := range p.wait().wantCode(0).summaries() {
			if taken[s.Run] {
				t.Errorf("two runs have %s", s.Run)
			}
			taken[s.Run] = true
		}
	}
	sweeps, err := filepath.Glob(filepath.Join(d.dir, "runs", "sweep", "sweep-*"))
	if err != nil || len(sweeps) != processes || len(taken) != processes*points || len(d.runs()) != processes*points {
		t.Fatalf("sweeps %q, %d runs in %d directories, %v; want %d and %d", sweeps, len(taken), len(d.runs()), err,
			processes, processes*points)
	}
	for _, dir := range sweeps {
		all := d.run("results", "show", dir, "--json").wantCode(0).summaries()
		for i, s := range all {
			if s.Seed != uint64(i+1) || s.Flows.Bytes != all[0].Flows.Bytes {
				t.Errorf("%s: run %d is of seed %d and %d bytes, beside %d", dir, i, s.Seed, s.Flows.Bytes,
					all[0].Flows.Bytes)
			}
		}
		if len(all) != points {
			t.Errorf("%s has %d runs", dir, len(all))
		}
	}
}
