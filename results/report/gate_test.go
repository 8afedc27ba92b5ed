package report

import (
	"slices"
	"strings"
	"testing"

	"weft/results/record"
)

// emulated returns an emulation of one collective, of a seed.
func emulated(seed uint64, change func(*record.Summary)) *Run {
	s := &record.Summary{Lab: "x", Engine: "emu", Status: record.OK, Seed: seed, Fidelity: &record.Fidelity{Verdict: record.OK},
		RTT: record.Quantiles{Mean: 10}, LabTimeUS: 100, Collectives: []record.Collective{{Name: "all-reduce", BusBWGbps: 100}},
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
		{"missed", was, is(func(s *record.Summary) { s.Expect[0].OK = false }), "1 run of NEW missed expectations", "missed"},
		{"missed in BASE", is(func(s *record.Summary) { s.Expect[0].OK = false }), is(nil), "", ""},
		{"degraded", was, is(func(s *record.Summary) { s.Fidelity.Verdict = record.Degraded }), "fidelity degraded in 1 run of NEW", "degraded"},
		{"degraded and missed", was, is(func(s *record.Summary) { s.Fidelity.Verdict, s.Expect[0].OK = record.Degraded, false }),
			"fidelity degraded in|missed expectations", "missed degraded"},
		{"invalid", was, is(func(s *record.Summary) { s.Fidelity.Verdict = record.Invalid }), "fidelity invalid in 1 run of NEW", "invalid"},
		{"not judged", was, is(func(s *record.Summary) { s.Run, s.Fidelity = "runs/x/1", nil }), "fidelity unjudged in 1 run of NEW", "unjudged"},
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
		{"a number is gone", was, is(func(s *record.Summary) { s.Collectives = nil }), "one side did not measure 1 of 3 numbers", "partial"},
		{"a number is new", is(func(s *record.Summary) { s.Collectives = nil }), is(nil), "one side did not measure 1 of 3 numbers", "partial"},
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
