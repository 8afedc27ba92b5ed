package paper

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"weft/internal/fuzztest"
	"weft/labs"
	"weft/results/expect"
	"weft/results/record"
)

func folder(text string) fstest.MapFS {
	return fstest.MapFS{"x/paper.yml": {Data: []byte(text)}, "x/a.yaml": {}, "x/b.yaml": {}}
}

const good = `
paper: x
title: A paper
figures:
  - id: P1
    figure: Fig. 1
    title: Something
    labs: [a.yaml]
    quick: {labs: [b.yaml]}
    claims:
      - {claim: it is fast, paper: 10us, ours: "fct.p99[seed=1]", within: 10%, class: T1}
      - {claim: it is short, paper: 1KB, ours: "max_queue[seed=1]", bound: at most, class: T3, quick: skip}
      - {claim: it grows, paper: grows, holds: "fct.p99[seed=2] > fct.p99[seed=1]", class: T4, note: known}
      - {claim: a bit, paper: "1.1", ours: "fct.p99[seed=2] / fct.p99[seed=1]", within: 25%, holds: "fct.p99[seed=2] >= fct.p99[seed=1]", class: T3}
    plots:
      - {kind: sweep, x: seed, y: fct.p99, paper: [{name: them, x: [1], y: [2]}]}
open:
  - {name: beta, value: "0.4", why: a scan, sensitivity: P1}
`

func TestClaimsAreJudged(t *testing.T) {
	p, err := Load(folder(good), "x")
	if err != nil {
		t.Fatal(err)
	}
	point := func(seed string, fct float64) expect.Point {
		return expect.Point{At: map[string]string{"seed": seed}, Summary: &record.Summary{
			Status: "ok", Flows: record.Flows{Count: 1, FCT: record.Quantiles{P99: fct}},
			Network: record.Network{MaxQueue: 900},
		}}
	}
	for _, c := range []struct {
		first, second float64
		quick         bool
		want          string
	}{
		{10.9, 11, false, "pass 10.9us (+9.0 %) | pass 900B (-10.0 %) | pass holds | pass 1.009 (-8.3 %)"},
		{11.2, 11, true, "fail 11.2us (+12.0 %) | skipped  | fail does not hold | fail 0.9821 (-10.7 %)"},
		{8.9, 9, false, "fail 8.9us (-11.0 %) | pass 900B (-10.0 %) | pass holds | pass 1.011 (-8.1 %)"},
		// the right order alone does not pass
		{10, 15, false, "pass 10us (+0.0 %) | pass 900B (-10.0 %) | pass holds | fail 1.5 (+36.4 %)"},
	} {
		var got []string
		for _, r := range p.Figures[0].Judge([]expect.Point{point("1", c.first), point("2", c.second)}, c.quick) {
			got = append(got, r.Verdict+" "+r.Ours)
		}
		if text := strings.Join(got, " | "); text != c.want {
			t.Errorf("got %s, want %s", text, c.want)
		}
	}
	for _, number := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		rows := p.Figures[0].Judge([]expect.Point{point("1", number), point("2", 11)}, false)
		if rows[0].Verdict != Fail || rows[0].Ours != "" || rows[2].Verdict != Fail || rows[3].Verdict != Fail {
			t.Errorf("%v: %+v", number, rows)
		}
		r := Row{Verdict: Pass}
		if err := p.Figures[0].Claims[0].compare(expect.Quantity{Value: number, Unit: "us"}, &r); err != nil || r.Verdict != Fail {
			t.Errorf("%v: %+v, %v", number, r, err)
		}
	}
	// A value of one run, without a selection, needs a run that is ok.
	alone := Claim{Claim: "it is fast", Paper: "10us", Ours: "fct.p99", Within: "10%", Class: "T1"}
	for status, want := range map[string]string{"ok": Pass, "failed": Fail, "": Fail} {
		one := point("1", 10)
		if one.Summary.Status = status; status == "" {
			one.Summary = nil
		}
		var r Row
		if alone.judge([]expect.Point{one}, &r); r.Verdict != want {
			t.Errorf("status %q: %+v", status, r)
		}
	}
	if got := p.Figures[0].Claims[3].tolerance(); got != "±25%, and must hold" {
		t.Errorf("tolerance %q", got)
	}
	rows := p.Figures[0].Judge(nil, false)
	for _, r := range rows {
		if r.Verdict != Fail || r.Note == "" {
			t.Errorf("nothing was run, and %+v", r)
		}
	}
}

func TestMistakesHavePlaces(t *testing.T) {
	for _, c := range []struct{ old, replacement, want string }{
		{"paper: x", "paper: y", `"y" is not the name of its folder, x`},
		{"labs: [a.yaml]", "labs: [../c.yaml]", "is no path below x"},
		{"labs: [a.yaml]", "labs: [c.yaml]", "file does not exist"},
		{"id: P1", "id: P 1", "expected letters"},
		{"within: 10%, ", "", "claims.0: needs within, bound or holds"},
		{"within: 10%", "within: 1us", "expected a share"},
		{"at most", "below", `bound "below"`},
		{"class: T1", "class: T9", `class "T9"`},
		{"paper: 10us", "paper: fast", "with words, holds decides"},
		{"fct.p99[seed=1]", "fct.p98[seed=1]", `column 1: unknown name "fct.p98"`},
		{"kind: sweep", "kind: pie", `kind "pie"`},
		{"x: [1], y: [2]", "x: [1], y: []", "1 values of x and 0 of y"},
		{"sensitivity: P1", "sensitivity: P2", `no figure is called "P2"`},
		{"title: A paper", "titel: A paper", "field titel not found"},
		{"title: A paper", "", "title: is missing"},
	} {
		_, err := Load(folder(strings.Replace(good, c.old, c.replacement, 1)), "x")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "x/paper.yml: ") {
			t.Errorf("%s: %v, want %s", c.replacement, err, c.want)
		}
	}
}

// A second document is refused, where it begins.
func TestSecondDocument(t *testing.T) {
	for _, second := range []string{"---\n", "---\npaper: y\n", "---\n[\n"} {
		if _, err := Load(folder(good+second), "x"); err == nil || !strings.HasPrefix(err.Error(), "x/paper.yml:") {
			t.Errorf("%q: %v", second, err)
		}
	}
}

// Every paper that comes with Weft can be loaded.
func TestPapersOfThisRepository(t *testing.T) {
	names, err := Names(labs.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := Load(labs.Files, name); err != nil {
			t.Error(err)
		}
	}
}

// A value far above the paper's passes a claim with "at least": such a claim says why that
// reproduces the paper.
func TestClaimsWithoutAnUpperBoundHaveANote(t *testing.T) {
	names, err := Names(labs.Files)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		p, err := Load(labs.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Figures {
			for _, c := range f.Claims {
				if c.Bound != "at least" {
					continue
				}
				if found++; c.Note == "" {
					t.Errorf("%s %s, %q: no note", name, f.ID, c.Claim)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no claim to check")
	}
}

func FuzzLoad(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(good)
	corpus.Fuzz(func(_ *testing.T, text string) {
		p, err := Load(folder(text), "x")
		if err != nil {
			return
		}
		for i := range p.Figures {
			p.Figures[i].Judge(nil, false)
		}
	})
}
