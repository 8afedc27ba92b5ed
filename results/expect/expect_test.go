package expect

import (
	"errors"
	"math"
	"strings"
	"testing"

	"weft/internal/fuzztest"
	"weft/results/record"
)

// incastSummary returns the summary of eight flows that share a link fairly.
func incastSummary() *record.Summary {
	return &record.Summary{
		Engine: "emu", Fidelity: &record.Fidelity{Verdict: "ok", LatenessP99NS: 1},
		Verified: true, Dilation: 1, BaseRTTUS: 4, LabTimeUS: 1000,
		RTT:         record.Quantiles{Mean: 5.8, P50: 5.9, P99: 7, Max: 9},
		Flows:       record.Flows{Count: 8, Bytes: 8e6, FCT: record.Quantiles{Mean: 640, P50: 650, P99: 660, Max: 661}, Slowdown: record.Quantiles{P99: 8.2, Max: 8.25}},
		Collectives: []record.Collective{{Ranks: 8, Bytes: 1e6, TimeUS: 661, AlgBWGbps: 12.1, BusBWGbps: 96.8, Checked: 16}, {}},
		Network: record.Network{Packets: 4000, Delivered: 4000, DataPackets: 2000, CEMarks: 3, CCM: &record.CCM{NeedsCC: 1}, QueueDelay: record.Quantiles{Mean: 1.9}, MaxQueue: 65536,
			Lost: 7, Cut: 2, Pauses: 5, PausedUS: 12.5, After: &record.After{Drops: 1, MaxQueue: 9000}, QueueEventDelay: &record.Quantiles{P99: 4.5}},
		Clocks: record.Clocks{
			Sync: "huygens", Samples: 100, Error: record.Quantiles{Mean: 5, P50: 4, P99: 21, Max: 30}, P999: 28, Share: 0.003,
			Reference: &record.Quantiles{P99: 19}, Bound: &record.Quantiles{P50: 40}, Coverage: new(0.9999), ConvergedUS: new(900.0), Steps: 1, Resets: 2, Refused: 3,
			Stability: &record.Stability{MaxTE: 30, Constant: 2, At: []record.Averaged{{TauUS: 100, ADEV: 1e-6, MDEV: 1e-6, TDEV: 1, MTIE: 20}}},
		},
		Metrics: []record.Metric{{Name: "time_us", Count: 3, Min: 2, Mean: 4, P50: 3, Max: 7, Values: []float64{3, 7, 2}},
			{Name: "goodput_gbps", Count: 1, P50: 98, Values: []float64{98}}},
		Rates:    &record.Rates{Conns: 8, TotalGbps: 96, MinGbps: 11, MeanGbps: 12, MaxGbps: 13, Jain: 0.99},
		Plateaus: []record.Plateau{{Conns: 2, Jain: 0.99, TotalGbps: 96, SettledUS: new(float64)}},
		Acks:     &record.Acks{Connections: 8, FirstMarked: 7, MarkUS: 9, MarkRTTUS: 8.5, DelayUS: 17},
	}
}

func labScope() Scope {
	settings := map[string]string{
		"transport.pc4.target_qtime": "2us", "topology.link.rate": "100Gbps", "topology.mtu": "4096B",
		"workload.0.ranks": "8", "workload.1.ranks": "all", "queues.buffer": "5bdp", "workload.2.start": "0",
	}
	return Scope{Items: 2, Metrics: []string{"time_us", "goodput_gbps", "step_ms"}, Setting: func(path string) (string, bool) { v, ok := settings[path]; return v, ok }}
}

