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
      - {claim: it is fast, paper: 10us, ours: "fct.p99[seed=1]", within: 10%, class: T1, why: it is noisy}
      - {claim: it is short, paper: 1KB, ours: "max_queue[seed=1]", bound: at most, one_sided: a limit, class: T3, quick: skip}
      - {claim: it grows, paper: grows, holds: "fct.p99[seed=2] > fct.p99[seed=1]", class: T4, note: known}
      - {claim: a bit, paper: "1.1", ours: "fct.p99[seed=2] / fct.p99[seed=1]", within: 25%, holds: "fct.p99[seed=2] >= fct.p99[seed=1]", class: T3}
    plots:
      - {kind: sweep, x: seed, y: fct.p99, paper: [{name: them, x: [1], y: [2]}]}
open:
  - {name: beta, value: "0.4", why: a scan, sensitivity: P1}
not_claims:
  - {says: it is red, why: colours are not simulated}
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
	if got := p.Figures[0].Claims[1].tolerance(); got != "at most" {
		t.Errorf("tolerance %q", got)
	}
	rows := p.Figures[0].Judge(nil, false)
	if rows[1].OneSided != "a limit" || rows[0].OneSided != "" {
		t.Errorf("one-sided: %+v", rows)
	}
	for _, r := range rows {
		if r.Verdict != Fail || r.Note == "" {
			t.Errorf("nothing was run, and %+v", r)
		}
	}
}

