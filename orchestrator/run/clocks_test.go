package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/results/expect"
	"weft/results/record"
)

const clocksLab = "weft: 1\nname: clocks\ntopology: {kind: star, hosts: 4}\n"

// simulateClocks simulates four hosts with a clocks section and further sections.
func simulateClocks(t *testing.T, text string) (*record.Summary, error) {
	t.Helper()
	return simulateLab(t, clocksLab+text)
}

// mustSimulateClocks is simulateClocks for runs that succeed.
func mustSimulateClocks(t *testing.T, text string) *record.Summary {
	t.Helper()
	return mustSimulate(t, clocksLab+text)
}

func TestUnsynchronizedClocksDrift(t *testing.T) {
	c := mustSimulateClocks(t, "clocks: {sync: none, offset: ±1us, skew: ±100ppm, for: 20ms}\n").Clocks
	if c.Samples != 2001 || c.Error.Max < 500 || c.ConvergedUS != nil || c.Coverage != nil || c.Packets != 0 {
		t.Errorf("%+v", c)
	}
}

func TestProtocolsKeepClocksTogether(t *testing.T) {
	for name, text := range map[string]string{
		"ptp":     "clocks: {sync: ptp, offset: ±100us, for: 60ms}\nmeasure: {from: 30ms}\n",
		"huygens": "clocks: {sync: huygens, offset: ±100us, for: 30ms, huygens: {degree: 3, window: 2ms, pairs: 50}}\nmeasure: {from: 15ms}\n",
	} {
		s := mustSimulateClocks(t, text)
		c := s.Clocks
		if c.Sync != name || c.Error.P99 > 50 || c.ConvergedUS == nil || c.Coverage == nil || *c.Coverage < 0.9999 || c.Packets == 0 || c.Share <= 0 {
			t.Errorf("%s: %+v", name, c)
		}
		if svg, err := os.ReadFile(filepath.Join(s.Run, "plots", "clocks.svg")); err != nil || !bytes.Contains(svg, []byte("<svg")) {
			t.Errorf("%s: no drawing: %v", name, err)
		}
		if len(s.Warnings) > 0 || s.Verified || s.Lacks("verified") == "" {
			t.Errorf("%s: warnings %v, verified %v of no data", name, s.Warnings, s.Verified)
		}
	}
}

// The same lab and seed give the same bytes, with every source of randomness that clocks have.
func TestClocksAreDeterministic(t *testing.T) {
	const text = `clocks: {sync: huygens, offset: ±1us, jitter: 20ns, stalls: 1%, noise: normal 50ns, huygens: {degree: 3, window: 500us, pairs: 20}}
background: {load: 30%}
workload: [{collective: all-to-all, size: 1MB, repeat: 8}]
faults: [{at: 1ms, clock: h2, step: 5us}, {at: 500us, clock: h1, skew: 10ppm, over: 200us}]
`
	a, b := mustSimulateClocks(t, text), mustSimulateClocks(t, text)
	for _, file := range []string{"clocks.parquet", "flows.parquet"} {
		x, errX := os.ReadFile(filepath.Join(a.Run, file))
		y, errY := os.ReadFile(filepath.Join(b.Run, file))
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Errorf("%s differs: %v, %v", file, errX, errY)
		}
	}
	for _, s := range []*record.Summary{a, b} {
		s.Run, s.WallS = "", 0
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if !bytes.Equal(x, y) {
		t.Errorf("summaries differ:\n%s\n%s", x, y)
	}
	if !a.Verified || a.Clocks.Packets == 0 {
		t.Errorf("verified %v, %+v", a.Verified, a.Clocks)
	}
}

