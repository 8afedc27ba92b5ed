package main

import (
	"path/filepath"
	"strings"
	"testing"

	"weft/results/record"
	"weft/results/store"
)

// Commands that read a finished sweep report the expectations across points that it missed, as weft
// run did, whatever name the sweep is given by.
func TestReadersTellWhatASweepMissed(t *testing.T) {
	for name, c := range map[string]struct{ rest, expects string }{
		"several points": {"sweep: {workload.0.size: [64KB, 128KB]}",
			"fct.p99[workload.0.size=128KB] <= fct.p99[workload.0.size=64KB]"},
		"one point": {"sweep: {seed: [1]}", "mean(fct.p99[seed=*]) < 1ns"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, "s.yaml", "weft: 1\nname: s\ntopology: {kind: star, hosts: 4}\nworkload: [{collective: permute, size: 64KB}]\n"+
				c.rest+"\nexpect: [\""+c.expects+"\"]\n")
			for _, out := range []string{"base", "new"} {
				code, _, words := weft(t, orchestrated{}, "run", "s.yaml", "--engine", "sim", "--out", out, "--list", out+".json")
				if code != exitMissed {
					t.Fatal(code, words)
				}
			}
			sweeps, err := filepath.Glob("new/s/sweep-*")
			if err != nil || len(sweeps) != 1 {
				t.Fatal(sweeps, err)
			}
			for base, changed := range map[string]string{"base": "new", "base/s": "new/s", "base.json": "new.json"} {
				got := results(t, exitMissed, "compare", base, changed, "--fail-if", "worse")
				for _, want := range []string{"NEW is not ok: s: across points: missed 1 of 1\n",
					"NEW fails: 1 sweep of NEW missed expectations across points\n"} {
					if !strings.Contains(got, want) {
						t.Errorf("%s: %s does not say %q", changed, got, want)
					}
				}
				results(t, exitOK, "compare", base, changed, "--fail-if", "worse", "--accept", "missed")
			}
			for _, args := range [][]string{{"show", "s", "--out", "new"}, {"show", sweeps[0]}, {"show", sweeps[0], "--json"},
				{"ls", "--failed", "--out", "new"}, {"ls", "s", "--json", "--out", "new"}} {
				if got := results(t, exitOK, args...); !strings.Contains(strings.ReplaceAll(got, `\u003c`, "<"), c.expects) ||
					!strings.Contains(got, "missed") {
					t.Errorf("%q does not tell what was missed: %s", args, got)
				}
			}
			// Nothing is known of a sweep that was killed before it judged its points.
			s, err := store.ReadSweep(sweeps[0])
			if err != nil {
				t.Fatal(err)
			}
			s.Expect = nil
			for i := range s.Points {
				s.Points[i].Status = record.Running
			}
			if err := store.WriteSweep(sweeps[0], *s); err != nil {
				t.Fatal(err)
			}
			got := results(t, exitMissed, "compare", "base", "new", "--fail-if", "worse", "--partial", "--accept", "missed")
			if !strings.Contains(got, "1 sweep of NEW running") {
				t.Errorf("a sweep that has not ended: %s", got)
			}
		})
	}
}
