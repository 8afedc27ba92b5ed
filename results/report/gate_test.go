package report

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/results/expect"
	"weft/results/record"
	"weft/results/stats"
)

// emulated returns an emulation of one collective, of a seed.
func emulated(seed uint64, change func(*record.Summary)) *Run {
	s := &record.Summary{Lab: "x", Engine: "emu", Status: record.OK, Seed: seed, Fidelity: &record.Fidelity{Verdict: record.OK},
		RTT: record.Quantiles{Mean: 10, Max: 20}, LabTimeUS: 100, Collectives: []record.Collective{{Name: "all-reduce", BusBWGbps: 100}},
		Expect: []record.Expect{{That: "drops == 0", OK: true}}}
	if change != nil {
		change(s)
	}
	return &Run{Dir: "run", Manifest: &record.Manifest{Lab: "x", Engine: "emu", Seed: seed, Status: s.Status}, Summary: s}
}

// A gate lets a change pass only if it looked: each kind of what it cannot know, or of a run that
// is no success, fails it, unless the command line accepts that kind; then nothing else does.
func TestGate(t *testing.T) {
	side := func(change func(*record.Summary), seeds ...uint64) (s Side) {
		for _, seed := range seeds {
			s = append(s, emulated(seed, change))
		}
		return s
	}
	was := side(nil, 1)
	is := func(change func(*record.Summary)) Side { return side(change, 1) }
	swept := func(change func(*record.Summary), seeds ...uint64) (s Side) {
		for _, r := range side(change, seeds...) {
			r.Summary.Point = map[string]any{"seed": float64(r.Summary.Seed)}
			s = append(s, r)
		}
		return s
	}
	ofSize := func(size float64, change func(*record.Summary)) Side {
		s := side(change, 1)
		s[0].Summary.Point = map[string]any{"size": size}
		return s
	}
	simulated := func() Side {
		return is(func(s *record.Summary) { s.Run, s.Engine, s.Fidelity = "runs/x/1", "sim", nil })
	}
	flows := func(fct float64, seeds ...uint64) Side {
		return side(func(s *record.Summary) {
			s.Flows.Count, s.Flows.FCT = 1000, record.Quantiles{Mean: fct, P50: fct, P99: fct, Max: fct}
		}, seeds...)
	}
	ofSeed := func(s Side, seed uint64) Side {
		s[0].Summary.Engine, s[0].Summary.Fidelity, s[0].Summary.Seed = "sim", nil, seed
		return s
	}
	printed := func(name string, median float64) Side {
		return side(func(s *record.Summary) {
			s.Metrics = []record.Metric{{Name: name, Count: 9, P50: median + float64(s.Seed)}}
		}, 1, 2, 3, 4, 5)
	}
	clocks := func(error float64) Side {
		return side(func(s *record.Summary) {
			e := error + float64(s.Seed)
			s.Clocks = record.Clocks{Samples: 100, Error: record.Quantiles{Mean: e, P50: e, P99: 2 * e, Max: 3 * e}, Resets: int64(e),
				ConvergedUS: &e}
		}, 1, 2, 3, 4, 5)
	}
	// judged returns runs of a sweep with an expectation across points
	judged := func(s Side, e record.Expect) Side {
		across := []*record.Summary{record.AcrossPoints("x", "emu", []record.Expect{e})}
		for _, r := range s {
			r.judged = across
		}
		return s
	}
	left := &Run{NoSummary: "not run", Manifest: &record.Manifest{Lab: "x", Engine: "emu", Status: record.Interrupted, Seed: 2,
		Point: map[string]any{"seed": 2.0}}}
	for _, c := range []struct {
		name   string
		a, b   Side
		fails  string // each reason has one of these words, which are separated by |
		accept string // words that let it pass
	}{
		{"nothing changed", was, is(nil), "", ""},
		{"bandwidth of one emulation", was, is(func(s *record.Summary) { s.Collectives[0].BusBWGbps = 1 }),
			"1 of 3 numbers cannot be judged, and 1 of them would be worse by more than 1%", "unjudged"},
		{"a little bandwidth of one emulation", was, is(func(s *record.Summary) { s.Collectives[0].BusBWGbps = 99.9 }), "", ""},
		{"better, as far as one emulation can tell", was, is(func(s *record.Summary) { s.Collectives[0].BusBWGbps = 200 }), "", ""},
		{"nothing can be judged", was, is(func(s *record.Summary) {
			s.RTT.Mean, s.LabTimeUS, s.Collectives[0].BusBWGbps = 9, 99, 101
		}), "none of 3 numbers can be judged", "unjudged"},
		{"drops from zero", was, is(func(s *record.Summary) { s.Network.Drops = 1_000_000 }), "1 of 4 numbers is worse", ""},
		{"retransmits from zero", was, is(func(s *record.Summary) { s.Network.Retransmits = 1 }), "1 of 4 numbers is worse", ""},
		{"three seeds of emulations", side(nil, 1, 2, 3), side(func(s *record.Summary) { s.Collectives[0].BusBWGbps = 50 }, 1, 2, 3),
			"would be worse by more than 1%", "unjudged"},
		{"five seeds of emulations", side(func(s *record.Summary) { s.RTT.Mean += float64(s.Seed) }, 1, 2, 3, 4, 5),
			side(func(s *record.Summary) { s.RTT.Mean += 50 + float64(s.Seed) }, 1, 2, 3, 4, 5), "1 of 3 numbers is worse", ""},
		{"completion times of one emulation", flows(100, 1), flows(200, 1), "would be worse by more than 1%|", "unjudged"},
		{"simulations of two seeds", ofSeed(flows(100, 1), 1), ofSeed(flows(200, 1), 2),
			"would be worse by more than 1%|lacks a successful run", "unjudged partial"},
		{"fewer requests", printed("requests_per_s", 1000), printed("requests_per_s", 500), "1 of 4 numbers is worse", ""},
		{"more requests", printed("requests_per_s", 1000), printed("requests_per_s", 2000), "", ""},
		{"longer latencies", printed("latency_us", 1000), printed("latency_us", 2000), "1 of 4 numbers is worse", ""},
		{"longer or shorter, nobody knows", printed("lat", 1000), printed("lat", 2000), "do not say which direction is worse (lat, median)", "unjudged"},
		{"clocks apart", clocks(10), clocks(80), "5 of 8 numbers are worse", ""},
		{"missed", was, is(func(s *record.Summary) { s.Expect[0].OK = false }), "1 run of NEW missed expectations", "missed"},
		{"missed in BASE", is(func(s *record.Summary) { s.Expect[0].OK = false }), is(nil), "", ""},
		{"missed across points", swept(nil, 1, 2), judged(swept(nil, 1, 2), record.Expect{}),
			"1 sweep of NEW missed expectations across points", "missed"},
		{"missed in a run and across points", was, judged(is(func(s *record.Summary) { s.Expect[0].OK = false }), record.Expect{}),
			"1 run of NEW missed expectations|1 sweep of NEW missed expectations across points", "missed"},
		{"missed across points of BASE", judged(is(nil), record.Expect{}), is(nil), "", ""},
		{"met across points", was, judged(is(nil), record.Expect{OK: true}), "", ""},
		{"skipped across points", was, judged(is(nil), record.Expect{Skipped: true}), "", ""},
		{"not measured across points", was, judged(is(nil), record.Expect{Unmeasured: true}),
			"1 sweep of NEW missed expectations across points", "missed"},
		{"degraded", was, is(func(s *record.Summary) { s.Fidelity.Verdict = record.Degraded }), "fidelity degraded in 1 run of NEW", "degraded"},
		{"degraded and missed", was, is(func(s *record.Summary) { s.Fidelity.Verdict, s.Expect[0].OK = record.Degraded, false }),
			"fidelity degraded in|missed expectations", "missed degraded"},
		{"invalid", was, is(func(s *record.Summary) { s.Fidelity.Verdict = record.Invalid }), "fidelity invalid in 1 run of NEW", "invalid"},
		{"not judged", was, is(func(s *record.Summary) { s.Run, s.Fidelity = "runs/x/1", nil }), "fidelity unjudged in 1 run of NEW", "unjudged"},
		{"nothing to judge it by", was, is(func(s *record.Summary) { s.Fidelity.BaseRTTNS = 8000 }), "fidelity unjudged in 1 run of NEW", "unjudged"},
		{"nobody judged", was, is(func(s *record.Summary) { s.Fidelity.Verdict = "" }), "fidelity unjudged in 1 run of NEW", "unjudged"},
		{"a simulation", simulated(), simulated(), "", ""},
		{"BASE is not judged", is(func(s *record.Summary) { s.Fidelity.Verdict = "" }), is(nil), "", ""},
		{"BASE is invalid", is(func(s *record.Summary) { s.Fidelity.Verdict = record.Invalid }), is(nil), "fidelity invalid in 1 run of BASE", "invalid"},
		{"unverified", swept(nil, 1, 2), swept(func(s *record.Summary) {
			if s.Seed == 2 {
				s.Status = record.Unverified
			}
		}, 1, 2), "1 run of NEW unverified|lacks a successful run", "unverified"},
		{"a seed was not run", swept(nil, 1, 2), swept(nil, 1), "NEW lacks a successful run for 1 run of BASE", "partial"},
		{"a seed was left out", swept(nil, 1, 2), append(swept(nil, 1), left), "NEW lacks a successful run for 1 run of BASE", "partial"},
		{"one more seed", swept(nil, 1, 2), swept(nil, 1, 2, 3), "BASE lacks a successful run for 1 run of NEW", "partial"},
		{"BASE was interrupted", append(swept(nil, 1), left), swept(nil, 1, 2), "BASE lacks a successful run for 1 run of NEW", "partial"},
		{"another collective", was, is(func(s *record.Summary) { s.Collectives[0].Name = "all-gather" }), "one side did not measure 2 of 4 numbers", "partial"},
		{"a number is gone", was, is(func(s *record.Summary) { s.Collectives = nil }), "one side did not measure 1 of 3 numbers", "partial"},
		{"a number is new", is(func(s *record.Summary) { s.Collectives = nil }), is(nil), "one side did not measure 1 of 3 numbers", "partial"},
		{"a failed point is gone", append(ofSize(1, nil), ofSize(2, func(s *record.Summary) { s.Status = record.Failed })...),
			append(ofSize(1, nil), ofSize(3, nil)...), "NEW lacks a successful run for 1 run of BASE|BASE lacks a successful run", "partial"},
		{"a failed seed is gone", swept(func(s *record.Summary) {
			if s.Seed == 3 {
				s.Status = record.Failed
			}
		}, 1, 2, 3), swept(nil, 1, 2), "NEW lacks a successful run for 1 run of BASE", "partial"},
		{"a point that was not run in BASE is gone", append(ofSize(1, nil), &Run{NoSummary: "not run", Manifest: &record.Manifest{Lab: "x",
			Engine: "emu", Status: record.Interrupted, Seed: 1, Point: map[string]any{"size": 2.0}}}), append(ofSize(1, nil), ofSize(3, nil)...),
			"BASE lacks a successful run", "partial"},
		{"failed, whatever is partial", swept(nil, 1, 2), swept(func(s *record.Summary) {
			if s.Seed == 2 {
				s.Status = record.Failed
			}
		}, 1, 2), "1 run of NEW failed|lacks a successful run", "failed"},
	} {
		words := strings.Fields(c.accept)
		for n := range len(words) + 1 { // all words are needed
			g := Gate{Tolerance: "1%", Accept: map[string]bool{}}
			for _, word := range words[:n] {
				g.Accept[word] = word != "partial"
				g.Partial = g.Partial || word == "partial"
			}
			d, err := Compare(c.a, c.b)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			Judge(d, 0.01, true)
			got := NewComparison(c.a, c.b, d)
			g.Judge(got)
			if passes := c.fails == "" || n > 0 && n == len(words); passes != (len(got.Fails) == 0) {
				t.Errorf("%s, accepting %q: fails with %q", c.name, words[:n], got.Fails)
			}
			if n > 0 {
				continue
			}
			for _, want := range strings.Split(c.fails, "|") {
				if !strings.Contains(strings.Join(got.Fails, "; "), want) {
					t.Errorf("%s: %q does not say %q", c.name, got.Fails, want)
				}
			}
			for _, reason := range got.Fails {
				if !slices.ContainsFunc(strings.Split(c.fails, "|"), func(want string) bool { return strings.Contains(reason, want) }) {
					t.Errorf("%s: fails for another reason: %q", c.name, reason)
				}
			}
			if got.Unjudged+got.Unmeasured > 0 && got.Worse+got.Better+got.Differs == 0 {
				if text := NoneDiffers(d, "1%"); got.Unjudged > 0 && !strings.Contains(text, "judged") {
					t.Errorf("%s: %q does not count what cannot be judged", c.name, text)
				}
			}
		}
		for _, word := range Kinds { // what it was not told to accept still fails it
			if slices.Contains(words, word) || c.fails == "" {
				continue
			}
			d, _ := Compare(c.a, c.b)
			Judge(d, 0.01, true)
			got := NewComparison(c.a, c.b, d)
			Gate{Tolerance: "1%", Accept: map[string]bool{word: true}}.Judge(got)
			if len(got.Fails) == 0 {
				t.Errorf("%s passes with --accept %s", c.name, word)
			}
		}
	}
}