// A crashed process leaves the other clocks alone, a step is found, and an asymmetric path causes
// half its asymmetry as error.
func TestClockFaults(t *testing.T) {
	const clocks = "clocks: {sync: huygens, offset: ±1us, for: 40ms, huygens: {degree: 3, window: 2ms, pairs: 50}}\nmeasure: {from: 15ms}\n"
	if c := mustSimulateClocks(t, clocks+"faults: [{at: 20ms, clock: h2, sync: off}]\n").Clocks; c.Error.P99 > 50 || c.Refused == 0 {
		t.Errorf("a crash: %+v", c)
	}
	if c := mustSimulateClocks(t, clocks+"faults: [{at: 20ms, clock: h0, step: 3us}]\n").Clocks; c.Error.Max < 2900 || c.Error.P50 > 50 || c.Resets == 0 {
		t.Errorf("a step: %+v", c)
	}
	c := mustSimulateClocks(t, clocks+"faults: [{at: 0s, link: h1-switch0, delay: 1.4us, toward: h1}]\n").Clocks
	if c.Error.Max < 150 || c.Error.Max > 250 {
		t.Errorf("400 ns of asymmetry: %+v", c)
	}
}

// Servos follow a fault that makes a good oscillator worse, up to their limit. Beyond it the lab is
// rejected. The limit holds between two clocks, one of which is the reference.
func TestClocksWithChangingSkew(t *testing.T) {
	const clocks = "clocks: {sync: %s, preset: ocxo, offset: ±1us, sample: 100us, for: 120ms, huygens: {window: 10ms}}\nmeasure: {from: 80ms}\n"
	if c := mustSimulateClocks(t, fmt.Sprintf(clocks, "ptp")+"faults: [{at: 20ms, clock: h2, skew: 50ppm, over: 20ms}]\n").Clocks; c.Error.Max > 50 {
		t.Errorf("a clock that became 50 ppm faster: %+v", c)
	}
	const over = "faults: [{at: 20ms, clock: h2, skew: 300ppm}, {at: 10ms, clock: h0, skew: -150ppm}, {at: 30ms, clock: h0, skew: -100ppm}]\n"
	_, err := simulateClocks(t, fmt.Sprintf(clocks, "ptp")+over)
	if err == nil || !strings.Contains(err.Error(), "faults.2.skew") || !strings.Contains(err.Error(), "550.01ppm") {
		t.Errorf("550 ppm between two clocks: %v", err)
	}
	if _, err := simulateClocks(t, fmt.Sprintf(clocks, "huygens")+over); err != nil {
		t.Errorf("Huygens has no such limit: %v", err)
	}
}

// Switches that are peer-to-peer transparent clocks measure their links, whatever the hosts follow.
// Their packets are counted.
func TestTransparentSwitchesMeasureTheirLinks(t *testing.T) {
	const run = ", offset: ±10us, for: 60ms, sample: 100us"
	without := mustSimulateClocks(t, "clocks: {sync: ptp, transparent: on"+run+"}\nmeasure: {from: 30ms}\n").Clocks
	for name, more := range map[string]string{
		"alone": "", "servers": ", ptp: {servers: 3}", "control": ", priority: control",
	} {
		c := mustSimulateClocks(t, "clocks: {sync: ptp, transparent: peer"+run+more+"}\nmeasure: {from: 30ms}\n").Clocks
		if c.Error.Max > 50 || c.Coverage == nil || *c.Coverage < 0.9999 || c.Packets < without.Packets+600 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// One of three servers may lie. Two liars leave no majority, and the run says so.
func TestSeveralTimeServers(t *testing.T) {
	const clocks = "clocks: {sync: ptp, offset: ±100us, for: 60ms, ptp: {servers: 3}}\nmeasure: {from: 30ms}\n"
	s := mustSimulateClocks(t, clocks+"faults: [{at: 40ms, clock: h1, lies: 5us}]\n")
	if c := s.Clocks; c.Error.P99 > 50 || c.Falsetickers != 1 || c.NoMajority != 0 || len(s.Warnings) > 0 {
		t.Errorf("one liar: %+v, warnings %q", c, s.Warnings)
	}
	s = mustSimulateClocks(t, clocks+"faults: [{at: 40ms, clock: h1, lies: 5us}, {at: 40ms, clock: h2, lies: -5us}, {at: 50ms, clock: h2, lies: 0s}]\n")
	if c := s.Clocks; c.Error.P99 > 500 || c.NoMajority != 1 || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "without a majority: 1 hosts") {
		t.Errorf("two liars: %+v, warnings %q", c, s.Warnings)
	}
}

func TestRunTooShortForAWindowGivesAWarning(t *testing.T) {
	s := mustSimulateClocks(t, "clocks: {sync: huygens, huygens: {window: 20ms}}\nworkload: [{collective: all-to-all, size: 1MB}]\n")
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "huygens corrected no clock") {
		t.Errorf("warnings %q", s.Warnings)
	}
}

