package main

import (
	"path/filepath"
	"strings"
	"testing"

	"weft/results/record"
)

// fourSeeds writes a lab of four points with some more text, and returns its file.
func fourSeeds(t *testing.T, more string) string {
	file := filepath.Join(t.TempDir(), "four.yaml")
	write(t, file, "weft: 1\nname: four\ntopology: {kind: star, hosts: 4}\n"+
		"workload: [{collective: permute, size: 8KB}]\nsweep: {seed: [1, 2, 3, 4]}\n"+more)
	return file
}

// With --strict the last sentence names the worst fidelity of a sweep, whichever point has it.
func TestStrictNamesTheWorstFidelity(t *testing.T) {
	verdicts := []string{record.Degraded, record.Unjudged, record.Invalid}
	says := []string{"is degraded", "was not judged", "is invalid"}
	for worst := range verdicts {
		for at := range uint64(4) {
			then := func(s *record.Summary) error {
				s.Fidelity = &record.Fidelity{Verdict: record.Degraded, Reasons: []string{"late"}}
				if s.Seed == at+1 {
					s.Fidelity.Verdict = verdicts[worst]
				}
				return nil
			}
			code, _, stderr := weft(t, &fake{then: then}, "run", fourSeeds(t, ""), "--engine", "emu", "--strict")
			if code != exitFidelity || !strings.Contains(stderr, "four: the fidelity "+says[worst]) {
				t.Errorf("seed %d is %s, code %d: %s", at+1, verdicts[worst], code, stderr)
			}
		}
	}
}

// An expectation for one engine is skipped across points only where no run of that engine judged
// it.
func TestConditionOfOneEngineIsMetByTheOther(t *testing.T) {
	file := fourSeeds(t, "expect: [drops == 0 when engine.kind == emu]\n")
	for engine, want := range map[string]bool{"both": false, "sim": true, "emu": false} {
		code, stdout, stderr := weft(t, &fake{}, "run", file, "--engine", engine)
		if skipped := strings.Contains(stdout, "no point meets its condition"); code != exitOK || skipped != want {
			t.Errorf("--engine %s: code %d, skipped: %t\n%s%s", engine, code, skipped, stdout, stderr)
		}
	}
}