// A gate passes no comparison of nothing, unless all of NEW is new and --partial allows that.
func TestGateComparesSomething(t *testing.T) {
	for _, c := range []struct {
		base, changed    Side
		partial, accepts bool
		passes           bool
	}{
		{nil, nil, true, false, false}, {nil, nil, true, true, true},
		{nil, Side{emulated(1, nil)}, true, false, true}, {nil, Side{emulated(1, nil)}, false, true, false},
		{Side{emulated(1, nil)}, nil, true, false, false},
	} {
		got := NewComparison(c.base, c.changed, nil)
		Gate{Tolerance: "1%", Partial: c.partial, Accept: map[string]bool{UnjudgedKind: c.accepts}}.Judge(got)
		if (len(got.Fails) == 0) != c.passes || got.Numbers != 0 {
			t.Errorf("%d runs of BASE, %d of NEW, partial %t: %q", len(c.base), len(c.changed), c.partial, got.Fails)
		}
	}
}

// A gate looks at every counter of the network, from zero on, but for those of packets that a
// network without trouble has too, or that links and switches were told to make.
func TestGateLooksAtEveryCounter(t *testing.T) {
	left := map[string]bool{"Packets": true, "DataPackets": true, "Delivered": true, "Beside": true, "Credits": true,
		"Duplicated": true, "Late": true, "Reordered": true, "Switched": true, "TrimmedBytes": true, "Refused": true}
	fields := reflect.TypeFor[record.Network]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if fields.Field(i).Type.Kind() != reflect.Int64 || left[name] {
			continue
		}
		count := func(n int64) Side {
			r := emulated(1, nil)
			reflect.ValueOf(&r.Summary.Network).Elem().FieldByName(name).SetInt(n)
			return Side{r}
		}
		for _, c := range []struct {
			from, to int64
			verdict  Verdict
			suspect  bool
		}{{0, 50, Worse, false}, {50, 50, Same, false}, {50, 80, Unknown, true}, {50, 0, Unknown, false}} {
			if c.from == 0 && (name == "CEMarks" || name == "MaxQueue") { // which any network may have
				c.verdict, c.suspect = Unknown, name == "MaxQueue"
			}
			if c.from == 50 && name == "CEMarks" {
				c.suspect = false
			}
			d, err := Compare(count(c.from), count(c.to))
			if err != nil {
				t.Fatal(err)
			}
			Judge(d, 0.01, true)
			if len(d) != 4 {
				t.Errorf("%s: %d numbers are compared, want those of a run and this one", name, len(d))
			}
			if !slices.ContainsFunc(d, func(d Difference) bool {
				return d.A.Mean == float64(c.from) && d.B.Mean == float64(c.to) && d.Verdict == c.verdict && d.Suspect == c.suspect
			}) {
				t.Errorf("%s from %d to %d is not %s: %+v", name, c.from, c.to, c.verdict, d)
			}
		}
	}
}