// No clock can see that a path is asymmetric. The run warns that bounds do not hold, unless the lab
// declares the asymmetry.
func TestWrongBoundsGiveAWarning(t *testing.T) {
	for declared, want := range map[string]int{"off": 1, "200ns": 0} {
		s := mustSimulateClocks(t, "clocks: {sync: huygens, offset: ±10us, for: 60ms, sample: 100us, huygens: {degree: 3, window: 5ms, pairs: 100, asymmetry: "+declared+"}}\n"+
			"faults: [{at: 0s, link: h1-switch0, delay: 1.4us, toward: h1}]\nmeasure: {from: 40ms}\n")
		if len(s.Warnings) != want || want > 0 && !strings.Contains(s.Warnings[0], "bounds that clocks stated held for") {
			t.Errorf("asymmetry %s: %v of the bounds held, warnings %q", declared, *s.Clocks.Coverage, s.Warnings)
		}
	}
}

// By default windows are so short that the clocks of a short run are synchronized, too.
func TestWindowsFitTheRun(t *testing.T) {
	s := mustSimulateClocks(t, "clocks: {sync: huygens, offset: ±1ms, sample: 5us}\nworkload: [{collective: all-reduce, size: 10MB}]\nmeasure: {from: 900us}\n")
	if c := s.Clocks; c.Error.P50 > 100 || c.Coverage == nil || *c.Coverage < 0.9999 || len(s.Warnings) > 0 {
		t.Errorf("%+v, warnings %q", c, s.Warnings)
	}
}

