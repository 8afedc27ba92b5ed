package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Collect and wait name damaged files of points and do not call their sweep ok without a word. If a
// summary is damaged, the verbs of sweeps say how the point is run again, and that works.
func TestDamagedPointsOfASweep(t *testing.T) {
	d := newWorkspace(t)
	id := d.submit(d.writeLab("lab.yaml", "weft: 1\nname: damaged\ntopology: {kind: star, hosts: 4}\n"+
		"workload: [{collective: permute, size: 8KB}]\nsweep: {seed: [1, 2]}\n"), "--engine", "sim")
	d.run("sweep", "wait", id).wantCode(0)
	run := filepath.Join(d.dir, "runs", "damaged", strings.TrimSuffix(strings.TrimPrefix(id, "sweep-"), "-sim")+"-2")
	if err := os.Truncate(filepath.Join(run, "flows.parquet"), 100); err != nil {
		t.Fatal(err)
	}
	d.run("sweep", "collect", id).wantCode(0).wantPrinted("damaged after the run: flows.parquet")
	d.run("sweep", "wait", id).wantCode(0).wantOnStderr("seed=2: files", "damaged after the run: flows.parquet")
	for verb, code := range map[string]int{"wait": 1, "status": 0} {
		for _, file := range []string{"summary.json", "manifest.json"} {
			text, err := os.ReadFile(filepath.Join(run, file))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(filepath.Join(run, file), 0); err != nil {
				t.Fatal(err)
			}
			d.run("sweep", verb, id).wantCode(code).wantPrinted("failed on local", "seed=2: ", file, "runs the point again")
			if err := os.WriteFile(filepath.Join(run, file), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Truncate(filepath.Join(run, "summary.json"), 0); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"collect", "resume"} {
		d.run("sweep", verb, id).wantCode(1).wantOnStderr("summary.json", "and weft sweep resume "+id+" runs the point again")
	}
	if err := os.Rename(run, filepath.Join(d.dir, "away")); err != nil {
		t.Fatal(err)
	}
	d.run("sweep", "resume", id).wantCode(0)
	d.run("sweep", "wait", id).wantCode(0)
	d.run("sweep", "collect", id).wantCode(0)
}
