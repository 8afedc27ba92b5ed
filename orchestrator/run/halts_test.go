package run

import (
	"strings"
	"testing"

	"weft/orchestrator/lab"
)

// haltedLab is four hosts that exchange data, one of which has a fault.
const haltedLab = `
weft: 1
name: halted
topology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: all-to-all, size: 1MB}]
faults: [{at: 20us, host: h2, FAULT}]
`

func haltedRun(t *testing.T, fault string) (status, text string, warnings []string) {
	t.Helper()
	labs, err := lab.Parse("lab.yaml", []byte(strings.Replace(haltedLab, "FAULT", fault, 1)), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := runLab(t.Context(), labs[0], Options{Engine: "sim", Root: t.TempDir()})
	if s == nil {
		t.Fatal(err)
	}
	return s.Status, s.Error, s.Warnings
}

func TestPausedHostGoesOn(t *testing.T) {
	status, text, warnings := haltedRun(t, "pause: 100us")
	// A host that stands still for 100 us makes others' timers expire, which decides the tail of so short a run.
	if status != "ok" || len(warnings) != 2 || warnings[1] != "h2 stood still from 20us to 120us" ||
		!strings.Contains(warnings[0], "timeout decides the p99") {
		t.Errorf("%s: %s; %q", status, text, warnings)
	}
}

func TestKilledHostIsNamed(t *testing.T) {
	status, text, warnings := haltedRun(t, "kill: true")
	if status != "failed" || !strings.HasPrefix(text, "h2 was killed at 20us; ") || len(warnings) != 0 {
		t.Errorf("%s: %s; %q", status, text, warnings)
	}
}

// A run that ends before its faults says so, since nobody would know otherwise that it was no worse for them.
func TestFaultsAfterTheEndAreTold(t *testing.T) {
	faults := "pause: 1ms}, {at: 1s, host: h3, kill: true}, {at: 2s, link: h0-switch0, down: true"
	status, text, warnings := haltedRun(t, faults)
	want := "faults.1 (at 1s) and faults.2 (at 2s) never happened: the run ended before"
	if status != "ok" || warnings[len(warnings)-1] != want {
		t.Errorf("%s: %s; %q, want %q last", status, text, warnings, want)
	}
}
