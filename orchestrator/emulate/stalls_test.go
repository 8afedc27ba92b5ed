package emulate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"weft/internal/stalls"
	"weft/results/record"
	"weft/units"
)

const us = units.Microsecond

// span returns a span of lab time in microseconds.
func span(from, to float64) stalls.Span {
	return stalls.Span{From: units.Time(from * float64(us)), To: units.Time(to * float64(us))}
}

func was(who string, spans ...stalls.Span) behind {
	return behind{who: who, Log: stalls.Log{Spans: spans}}
}

// What counts is the time that stalls take of each number: its mean, or its median.
func TestStallsAreWeighedByTime(t *testing.T) {
	long := work{what: "messages", spans: []stalls.Span{span(0, 100), span(0, 100), span(0, 100), span(0, 100)}}
	short := work{what: "the collective", spans: []stalls.Span{span(40, 50)}}
	halves := work{what: "halves", spans: []stalls.Span{span(0, 10), span(10, 20), span(0, 20), span(0, 1000), span(0, 1000)}}
	for _, c := range []struct {
		name  string
		all   []behind
		work  []work
		share float64
		what  string
	}{
		{"nobody was", []behind{was("a")}, []work{long}, 0, ""},
		{"no work", []behind{was("a", span(0, 5))}, nil, 0, ""},
		{"a tenth", []behind{was("a", span(20, 30))}, []work{long}, 0.1, "messages"},
		{"all of a short one", []behind{was("a", span(40, 50))}, []work{long, short}, 1, "the collective"},
		{"outside of a short one", []behind{was("a", span(20, 30))}, []work{short}, 0, ""},
		{"two at once count once", []behind{was("a", span(20, 30)), was("b", span(22, 28))}, []work{long}, 0.1, "messages"},
		{"one after the other", []behind{was("a", span(20, 30)), was("b", span(60, 65))}, []work{long}, 0.15, "messages"},
		{"before and after", []behind{was("a", span(90, 190))}, []work{{what: "messages", spans: []stalls.Span{span(100, 150)}}}, 1,
			"messages"},
		{"the median has more of it than the mean", []behind{was("a", span(0, 10))}, []work{halves}, 0.5, "halves"},
		{"as long as a round trip", []behind{was("a", span(20, 70))}, []work{{what: "messages", spans: []stalls.Span{span(0, 1000)}}},
			0.05, "messages"},
		{"as long as two, and 50 more", []behind{was("a", span(0, 100))}, []work{{what: "messages", spans: []stalls.Span{span(0, 10_000)}}},
			0.26, "messages"},
		{"instants unknown", []behind{{who: "a", Log: stalls.Log{Spans: []stalls.Span{span(20, 30)}, Rest: 5 * us}}},
			[]work{long}, 0.15, "messages"},
	} {
		s := weigh(c.all, c.work, (&evidence{baseRTT: 50 * us}).recovery)
		if math.Abs(s.share-c.share) > 1e-9 || s.what != c.what {
			t.Errorf("%s: %g of %q, want %g of %q", c.name, s.share, s.what, c.share, c.what)
		}
	}
}

