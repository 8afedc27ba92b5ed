package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"weft/results/frames"
	"weft/results/junit"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/table"
	"weft/results/view"
	"weft/units"
)

// Every place that tells the status of a run says the same of it.
func TestEveryPlaceSaysTheSame(t *testing.T) {
	fidelity := func(verdict string) *record.Fidelity { return &record.Fidelity{Verdict: verdict} }
	met, missed := record.Expect{That: "drops == 0", OK: true}, record.Expect{That: "marks == 0", Note: "got 1"}
	for _, c := range []struct {
		s    record.Summary
		want string
	}{
		{record.Summary{Status: record.OK}, "ok"},
		{record.Summary{Status: record.OK, Expect: []record.Expect{met}}, "ok"},
		{record.Summary{Status: record.OK, Expect: []record.Expect{met, missed}}, "missed 1 of 2"},
		{record.Summary{Status: record.OK, Expect: []record.Expect{{That: "x", Skipped: true}}}, "ok"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("ok")}, "ok"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("degraded")}, "fidelity degraded"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("degraded"), Expect: []record.Expect{missed}}, "missed 1 of 1"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("invalid"), Expect: []record.Expect{missed}}, "fidelity invalid"},
		{record.Summary{Status: record.Unverified, Error: "3 wrong", Expect: []record.Expect{met}}, "unverified"},
		{record.Summary{Status: record.Unfinished, Error: "2 left", Expect: []record.Expect{missed}}, "unfinished"},
		{record.Summary{Status: record.Failed, Error: "no memory", Fidelity: fidelity("ok")}, "failed"},
		{record.Summary{Status: record.Interrupted, Error: "signal"}, "interrupted"},
	} {
		s := c.s
		s.Lab, s.Engine, s.Verified = "x", "emu", s.Status == record.OK
		s.Collectives = []record.Collective{{Name: "incast", Checked: 1}}
		root := t.TempDir()
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		r, err := store.Open(store.Options{Root: root, Now: now, Manifest: record.Manifest{Lab: "x", Engine: "emu"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Finish(now, &s); err != nil {
			t.Fatal(err)
		}
		runs := []*record.Summary{&s}
		loaded, err := report.Load(r.Dir())
		if err != nil {
			t.Fatal(err)
		}
		page, err := loaded.Page(nil)
		if err != nil {
			t.Fatal(err)
		}
		sweep, err := report.SweepPage("v", loaded, runs, nil, nil, func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		var markdown, points, suite bytes.Buffer
		if err := table.Markdown(&markdown, runs); err != nil {
			t.Fatal(err)
		}
		if err := table.Points(&points, runs, table.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := junit.Write(&suite, runs, nil, ""); err != nil {
			t.Fatal(err)
		}
		network := &record.NetworkMap{}
		model, err := view.Make(r.Dir(), loaded.Manifest, loaded.Summary, view.Source{Network: network, Frames: []frames.Frame{{At: units.Microsecond}}})
		if err != nil {
			t.Fatal(err)
		}
		csv := report.CSV(runs)
		part := sweep.Parts[len(sweep.Parts)-2].Tables[0] // points
		for place, text := range map[string]string{
			"results ls":        results(t, exitOK, "ls", "--out", root),
			"results ls --json": results(t, exitOK, "ls", "--out", root, "--json"),
			"results show":      results(t, exitOK, "show", "x", "--out", root),
			"the report":        page.Verdict,
			"weft view":         model.Status,
			"the table":         points.String(),
			"Markdown":          markdown.String(),
			"sweep.json":        report.SweepRecord(record.Sweep{}, runs, nil).Points[0].Outcome,
			"table.csv":         strings.Join(csv[len(csv)-1], ","),
			"the sweep's page":  strings.Join(part.Rows[0], " "),
		} {
			if !strings.Contains(text, c.want) {
				t.Errorf("%q: %s says %q", c.want, place, text)
			}
			for _, other := range []string{"fidelity", "missed", "unverified", "unfinished", "failed", "interrupted"} {
				if c.want == "ok" && strings.Contains(text, other) && !strings.Contains(text, `"missed": 0`) && other != "fidelity" {
					t.Errorf("%q: %s says %q", c.want, place, text)
				}
			}
			if c.want != "ok" && (strings.Contains(text, "ok, ") || strings.Contains(text, "✅")) {
				t.Errorf("%q: %s says ok: %q", c.want, place, text)
			}
		}
		bad := s.Outcome().Grade() == record.Bad
		if failures := strings.Contains(suite.String(), "<failure"); failures != (bad && c.want != "fidelity invalid" || len(s.Expect) > 0 && s.Expect[len(s.Expect)-1].Missed()) {
			t.Errorf("%q: the JUnit report says %s", c.want, suite.String())
		}
		if listed := strings.Contains(results(t, exitOK, "ls", "--failed", "--out", root), r.Dir()); listed != bad {
			t.Errorf("%q: ls --failed lists it: %t", c.want, listed)
		}
		for _, p := range sweep.Parts { // what went wrong leads to the run
			if p.Heading == "What went wrong" && p.Tables[0].Link(0, 1) == "" {
				t.Errorf("%q: %q is no link", c.want, p.Tables[0].Rows[0])
			}
		}
	}
}