func TestImpossibleClocksAreRejected(t *testing.T) {
	for want, text := range map[string]string{
		"perfect clocks have no":   "clocks: {for: 1ms}\nfaults: [{at: 0s, clock: h1, step: 1us}]\n",
		"do not fit":               "clocks: {sync: huygens, for: 1ms, huygens: {window: 10us, pairs: 1000}}\n",
		"leave none to":            "clocks: {sync: ptp, for: 1ms, ptp: {servers: 4}}\n",
		"do not exchange the time": "clocks: {sync: none, for: 1ms}\nfaults: [{at: 0s, clock: h1, lies: 1us}]\n",
		"nothing to run":           "clocks: {sync: none}\n",
		"is not an end of":         "clocks: {sync: none, for: 1ms}\nfaults: [{at: 0s, link: h1-switch0, delay: 2us, toward: h2}]\n",
	} {
		if _, err := simulateClocks(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestNoiseAloneLeavesClocksPerfect(t *testing.T) {
	s := mustSimulateClocks(t, "clocks: {noise: ±400ns}\nworkload: [{collective: incast, ranks: 3, size: 1MB}]\n")
	if s.Clocks.Samples != 0 || s.Clocks.Error.Max != 0 || !s.Verified {
		t.Errorf("%+v", s.Clocks)
	}
}

// The clocks of a network in several partitions do not depend on the order in which the partitions
// run.
func TestClocksOfAPartitionedNetwork(t *testing.T) {
	const text = "weft: 1\nname: parts\ntopology: {kind: leaf-spine, leaves: 8, spines: 2, hosts_per_leaf: 16}\n" +
		"clocks: {sync: huygens, offset: ±1us, sample: 100us, for: 3ms, huygens: {degree: 4, window: 500us, pairs: 20}}\nmeasure: {from: 2ms, queues: off}\n"
	var files [2][]byte
	for i := range files {
		s := mustSimulate(t, text)
		if s.Clocks.Error.P99 > 200 || *s.Clocks.Coverage < 0.999 {
			t.Errorf("%+v", s.Clocks)
		}
		var err error
		if files[i], err = os.ReadFile(filepath.Join(s.Run, "clocks.parquet")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("two runs differ")
	}
}

// Probes that the link of a host cannot carry are rejected, with their rate. A temporary fault may
// leave them less.
func TestProbesBeyondTheLinkRateAreRejected(t *testing.T) {
	// clocks needs 141.6 Mb/s per host for probes.
	const clocks = "clocks: {sync: huygens, offset: ±1us, sample: 1ms, for: 20ms, huygens: {degree: 3, window: 10ms, pairs: 250}}\n"
	for text, want := range map[string]string{
		"faults: [{at: 5ms, link: h2-switch0, rate: 140Mbps}]\n":            "faults.0.rate: probes of Huygens take 141.6Mbps of the link of h2",
		"faults: [{at: 5ms, link: h2-switch0, rate: 140Mbps, for: 10ms}]\n": "",
		"faults: [{at: 5ms, link: h2-switch0, rate: 145Mbps}]\n":            "",
	} {
		if _, err := simulateClocks(t, clocks+text); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	const slow = "clocks: {sync: huygens, for: 20ms, huygens: {pairs: 65000, window: 40ms}}\n"
	_, err := simulateLab(t, strings.Replace(clocksLab, "hosts: 4", "hosts: 4, link: {rate: 1Gbps}", 1)+slow)
	if err == nil || !strings.Contains(err.Error(), "probes take 9.204Gbps of the link of h0, which carries 1Gbps; expected fewer clocks.huygens.pairs") {
		t.Errorf("9 Gb/s of probes on 1: %v", err)
	}
}

// Every host keeps its clock right and knows its error bound, behind a boundary clock or not.
func TestBoundaryClocksKeepTime(t *testing.T) {
	c := mustSimulate(t, "weft: 1\nname: boundary\ntopology: {kind: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 3}\n"+
		"clocks: {sync: ptp, offset: ±10us, for: 120ms, sample: 100us, ptp: {boundary: edge}}\nmeasure: {from: 80ms}\n").Clocks
	if c.Error.P99 > 200 || c.Coverage == nil || *c.Coverage < 0.999 {
		t.Errorf("%+v", c)
	}
}

// A run that ends before measure.from says so of the clocks, too, and a lab that cannot reach it
// says so before it runs. The cost of a protocol that there is none of was not measured, and not
// its errors.
func TestClocksBeforeMeasureFrom(t *testing.T) {
	s := mustSimulateClocks(t, "clocks: {sync: none, offset: ±1us, skew: ±1ppm, for: 1ms}\nmeasure: {from: 1s}\nexpect: [clock_error.p99 < 1us]\n")
	for text, want := range map[string]string{
		"clock_error.p99 < 1us": "clock_error.p99: not measured: the run ended before measure.from (1s)",
		"clock_steps == 0":      "clock_steps: not measured: no synchronization packet was sent",
	} {
		e, err := expect.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Eval(s, expect.Scope{}); got.OK || got.Note != want {
			t.Errorf("%+v, want %q", got, want)
		}
	}
	for _, want := range []string{"will be missed: the run ends after clocks.for, 1ms, before measure.from, 1s, from which on errors of clocks are measured",
		"from which on delays, rates and errors of clocks are measured"} {
		if !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.HasSuffix(w, want) }) {
			t.Errorf("%q lacks %q", s.Warnings, want)
		}
	}
}

// A clock that is stepped and back between two samples was off by the step: the largest errors say
// so, in no distribution, and the clocks have converged at its end.
func TestStepsBetweenSamples(t *testing.T) {
	s := mustSimulate(t, star+"clocks: {sync: none, offset: off, skew: off, wander: off, sample: 5ms, for: 20ms}\n"+
		"faults: [{at: 6ms, clock: h2, step: 10us}, {at: 8ms, clock: h2, step: -10us}]\n")
	c := &s.Clocks
	if c.Samples != 5 || c.Error.Max != 10_000 || c.Reference.Max != 10_000 || c.Stability.MaxTE != 10_000 ||
		c.Error.P99 != 0 || c.RMS != 0 || c.ConvergedUS == nil || *c.ConvergedUS != 8000 {
		t.Errorf("%+v, converged %v, reference %+v", c, c.ConvergedUS, c.Reference)
	}
}