func TestHolds(t *testing.T) {
	for _, text := range []string{
		"fct_slowdown.p99 <= 1.10 * flows",
		"metric.time_us.max == 7us", "metric.time_us.1 > metric.time_us.0", "metric.time_us.2 == 0.002ms",
		"metric.time_us.count == 3", "metric.goodput_gbps.p50 >= 98% * topology.link.rate", "metric.step_ms.count == 0",
		"verified == true", "verified", "verified != false",
		"drops == 0", "ce_marks > 2", "ce_marks >= 3", "ce_marks < 4", "ce_marks != 4",
		"abs(rtt.mean - (base_rtt + transport.pc4.target_qtime)) <= 10% * (base_rtt + transport.pc4.target_qtime)",
		"rtt.mean <= 1.1 * (base_rtt + 2us)", "base_rtt == 4000ns", "base_rtt == .004ms", "base_rtt == 4e-6s", "base_rtt == 4µs", "base_rtt == 4μs",
		"min(rtt.p50, rtt.p99, rtt.max) == 5.9us", "max(1, 2, 3) == 3", "min(3, 2) == 2",
		"collective.0.busbw > 90% * topology.link.rate", "collective.0.algbw == 12.1Gbit", "collective.0.ranks == ranks",
		"collective.0.time < 1ms", "collective.0.wrong == 0", "collective.0.checked == 16", "collective.0.bytes == 1MB",
		"max_queue == 64KiB", "bytes / lab_time == 64Gbps", "topology.mtu / 100Gbps < 1us",
		"-1 < 0", "--1 == 1", "1 - 2 - 3 == -4", "2 * (3 + 4) == 14", "7 / 2 == 3.5", "0.1 + 0.2 == 0.3",
		"fidelity == ok", "unfinished == 0", "flows == workload.0.ranks", "queue_delay.mean < 2us", "lab_time == 1ms",
		"packets == 2 * data_packets", "delivered == packets", "retransmits + timeouts == 0", "dilation == 1", "true",
		"sqrt(16) == 4", "sqrt(max_queue / 4B) == 128", "8Gbps * 1us == 1KB", "1 == 100%",
		"clock_error.p99 <= 30ns", "clock_error.p999 == 28ns", "clock_reference.p99 == 19ns", "clock_bound.p50 == 40ns", "clock_coverage > 99.9%",
		"clock_converged < 1ms", "clock_share < 1%", "clock_steps == 1", "clock_resets == 2", "clock_refused == 3",
		"lost == 7", "cut == 2", "pauses > 4", "paused == 12.5us", "queue_event_delay.p99 == 4.5us",
		"jain > 0.9", "goodput >= 90% * topology.link.rate", "flow_rate.min == 11Gbps", "flow_rate.max - flow_rate.min < flow_rate.mean",
	} {
		e, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := e.Eval(incastSummary(), labScope()); !got.OK || got.Note != "" || got.That != text {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

func TestNotesOfMisses(t *testing.T) {
	broken := incastSummary()
	broken.Fidelity = &record.Fidelity{Verdict: "degraded"}
	for _, c := range []struct {
		text string
		got  float64
		note string
	}{
		{"fct_slowdown.p99 <= flows", 8.2, "got 8.2, expected <= 8"},
		{"rtt.mean < 5us", 5.8, "got 5.8us, expected < 5us"},
		{"fct.p99 < 100us", 660, "got 660us, expected < 100us"},
		{"verified == false", 1, "got true, expected == false"},
		{"collective.0.busbw > 100Gbps", 96.8, "got 96.8Gbps, expected > 100Gbps"},
		{"bytes > 1GB", 8e6, "got 8MB, expected > 1GB"},
		{"fidelity == ok", 0, "got degraded, expected == ok"},
		{"false", 0, "false"},
		{"flows / drops > 1", 0, "division by zero"},
		{"sqrt(drops - 4) > 1", 0, "square root of a negative number"},
		{"collective.1.time > 1us", 0, "collective.1.time: the run ended before this collective was measured"},
		{"1us * 1us > 2us * 2us", 1, "got 1, expected > 4"},
		{"metric.step_ms.max < 1s", 0, "metric.step_ms.max: no line that a program printed has it"},
		{"metric.time_us.3 < 1s", 0, "metric.time_us.3: the summary has 3 values of it, the first is .0"},
		{"lab_time > 5000s", 1000, "got 1ms, expected > 5000s"},
	} {
		e, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := e.Eval(broken, labScope())
		if got.OK || math.Abs(got.Got-c.got) > 1e-9 || got.Note != c.note {
			t.Errorf("%s: got %+v, want %v and %q", c.text, got, c.got, c.note)
		}
	}
}

// Nobody looked at perfect clocks: no reason may say what they did.
func TestClocksThatNobodyLookedAt(t *testing.T) {
	sum := incastSummary()
	sum.Clocks = record.Clocks{}
	for _, name := range Names() {
		e, _ := findEntry(name)
		if !strings.HasPrefix(name, "clock_") || strings.Contains(name, ".N.") {
			continue
		}
		if _, err := e.get(sum); err == nil || !strings.Contains(err.Error(), "of clocks was not measured") {
			t.Errorf("%s: %v; want that it was not measured", name, err)
		}
	}
	sum.Clocks.Samples = 9
	converged, _ := findEntry("clock_converged")
	if _, err := converged.get(sum); err == nil || err.Error() != "at the end the clocks differed by more than clocks.limit" {
		t.Errorf("clocks that were measured and never converged: %v", err)
	}
}

// Nobody judges the fidelity of a simulation. An emulation without a verdict was not judged either.
func TestFidelityThatNobodyJudged(t *testing.T) {
	for engine, says := range map[string]string{
		"sim": "when engine.kind == emu", "emu": "the summary has no verdict", "": "the summary has no verdict",
	} {
		for _, line := range []string{"fidelity == ok", "fidelity != invalid"} {
			sum := incastSummary()
			sum.Engine, sum.Fidelity = engine, nil
			got := All([]string{line}, sum, labScope())[0]
			if got.OK || !got.Unmeasured || !strings.HasPrefix(got.Note, "fidelity: not judged: ") || !strings.Contains(got.Note, says) {
				t.Errorf("%s in engine %q: %+v", line, engine, got)
			}
		}
	}
}

// A word on the left side is kept, and then the number is 0.
func TestWords(t *testing.T) {
	e, err := Parse("fidelity != invalid")
	if err != nil {
		t.Fatal(err)
	}
	sum := incastSummary()
	sum.Fidelity = &record.Fidelity{Verdict: "degraded"}
	if got := e.Eval(sum, labScope()); !got.OK || got.Word != "degraded" || got.Got != 0 || got.Want != nil {
		t.Errorf("got %+v", got)
	}
}

// A run that did nothing meets no expectation: without flows there is no fast flow.
func TestUnmeasuredIsMissed(t *testing.T) {
	nothing := &record.Summary{Flows: record.Flows{Count: 3, Unfinished: 3}}
	for _, text := range []string{
		"fct.p99 < 10us", "fct_slowdown.max < 2", "rtt.mean < 10us", "queue_delay.p99 < 1us", "collective.0.time < 1s", "ranks < 99",
		"jain < 2", "goodput < 1Gbps", "queue_event_delay.p99 < 1s",
	} {
		got := All([]string{text}, nothing, Scope{})[0]
		if got.OK || got.Note == "" {
			t.Errorf("%s: got %+v", text, got)
		}
	}
}

func TestErrorPositions(t *testing.T) {
	for _, c := range []struct {
		text   string
		column int
		says   string
	}{
		{"", 1, "expected a number or a name"},
		{"flows", 1, "compare it with something"},
		{"flows ==", 9, "found the end of the line"},
		{"flows = 1", 7, "is not a comparison"},
		{"flows ! 1", 7, "is not a comparison"},
		{"flows == 1 == 1", 12, "one comparison"},
		{"flows == 1 1", 12, "expected an operator"},
		{"rtt.mean < 5 us", 12, "5 us has a space; write 5us"},
		{"rtt.mean < 5us ms", 16, "expected an operator"},
		{"flows < 5 flows", 11, "expected an operator"},
		{"flows == (1 + 2", 16, "for the ( in column 10"},
		{"flows == )", 10, "expected a number or a name"},
		{"flows == #", 10, "unexpected character"},
		{"flows == é", 10, "unexpected character 'é'"},
		{"flow == 1", 1, "did you mean flows?"},
		{"marks > 1", 1, "did you mean ce_marks?"},
		{"busbw > 1Gbps", 1, "did you mean collective.0.busbw?"},
		{"queue.p99 < 1us", 1, "did you mean queue_delay.p99?"},
		{"queue < 1us", 1, "did you mean queue_delay.p99?"},
		{"FCT.p50 < 1us", 1, "did you mean fct.p50?"},
		{"queue.depth < 1us", 1, "unknown name"},
		{"fct.p98 < 1us", 1, "did you mean fct.p9"},
		{"zzzzzzzzzzzzzz < 1us", 1, "unknown name"},
		{"fct.p99 < 10", 9, "< between a time and a plain number"},
		{"fct.p99 < 10KB", 9, "a time and a size"},
		{"fct.p99 < 10parsecs", 11, `"parsecs" is not a unit`},
		{"flows < 1..2", 9, "is not a number"},
		{"flows < .", 9, "is not a number"},
		{"rtt.mean + flows < 1us", 10, "+ between a time and a plain number"},
		{"verified < true", 1, "true or false cannot be used with <"},
		{"verified + 1 == 2", 1, "cannot be used with +"},
		{"fidelity == true", 10, "a word and true or false"},
		{"abs(1, 2) == 1", 1, "abs takes one argument"},
		{"cbrt(8) == 2", 1, "unknown function"},
		{"sqrt(1us) == 1us", 6, "sqrt of a time"},
		{"sqrt(1, 2) == 1", 1, "sqrt takes one argument"},
		{"min() == 2", 5, "expected a number or a name"},
		{"min(1us, 2) == 2us", 1, "min between a time and a plain number"},
		{"collective.7.busbw > 1Gbps", 1, "the last item of the workload is collective.1"},
		{"collective.x.busbw > 1Gbps", 1, "unknown name"},
		{"metric.rate.p50 > 1", 1, "have a group rate"},
		{"metric.time_us.p98 > 1us", 1, "unknown name"},
		{"metric.time_us.p50 > 1", 20, "a time and a plain number"},
		{"collective.0.speed > 1Gbps", 1, "unknown name"},
		{"transport.pc4.speed > 1", 1, "no setting transport.pc4.speed"},
		{"faults.0.at <= 5us", 1, "no setting faults.0.at"},
		{"background.load <= 5%", 1, "no setting background.load"},
		{"seed.1 == 5", 1, "unknown name"},
		{"transport.kind == pc4", 19, "pc4: only a condition compares a setting with a word; write what is expected, then when transport.kind == pc4"},
		{"transport.kind != roce", 19, "then when transport.kind != roce"},
		{"transport.pc4.beta == rtt.men", 23, "did you mean rtt.mean?"},
		{"workload.1.ranks > 1", 1, `is "all", not a quantity`},
		{"queues.buffer > 1B", 1, `is "5bdp", not a quantity`},
		{"transport.pc4.target_qtime > 1", 28, "a time and a plain number"},
		{"1 / 0 == 1", 3, "division by zero"},
		{"flows < 1us / (2us - 2us)", 13, "division by zero"},
		{"flows < 1 / min(0%, drops) + 1 / -0", 32, "division by zero"},
		{"flows < 1 / workload.2.start", 11, "division by zero"},
		{"1s*1s*1s*1s*1s*1s*1s*1s*1s*1s == 1", 27, "power above 9"},
		{strings.Repeat("(", 60), 51, "nested"},
		{strings.Repeat("-", 60) + "1 < 2", 51, "nested"},
		{strings.Repeat(" ", 1001), 1001, "longer than"},
	} {
		e, err := Parse(c.text)
		if err == nil {
			err = e.Check(labScope())
		}
		var at *Error
		if !errors.As(err, &at) {
			t.Errorf("%q: got %v, want an error with a position", c.text, err)
			continue
		}
		if at.Offset+1 != c.column || !strings.Contains(at.Error(), c.says) {
			t.Errorf("%q: got %v, want column %d and %q", c.text, at, c.column, c.says)
		}
	}
}

// Without the lab a setting matches any type, so that a file can be checked before its defaults are
// known.
func TestSettingsWithoutLab(t *testing.T) {
	for _, text := range []string{
		"transport.pc4.target_qtime > 1us", "rtt.mean + transport.pc4.target_qtime * 2 < topology.mtu / topology.link.rate",
		"verified == engine.strict", "min(1us, engine.x) < 2us",
	} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	got := All([]string{"topology.mtu > 1B", "flows >"}, incastSummary(), Scope{})
	if got[0].OK || !strings.Contains(got[0].Note, "unknown without the lab") {
		t.Errorf("got %+v", got[0])
	}
	if got[1].OK || !strings.Contains(got[1].Note, "end of the line") {
		t.Errorf("got %+v", got[1])
	}
}

func TestNames(t *testing.T) {
	for _, name := range Names() {
		name = strings.Replace(strings.Replace(name, ".N.", ".0.", 1), "NAME", "time_us", 1)
		e, ok := findEntry(name)
		if !ok {
			t.Errorf("%s is listed but not found", name)
			continue
		}
		v, err := e.get(incastSummary())
		if err != nil || v.typ != e.typ {
			t.Errorf("%s: value %v of type %v, want type %v, error %v", name, v, v.typ, e.typ, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, text := range []string{
		"fct_slowdown.p99 <= 1.10 * flows", "abs(rtt.mean - (base_rtt + transport.pc4.target_qtime)) <= 10% * rtt.mean",
		"verified == true", "fidelity == ok", "collective.0.busbw > 90Gbps", "1e9us >= .5µs", "-(-1) == 1", "((", "min(1,2)",
	} {
		corpus.Add(text)
	}
	corpus.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(text) {
				t.Fatalf("%q: %v has no position in the text", text, err)
			}
			return
		}
		e.Eval(incastSummary(), labScope())
		e.Eval(&record.Summary{}, Scope{})
	})
}

// The right side is recorded in the unit of the left, met or missed, unless it is a literal.
func TestWant(t *testing.T) {
	for text, want := range map[string]string{
		"fct.p99 <= 1s":                   "none",
		"drops == 0":                      "none",
		"verified":                        "none",
		"fct.p50 <= 2 * fct.p99":          "twice",
		"2 * fct.p99 < fct.p50 - fct.p50": "zero",
	} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		sum := incastSummary()
		got := e.Eval(sum, labScope())
		switch {
		case want == "none" && got.Want == nil:
		case want == "twice" && got.OK && got.Want != nil && *got.Want == 2*sum.Flows.FCT.P99 && got.Unit == "us":
		case want == "zero" && !got.OK && got.Want != nil && *got.Want == 0:
		default:
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// No comparison of lower bounds is met that a larger value of one or of all of them could miss, and
// of those that it could not, none is lost.
func TestLowerBounds(t *testing.T) {
	for line, want := range map[string]bool{
		"max_queue > 1KB": true, "2KB <= max_queue": true, "2 * max_queue - 1KB >= 2KB": true,
		"max(max_queue, 1KB) > 1KB": true, "10KB / max_queue < 10": true, "max_queue >= max_queue": true,
		"max_queue <= 1MB": false, "max_queue < 1MB": false, "max_queue == 2KB": false, "max_queue != 1KB": false,
		"1MB >= max_queue": false, "1MB - max_queue > 0B": false, "min(max_queue, 1GB) <= 1MB": false,
		"max_queue > 3KB": false, "max_queue < 1KB": false,
		"drops == retransmits": false, "drops <= retransmits": false, "drops >= retransmits": false,
		"drops + retransmits >= 14": true, "drops * retransmits >= packets": true, "drops >= drops": true,
	} {
		s := &record.Summary{Status: record.OK, Network: record.Network{Packets: 9, MaxQueue: 2000, Drops: 7, Retransmits: 7}}
		s.AtLeast("the largest of samples", "network.max_queue_bytes")
		s.AtLeast("of a part", "network.retransmits", "network.drops")
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Eval(s, Scope{})
		if got.OK != want {
			t.Errorf("%s: %+v", line, got)
		}
		s.LowerBounds = nil
		exact := e.Eval(s, Scope{})
		why := "max_queue: not measured: 2KB is the largest of samples, so only a lower bound of it can be met"
		if strings.Contains(line, "drops") {
			why = "retransmits: not measured: 7 is of a part, so only a lower bound of it can be met"
		}
		if exact.Unmeasured || got.Unmeasured != (exact.OK && !want) || got.Unmeasured && got.Note != why {
			t.Errorf("%s: exact %+v, with lower bounds %+v", line, exact, got)
		}
	}
}

// An expectation across points knows which of them have a lower bound alone.
func TestLowerBoundsOfPoints(t *testing.T) {
	point := func(datapath string) Point {
		s := &record.Summary{Status: record.OK, Datapath: datapath, Network: record.Network{Packets: 9, MaxQueue: 2000}}
		if datapath == "kernel" {
			s.AtLeast("the largest of samples", "network.max_queue_bytes")
		}
		return Point{At: map[string]string{"engine.datapath": datapath}, Summary: s}
	}
	points := []Point{point("fabric"), point("kernel")}
	for line, want := range map[string]bool{
		"max_queue[datapath=kernel] >= max_queue[datapath=fabric]":       true,
		"max_queue[datapath=kernel] <= 1.2 * max_queue[datapath=fabric]": false,
	} {
		e, err := Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Sweep(points); got.OK != want || got.Unmeasured == want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
