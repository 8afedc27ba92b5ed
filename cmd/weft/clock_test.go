package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/results/record"
)

// runClock runs weft clock in the simulator on a lab of three hosts.
func runClock(t *testing.T, text string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lab.yaml")
	write(t, file, "weft: 1\nname: clocks\ntopology: {kind: star, hosts: 3}\n"+text)
	args = append([]string{"clock", file, "--engine", "sim", "--out", t.TempDir()}, args...)
	return weft(t, orchestrated{}, args...)
}

func TestClockSkipsTheWorkload(t *testing.T) {
	code, stdout, stderr := runClock(t, `clocks: {sync: ptp, offset: ±1us}
workload: [{collective: all-to-all, size: 1MB}]
measure: {rates: 10us, from: 25ms}
expect: [flows > 0, clock_coverage >= 99%]
`, "--for", "30ms", "--json")
	var s record.Summary
	if err := json.Unmarshal([]byte(stdout), &s); err != nil || code != exitOK {
		t.Fatalf("code %d, %v\n%s", code, err, stderr)
	}
	if s.Flows.Count != 0 || s.LabTimeUS != 30_000 || s.Clocks.Samples != 3001 || len(s.Expect) != 2 ||
		!s.Expect[0].OK || !s.Expect[1].Skipped || s.Expect[1].That != "flows > 0" {
		t.Errorf("%+v", s)
	}
	if st := s.Clocks.Stability; st == nil || st.Hosts != 2 || len(st.At) != 3 || st.At[2].TauUS != 1000 || st.At[2].MTIE <= 0 || len(st.Classes) != 3 {
		t.Errorf("stability %+v", st)
	}
	if _, err := os.Stat(filepath.Join(s.Run, "plots", "clocks.svg")); err != nil {
		t.Error(err)
	}
}

func TestClockPrintsTheTable(t *testing.T) {
	for sync, span := range map[string]string{"ptp": "100 ms", "huygens": "20 ms", "none": "100 ms"} {
		code, stdout, stderr := runClock(t, "clocks: {sync: "+sync+", offset: ±1us, sample: 100us, huygens: {degree: 2, window: 2ms, pairs: 20}}\n")
		if code != exitOK || !strings.Contains(stdout, "between hosts") || !strings.Contains(stdout, "lab time  "+span) {
			t.Errorf("%s: code %d\n%s%s", sync, code, stdout, stderr)
		}
	}
}

func TestClockUsageErrors(t *testing.T) {
	for want, c := range map[string][]string{
		"perfect clocks leave nothing": {"clocks: {sync: perfect}\n"},
		"off leaves nothing":           {"clocks: {sync: none, sample: off}\n"},
		"expected a time":              {"clocks: {sync: none}\n", "--for", "soon"},
	} {
		code, _, stderr := runClock(t, c[0], c[1:]...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: code %d, %q", c, code, stderr)
		}
	}
}
