package emulate

import (
	"math"
	"strings"
	"testing"

	"weft/realtime"
	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

// latenessDist returns a distribution of 100 values: one in a hundred is worst, the others are on
// time.
func latenessDist(p99, worst units.Time) *stats.Dist {
	d := stats.NewDist()
	for range 98 {
		d.Record(0)
	}
	d.Record(p99)
	d.Record(worst)
	return d
}

func TestVerdict(t *testing.T) {
	const rtt = 10 * units.Microsecond
	const ns = units.Nanosecond
	for _, c := range []struct {
		name    string
		e       evidence
		verdict string
		reason  string
	}{
		{"all on time", evidence{late: []lateness{{what: "timers", dist: latenessDist(0, 0)}}}, record.OK, ""},
		{"at the bound", evidence{late: []lateness{{what: "timers", dist: latenessDist(500*ns, 9000*ns)}}}, record.OK, ""},
		{"beyond it", evidence{late: []lateness{{what: "timers", dist: latenessDist(510*ns, 510*ns)}}}, record.Degraded,
			"lateness of timers is 510ns, 5.1 %"},
		{"the last degraded", evidence{late: []lateness{{what: "timers", dist: latenessDist(2000*ns, 2000*ns)}}}, record.Degraded,
			"20.0 %"},
		{"beyond that", evidence{late: []lateness{{what: "timers", dist: latenessDist(2010*ns, 2010*ns)}}}, record.Invalid, "20.1 %"},
		{"the worst kind decides", evidence{late: []lateness{{what: "a", dist: latenessDist(0, 0)},
			{what: "b", dist: latenessDist(3000*ns, 3000*ns)}, {what: "c"}}}, record.Invalid, "lateness of b"},
		{"a drop", evidence{drops: []drops{{where: "sockets"}, {where: "queues", n: 1}}}, record.Degraded,
			"1 packets lost in queues"},
		{"a drop does not mend", evidence{late: []lateness{{what: "b", dist: latenessDist(3000*ns, 3000*ns)}},
			drops: []drops{{where: "queues", n: 1}}}, record.Invalid, ""},
		{"broken", evidence{broken: []string{"two and two are five"}}, record.Invalid, "two and two"},
	} {
		c.e.baseRTT = rtt
		f := judge(c.e)
		if reasons := strings.Join(f.Reasons, "; "); f.Verdict != c.verdict || !strings.Contains(reasons, c.reason) ||
			c.verdict != record.OK && reasons == "" {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, f.Verdict, reasons, c.verdict, c.reason)
		}
	}
	if f := judge(evidence{baseRTT: rtt}); f.Verdict != record.Unjudged || f.Unjudged() == "" {
		t.Errorf("without any event: %+v", f)
	}
	f := judge(evidence{late: []lateness{{what: "deliveries", dist: latenessDist(150*ns, 150*ns), measured: true},
		{what: "timers", dist: latenessDist(400*ns, 400*ns)}}, baseRTT: rtt, target: 100 * ns})
	if text := strings.Join(f.Reasons, "; "); f.Verdict != record.Degraded || f.DelayTargetNS != 100 || !Helps(&f) ||
		!strings.Contains(text, "p99 lateness of deliveries is 150ns, above the queueing delay of 100ns that") ||
		strings.Contains(text, "timers") {
		t.Errorf("late by more than the delay target: %+v", f)
	}
	if d, _, _ := Slower(&f, 100); d < 200 {
		t.Errorf("repeat it at %g", d)
	}
	if f := judge(evidence{late: []lateness{{what: "deliveries", dist: latenessDist(99*ns, 99*ns), measured: true}},
		baseRTT: rtt, target: 100 * ns}); f.Verdict != record.OK {
		t.Errorf("late by less than the delay target: %+v", f)
	}
	f = judge(evidence{late: []lateness{{what: "a", dist: latenessDist(500*ns, 9000*ns)}}, baseRTT: rtt, cpu: 0.5})
	if f.LatenessP99NS < 499 || f.LatenessP99NS > 501 || f.LatenessMaxNS < 8990 || f.BaseRTTNS != 10000 ||
		f.CPUMax != 0.5 {
		t.Errorf("numbers of the verdict: %+v", f)
	}
}