// A verdict says which process stood, when and for how long, in lab time and real.
func TestStallsAreJudged(t *testing.T) {
	run := []work{{what: "messages", spans: []stalls.Span{span(0, 1000)}}, {what: "a long one", spans: []stalls.Span{span(50_000, 150_000)}}}
	for _, c := range []struct {
		name    string
		behind  []behind
		rto     units.Time
		verdict string
		reason  string
	}{
		{"nothing", nil, 0, record.OK, ""},
		{"at the bound", []behind{was("a", span(100, 150))}, 0, record.OK, ""},
		{"beyond it", []behind{was("the fabric process", span(100, 160))}, 0, record.Degraded,
			"processes stood or ran late during 6.0 % of the time of messages; ok is up to 5 %: the fabric process " +
				"stood or ran late for 0.18 s from 0.3 s after the start on, which is 60us of lab time from 100us on"},
		{"far beyond it", []behind{was("a", span(100, 301))}, 0, record.Invalid, "20.1 %"},
		{"all at once", []behind{was("a", span(100, 160)), was("b", span(100, 158)), was("c", span(100, 110))}, 0, record.Degraded,
			"3 stalls, in the longest of which a and b stood"},
		{"others noticed it", []behind{{who: "some host", noticed: true, Log: stalls.Log{Spans: []stalls.Span{span(100,
			162)}}}, was("a", span(100, 160))}, 0, record.Degraded, ": a stood or ran late"},
		{"only others noticed it", []behind{{who: "some host", noticed: true, Log: stalls.Log{Spans: []stalls.Span{span(100,
			162)}}}}, 0, record.Degraded, "some host stood or ran late"},
		{"shorter than a timeout", []behind{was("a", span(100, 140))}, 41 * us, record.OK, ""},
		{"taken for a queue", []behind{was("a", span(99_000, 100_000))}, 0, record.Degraded, "with the 50 round trips that they may need to " +
			"send as before, it is 21.0 % of the time of a long one, and ok is up to 5 %: a stood"},
		{"as long as a timeout", []behind{was("a", span(100, 140))}, 40 * us, record.Degraded,
			"senders may have taken a stall for a loss, with a retransmission timeout of 40us: a stood"},
	} {
		e := evidence{baseRTT: 400 * us, behind: c.behind, work: run, rto: c.rto, dilation: 3000,
			late: []lateness{{what: "timers", dist: latenessDist(0, 0)}}}
		f := judge(e)
		if reasons := strings.Join(f.Reasons, "; "); f.Verdict != c.verdict || !strings.Contains(reasons, c.reason) ||
			(c.verdict == record.OK) != (reasons == "") {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, f.Verdict, reasons, c.verdict, c.reason)
		}
	}
}

// A verdict lists the longest stalls only, those at the same time as one.
func TestLongestStalls(t *testing.T) {
	var many behind
	many.who = "a"
	for i := range 20 {
		many.Spans = append(many.Spans, span(float64(100*i), float64(100*i+i+1)))
	}
	got := longest([]behind{many, was("b", span(1900, 1919))}, 2)
	if len(got) != shownStalls || !slices.IsSortedFunc(got, func(a, b record.Stall) int { return int(b.ForUS - a.ForUS) }) {
		t.Errorf("%+v", got)
	}
	if top := got[0]; top.Process != "a and b" || top.FromUS != 1900 || top.ForUS != 20 || math.Abs(top.RealS-40e-6) > 1e-9 {
		t.Errorf("%+v", top)
	}
}

// Ranks that a stall drew apart stay so: each later repeat may take up to half a base round trip
// longer, and not a run of one collective, nor messages.
func TestRanksStayApart(t *testing.T) {
	const us = units.Microsecond
	repeats := work{what: "all-to-all", ranks: true}
	for i := range units.Time(60) {
		repeats.spans = append(repeats.spans, stalls.Span{From: 13 * i * us, To: 13 * (i + 1) * us})
	}
	for _, c := range []struct {
		name    string
		from    units.Time
		length  units.Time
		ranks   bool
		verdict string
	}{
		{"at the begin, of a whole repeat", us, 11 * us, true, record.Degraded},
		{"at the begin, of a hundredth of a repeat", us, us / 8, true, record.OK},
		{"at the end", 13 * 58 * us, 11 * us, true, record.OK},
		{"of messages", us, 11 * us, false, record.OK},
	} {
		repeats.ranks = c.ranks
		e := evidence{baseRTT: 13 * us, dilation: 1000, work: []work{repeats}, behind: []behind{{who: "an agent",
			Log: stalls.Log{Least: 1, Spans: []stalls.Span{{From: c.from, To: c.from + c.length}}}}},
			late: []lateness{{what: "timers", dist: latenessDist(0, 0)}}}
		f := judge(e)
		if f.Verdict != c.verdict || f.Slowed != (c.verdict != record.OK) {
			t.Errorf("%s: %s, %q", c.name, f.Verdict, f.Reasons)
		}
	}
}
