package run

import (
	"strings"
	"testing"
)

// haltedLab has four hosts that exchange data. FAULT stands for the fault of one of them.
const haltedLab = `
weft: 1
name: halted
topology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: all-to-all, size: 1MB}]
faults: [{at: 20us, host: h2, FAULT}]
`

func TestPausedHostContinues(t *testing.T) {
	s := simulateFault(t, haltedLab, "pause: 100us")
	// The pause of 100 us makes timers of other hosts expire, which decides the tail of so short a
	// run.
	if s.Status != "ok" || len(s.Warnings) != 2 || s.Warnings[1] != "h2 was paused from 20us to 120us" ||
		!strings.Contains(s.Warnings[0], "timeout decides the p99") {
		t.Errorf("%s: %s; %q", s.Status, s.Error, s.Warnings)
	}
}

func TestKilledHostIsNamed(t *testing.T) {
	s := simulateFault(t, haltedLab, "kill: true")
	if s.Status != "failed" || !strings.HasPrefix(s.Error, "h2 was killed at 20us; ") || len(s.Warnings) != 0 {
		t.Errorf("%s: %s; %q", s.Status, s.Error, s.Warnings)
	}
}

// Every packet is delivered, at a stopped host, dropped, lost, cut off or, at the end, on its way,
// whatever stops hosts and whatever they send: nothing counts as delivered that its host did not
// take.
func TestPacketsAtStoppedHostsAreNotDelivered(t *testing.T) {
	const text = `
weft: 1
name: stopped
topology: {kind: star, hosts: 4, link: {rate: 100Gbps, delay: 1us}}
workload: [{collective: all-to-all, size: 200KB}]
clocks: {for: 3ms}
faults: [{at: 5us, host: h3, FAULT}]
expect: [unreceived >= 1, delivered < packets + duplicated]
`
	for _, fault := range []string{
		"pause: 100us", "kill: true", "pause: 20us}, {at: 30us, host: h3, pause: 20us", "pause: 20us}, {at: 10us, host: h2, kill: true",
		"pause: 100us}, {at: 10us, link: h1-switch0, down: 20us", "pause: 100us}, {at: 10us, link: h1-switch0, loss: 10%",
	} {
		for _, set := range [][]string{
			nil, {"queues.buffer=20KB"}, {"transport.kind=roce"}, {"transport.kind=uec", "queues.trim=on"},
			{"clocks.sync=ptp"}, {"background={load: 10%}"},
			{"topology.link.duplicate=10%"},
		} {
			s := simulateFault(t, text, fault, set...)
			n := &s.Network
			left := n.Packets + n.Duplicated - n.Delivered - n.Unreceived - n.Drops - n.Lost - n.Cut
			if n.Unreceived == 0 || left < 0 || left > 100 { // those of the last round trip
				t.Errorf("%s, %q: %d packets are on their way at the end; %+v", fault, set, left, n)
			}
			for i := range s.Expect {
				if s.Expect[i].Missed() {
					t.Errorf("%s, %q: missed %+v", fault, set, s.Expect[i])
				}
			}
		}
	}
	if s := mustSimulate(t, star+"workload: [{collective: all-to-all, size: 200KB}]"); s.Network.Unreceived != 0 {
		t.Errorf("%d packets were not received by hosts that ran", s.Network.Unreceived)
	}
}

// A run that ends before its faults warns that they had no effect.
func TestFaultsAfterTheEndGiveAWarning(t *testing.T) {
	faults := "pause: 1ms}, {at: 1s, host: h3, kill: true}, {at: 2s, link: h0-switch0, down: true"
	s := simulateFault(t, haltedLab, faults)
	want := "faults.1 (at 1s) and faults.2 (at 2s) never happened: the run ended before"
	if s.Status != "ok" || s.Warnings[len(s.Warnings)-1] != want {
		t.Errorf("%s: %s; %q, want %q last", s.Status, s.Error, s.Warnings, want)
	}
}

// A fault is told as unreached by the end of the run, which clocks make later than that of the
// workload. Whatever the kind of the fault.
func TestFaultsHappenUntilTheEndOfTheRun(t *testing.T) {
	const text = `
weft: 1
name: late
topology: {kind: star, hosts: 4}
clocks: {sync: ptp, offset: off, for: 10ms}
workload: [{flows: [{from: h1, to: h2, size: 1MB}]}]
faults: [{at: AT, FAULT}]
`
	for _, fault := range []string{
		"link: h1-switch0, down: 1ms", "link: h1-switch0, loss: 1%", "link: h1-switch0, rate: 1Gbps",
		"link: h1-switch0, delay: 2us", "link: h1-switch0, bit_errors: 1e-9", "host: h3, pause: 1us", "host: h3, kill: true",
		"clock: h1, step: 1us", "clock: h1, skew: 1ppm", "clock: h1, sync: off, for: 1ms", "clock: h1, lies: 1us",
	} {
		for at, unreached := range map[string]bool{"3ms": false, "20ms": true} {
			s, err := simulateLab(t, strings.NewReplacer("AT", at, "FAULT", fault).Replace(text))
			if err != nil || s.Status != "ok" {
				t.Errorf("%s at %s: %v, %+v", fault, at, err, s)
				continue
			}
			if s.LabTimeUS > 1000 || s.End() != 10_000 {
				t.Errorf("%s at %s: the workload ended at %v us, the run at %v us", fault, at, s.LabTimeUS, s.End())
			}
			if told := strings.Contains(strings.Join(s.Warnings, "\n"), "never happened"); told != unreached {
				t.Errorf("%s at %s: %q, want unreached %v", fault, at, s.Warnings, unreached)
			}
		}
	}
}