// Events that are on time 99 times in 100 add up: each round trip has several of them.
func TestRoundTripLateness(t *testing.T) {
	const us = units.Microsecond
	dist := func(on, late int) *stats.Dist {
		d := stats.NewDist()
		for range on {
			d.Record(0)
		}
		for range late {
			d.Record(us)
		}
		return d
	}
	rare := lateness{what: "deliveries", dist: dist(999, 1), twice: true}
	often := lateness{what: "departures", dist: dist(995, 5), twice: true}
	timers := lateness{what: "timers", dist: dist(0, 1)}
	for _, c := range []struct {
		late []lateness
		want units.Time
	}{
		{nil, 0},
		{[]lateness{timers, {what: "reactions", twice: true}}, 0},
		{[]lateness{rare, timers}, 0},
		{[]lateness{rare, often}, 2 * us},
	} {
		f := judge(evidence{late: c.late, baseRTT: 100 * us})
		if got := f.RoundTripP99NS; math.Abs(got-c.want.Nanoseconds()) > 0.01*c.want.Nanoseconds() {
			t.Errorf("%v: %g ns, want %v", c.late, got, c.want)
		}
	}
}

// A verdict that is not ok comes with the settings to change, where some would help.
func TestAdvice(t *testing.T) {
	for want, f := range map[string]record.Fidelity{
		"": {Verdict: record.OK, LatenessP99NS: 400, BaseRTTNS: 10_000},
		"do not use it for tails, queues or completion times; run it slower: " +
			"--dilation 500, or weft run --retry-dilation to do so automatically": {Verdict: record.Degraded, LatenessP99NS: 1500,
			BaseRTTNS: 10_000},
		"do not use these times; run it slower: --dilation 200, or weft run --retry-dilation to do so automatically": {
			Verdict: record.Invalid, UnorderedDrops: 3},
		"do not use these times; a higher dilation does not help: see the reasons above": {
			Verdict: record.Invalid, LatenessP99NS: 400, BaseRTTNS: 10_000},
		"do not use it for tails, queues or completion times; a higher dilation does not " +
			"help: see the reasons above": {Verdict: record.Degraded, UnorderedDrops: 67618, ForeignDrops: 67618},
		"do not use these times; programs waited for processors: those that poll, as MPI does, need one for each " +
			"host, on a machine that does nothing else": {Verdict: record.Invalid, ProgramWait: 0.8},
	} {
		if got := Advice(&f, 100, false); got != want {
			t.Errorf("%+v:\n got %s\nwant %s", f, got, want)
		}
	}
	again := record.Fidelity{Verdict: record.Invalid, UnorderedDrops: 3}
	if got := Advice(&again, 100, true); got != "do not use these times; run it slower still: --dilation 200" {
		t.Errorf("a run that was retried is told: %s", got)
	}
}

func TestSlower(t *testing.T) {
	base := record.Fidelity{BaseRTTNS: 10_000} // ok up to 500 ns
	for _, c := range []struct {
		late, dilation, want float64
		why                  string
	}{
		{0, 100, 200, "packets were lost"},
		{500, 100, 200, "packets were lost"},
		{510, 100, 200, "at least 2 times as slow"},
		{1500, 100, 500, "3 times the limit for ok, and the target is 0.6 times that limit"},
		{1501, 130, 660, "target is 0.6 times"},
		{50_000, 100, 1000, "100 times the limit for ok; no retry is more than 10 times as slow"},
	} {
		f := base
		f.LatenessP99NS = c.late
		if d, factor, why := Slower(&f, c.dilation); d != c.want || factor != c.want/c.dilation ||
			!strings.Contains(why, c.why) {
			t.Errorf("late by %g ns at %g: %g, %g times, %s; want %g and %q", c.late, c.dilation, d, factor, why,
				c.want, c.why)
		}
	}
	if d, _, _ := Slower(&record.Fidelity{Verdict: record.Invalid}, 1); d != 2 {
		t.Errorf("without a base round trip: %g", d)
	}
}

// One in a hundred packets may come too late from another part of the network.
func TestLateCrossingsAreJudged(t *testing.T) {
	for _, c := range []struct {
		late int
		want string
	}{{0, record.OK}, {5, record.OK}, {11, record.Degraded}, {1000, record.Degraded}} {
		crossings := &realtime.Crossings{Lateness: stats.NewDist(), Late: int64(c.late)}
		for i := range 1000 {
			crossings.Lateness.Record(units.Time(min(1, c.late/(i+1))))
		}
		f := judge(evidence{baseRTT: 10 * units.Microsecond, crossings: crossings,
			late: []lateness{{"packets from one part of the network to another", crossings.Lateness, true, true}}})
		if f.Verdict != c.want || f.Crossings != 1000 || f.LateCrossings != int64(c.late) || Helps(&f) != (c.late > 0) {
			t.Errorf("%d late: %+v", c.late, f)
		}
	}
}