// With seeds a claim passes if it does with eight of ten, and the row has the middle and the range.
func TestSeedsDecide(t *testing.T) {
	run := func(fct float64) expect.Point {
		if fct == 0 {
			return expect.Point{At: map[string]string{}} // a run that failed
		}
		return expect.Point{At: map[string]string{}, Summary: &record.Summary{
			Status: "ok", Flows: record.Flows{Count: 1, FCT: record.Quantiles{P99: fct}},
		}}
	}
	for _, c := range []struct {
		fct          [10]float64
		value, holds string
	}{
		{[10]float64{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}, "pass 10us (+0.0 %), 10 of 10 seeds pass | known", "pass 10 of 10 seeds pass | "},
		{[10]float64{12, 9, 10, 10, 8, 10, 10, 11, 10, 10}, "pass 10us (+0.0 %), 8us to 12us, 8 of 10 seeds pass | known", "pass 9 of 10 seeds pass | got 12us, expected <= 11us"},
		{[10]float64{12, 9, 10, 10, 8, 10, 10, 12, 12, 10}, "fail 10us (+0.0 %), 8us to 12us, 6 of 10 seeds pass | known", "fail 7 of 10 seeds pass | got 12us, expected <= 11us"},
		{[10]float64{10, 10, 10, 0, 10, 10, 10, 10, 0, 0}, "fail 10us (+0.0 %), 7 of 10 seeds pass | the run has no summary (known)", "fail 7 of 10 seeds pass | fct.p99: the run has no summary"},
		{[10]float64{}, "fail 0 of 10 seeds pass | the run has no summary (known)", "fail 0 of 10 seeds pass | fct.p99: the run has no summary"},
	} {
		f := Figure{ID: "P1", Figure: "Fig. 1", Seeds: 10, Claims: []Claim{
			{Claim: "it is fast", Paper: "10us", Ours: "fct.p99", Within: "10%", Class: "T1", Note: "known"},
			{Claim: "it is faster", Paper: "faster", Holds: "fct.p99 <= 11us", OneSided: "a limit", Class: "T4"},
		}}
		points := make([]expect.Point, len(c.fct))
		for i, fct := range c.fct {
			points[i] = run(fct)
		}
		rows := f.Judge(points, false)
		for i, want := range []string{c.value, c.holds} {
			if got := rows[i].Verdict + " " + rows[i].Ours + " | " + rows[i].Note; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
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
		{"one_sided: a limit, ", "", "claims.1: one side decides: needs one_sided"},
		{"within: 10%", "within: 10%, one_sided: a limit", "claims.0: one_sided: both sides are judged"},
		{"fct.p99[seed=2] > fct.p99[seed=1]", "fct.p99[seed=2] > 2 * fct.p99[seed=1]", "claims.2: one side decides"},
		{"within: 10%, class: T1, why: it is noisy", "within: 10%, class: T2", "claims.0: within 10% needs why: claims of class T2 have 5%"},
		{"class: T4", "class: T4, origin: theirs", `origin "theirs"`},
		{"    labs: [a.yaml]", "    labs: [a.yaml]\n    origin: theirs", `origin "theirs"`},
		{"claim: it grows", "claim: it is fast", `claims.2: P1 also claims "it is fast"`},
		{"says: it is red, ", "", "not_claims.0: needs says and why"},
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

// No claim of a paper passes on one side alone without saying why that is enough, whatever its
// form: a bound, or a comparison with a number.
func TestOneSidedClaimsSayWhy(t *testing.T) {
	found := map[string]int{}
	for f, rows := range allRows(t) {
		for i, r := range rows {
			c := &f.Claims[i]
			e, err := expect.Parse(c.Holds)
			byHolds := err == nil && c.Within == "" && e.OneSided()
			if c.Bound == "" && !byHolds {
				continue
			}
			found[c.Bound]++
			if len(r.OneSided) < 10 {
				t.Errorf("%s, %q: one_sided is %q", f.ID, c.Claim, r.OneSided)
			}
		}
	}
	if found[""] < 10 || found["at most"] < 10 || found["at least"] == 0 {
		t.Errorf("found %v", found)
	}
}

// allRows returns the rows of all papers' figures, without any runs.
func allRows(t *testing.T) map[*Figure][]Row {
	t.Helper()
	names, err := Names(labs.Files)
	if err != nil {
		t.Fatal(err)
	}
	out := map[*Figure][]Row{}
	for _, name := range names {
		p, err := Load(labs.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Figures {
			out[&p.Figures[i]] = p.Figures[i].Judge(nil, false)
		}
	}
	return out
}

// Rows are counted by whose claim they are, and those about no figure apart. A searched setting is
// one in either.
func TestRowsAreCountedByOrigin(t *testing.T) {
	figure := func(id, figure string, origin Origin, claims ...Claim) Figure {
		for i := range claims {
			claims[i].Holds = "1 == 1"
		}
		return Figure{ID: id, Figure: figure, Origin: origin, Claims: claims}
	}
	figures := []Figure{
		figure("P1", "Fig. 1", "", Claim{}, Claim{Origin: Ours}, Claim{Origin: Searched}),
		figure("P2", NoFigure, Ours, Claim{}, Claim{Origin: OfThePaper}, Claim{Origin: Searched}),
		figure("P3", "Table I", Searched, Claim{}, Claim{Origin: OfThePaper}),
	}
	var got []string
	var rows []Row
	for _, f := range figures {
		for _, r := range f.Judge(nil, false) {
			r.Verdict = Pass
			got = append(got, string(r.Origin)+"/"+string(r.Group))
			rows = append(rows, r)
		}
	}
	want := "paper/paper ours/ours searched/searched ours/no figure paper/no figure searched/searched searched/searched paper/paper"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	rows[0].Verdict, rows[1].Verdict, rows[4].Verdict = Fail, Skipped, Skipped
	totals := Totals(rows)
	if sum := Sum(totals); sum != (Total{Pass: 5, Fail: 1, Skipped: 2}) {
		t.Errorf("sum %+v of %+v", sum, totals)
	}
	for _, c := range []struct {
		rows []Row
		want string
	}{
		{rows, "1 of 2 claims of the paper pass; 3 of 3 of searched settings; 1 of 1 without a figure; 2 skipped"},
		{rows[2:4], "1 of 1 claims of searched settings pass; 1 of 1 without a figure"},
		{rows[1:2], "1 skipped"},
		{nil, "no claim"},
	} {
		if got := TotalsText(Totals(c.rows)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
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