// Whatever an expectation can be about is compared, by one of its numbers at least, but for what a
// lab sets, what happens in networks without trouble, too, and the parts of something compared.
func TestEveryKindOfNumberIsCompared(t *testing.T) {
	left := strings.Fields("acks base_rtt bytes ccm clock_share clock_steps collective credits data_packets delivered dilation " +
		"drops_after duplicated fidelity flows late max_queue_after metric packets path_switches paused queue_event_delay ranks " +
		"refused reordered unfinished verified")
	kind := func(name string) string {
		name, _, _ = strings.Cut(name, ".")
		return name
	}
	for _, name := range expect.Names() {
		is := func(k string) bool { return k == kind(name) }
		if !slices.ContainsFunc(left, is) && !slices.ContainsFunc(compared, func(name string) bool { return is(kind(name)) }) {
			t.Errorf("no number of %s is compared", name)
		}
	}
	for _, n := range record.Select(compared...) {
		if n.Label == "" {
			t.Errorf("%s has no label", n.Name)
		}
	}
}

// Bandwidths are compared of the same collective alone, wherever in the workload it is.
func TestBandwidthsOfTheSameCollective(t *testing.T) {
	side := func(names ...string) Side {
		r := emulated(1, nil)
		r.Summary.Collectives = nil
		for i, name := range names {
			r.Summary.Collectives = append(r.Summary.Collectives, record.Collective{Name: name, BusBWGbps: float64(100 + i)})
		}
		return Side{r}
	}
	for _, c := range []struct {
		a, b Side
		want string
	}{
		{side("x"), side("x"), "x 100 100"},
		{side("x"), side("y"), "x 100 -, y - 100"},
		{side("x"), side("y", "x"), "x 100 101, y - 100"},
		{side("x", "y"), side("y", "x"), "x 100 101, y 101 100"},
		{side("x"), side("x", "x"), "x 100 100, x (collective.1) - 101"},
		{side("x", "y", "x"), side("x", "x", "x"), "x (collective.0) 100 100, y 101 -, x (collective.2) 102 101, x (collective.2) - 102"},
		{side(), side("x"), "x - 100"},
	} {
		d, err := Compare(c.a, c.b)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range d {
			name, is := strings.CutSuffix(one.Metric, ", busbw")
			if !is {
				continue
			}
			value := func(v stats.Interval) string {
				if v.N == 0 {
					return "-"
				}
				return fmt.Sprint(v.Mean)
			}
			got = append(got, name+" "+value(one.A)+" "+value(one.B))
			if (one.A.N*one.B.N == 0) != (one.Verdict == Unmeasured) {
				t.Errorf("%+v", one)
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("compared %s, want %s", text, c.want)
		}
	}
}

// Who has the seeds that a test needs at least is told to take more than that.
func TestUnjudgedNoteCountsSeeds(t *testing.T) {
	for n, want := range map[int]string{1: "at least 4 seeds", 3: "at least 4 seeds", 4: "more than 4 seeds", 6: "more than 6 seeds"} {
		d := Difference{Verdict: Unknown, Noise: "seeds"}
		d.A.N, d.B.N = n, n+1
		if got := UnjudgedNote([]Difference{d}); !strings.Contains(got, "give each side "+want) {
			t.Errorf("%d seeds: %s", n, got)
		}
	}
}
