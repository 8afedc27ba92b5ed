package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
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
	"weft/results/watch"
	"weft/units"
)

// Every place that tells the status of a run says the same of it.
func TestEveryPlaceSaysTheSame(t *testing.T) {
	fidelity := func(verdict string) *record.Fidelity { return &record.Fidelity{Verdict: verdict} }
	met, missed := record.Expect{That: "drops == 0", OK: true}, record.Expect{That: "max_queue <= 10KB", Note: "got 20 KB"}
	unproven := record.Expect{That: "drops < 1", OK: true, Unproven: true, Doubt: "this proves nothing"}
	cases := []struct {
		s    record.Summary
		want string
	}{
		{record.Summary{Status: record.OK}, "fidelity unjudged"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("")}, "fidelity unjudged"},
		{record.Summary{Status: record.OK, Fidelity: &record.Fidelity{Verdict: "ok", BaseRTTNS: 8000}}, "fidelity unjudged"},
		{record.Summary{Status: record.OK, Fidelity: &record.Fidelity{Verdict: "unjudged", BaseRTTNS: 8000}}, "fidelity unjudged"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("ok"), Expect: []record.Expect{met}}, "ok"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("ok"), Expect: []record.Expect{met, missed}}, "missed 1 of 2"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("ok"), Expect: []record.Expect{{That: "x", Skipped: true}}}, "ok, 1 skipped"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("ok")}, "ok"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("ok"), Expect: []record.Expect{met, unproven}}, "1 of 2 without proof"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("ok"), Expect: []record.Expect{missed, unproven}}, "missed 1 of 2"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("invalid"), Expect: []record.Expect{unproven}}, "fidelity invalid"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("degraded")}, "fidelity degraded"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("degraded"), Expect: []record.Expect{missed}}, "missed 1 of 1"},
		{record.Summary{Status: record.OK, Fidelity: fidelity("invalid"), Expect: []record.Expect{missed}}, "fidelity invalid"},
		{record.Summary{Status: record.Unverified, Error: "3 wrong", Expect: []record.Expect{met}}, "unverified"},
		{record.Summary{Status: record.Unfinished, Error: "2 left", Expect: []record.Expect{missed}}, "unfinished"},
		{record.Summary{Status: record.Failed, Error: "no memory", Fidelity: fidelity("ok")}, "failed"},
		{record.Summary{Status: record.Interrupted, Error: "signal"}, "interrupted"},
	}
	outcomes := map[string]bool{}
	for _, c := range cases {
		outcomes[c.want] = true
	}
	for _, c := range cases {
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
		var listed []report.Listed
		var stored record.Summary
		for args, into := range map[string]any{"ls": &listed, "show x": &stored} {
			text := results(t, exitOK, append(strings.Fields(args), "--out", root, "--json")...)
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err, text)
			}
		}
		columns := func(text string) []string { return regexp.MustCompile(` {2,}|\n`).Split(text, -1) }
		firstLine, _, _ := strings.Cut(results(t, exitOK, "show", "x", "--out", root), "\n")
		grade := s.Outcome().Grade()
		for place, cells := range map[string][]string{
			"results ls":          columns(results(t, exitOK, "ls", "--out", root)),
			"results ls --json":   {listed[0].Outcome},
			"results show":        inWords(firstLine),
			"results show --json": {stored.Outcome().String()},
			"the report":          inWords("  " + page.Verdict),
			"weft view":           {model.Status},
			"the table":           columns(points.String()),
			"Markdown":            strings.Split(markdown.String(), "|"),
			"sweep.json":          {report.SweepRecord(record.Sweep{}, runs, nil).Points[0].Outcome},
			"table.csv":           csv[len(csv)-1],
			"the sweep's page":    table.Strings(part.Rows[0]),
		} {
			var said []string
			for _, cell := range cells {
				cell = strings.TrimSpace(strings.Trim(cell, "✅⚠\ufe0f❌ "))
				if outcomes[cell] {
					said = append(said, cell)
				}
			}
			if !slices.Equal(said, []string{c.want}) {
				t.Errorf("%q: %s says %q: %q", c.want, place, said, cells)
			}
		}
		for place, got := range map[string][2]string{
			"weft view":  {model.Grade, grade.String()},
			"the report": {page.Grade.String(), grade.String()},
			"Markdown":   {regexp.MustCompile("✅|⚠|❌").FindString(markdown.String()), [...]string{"✅", "⚠", "❌"}[grade]},
		} {
			if got[0] != got[1] {
				t.Errorf("%q: %s is marked %q, want %q", c.want, place, got[0], got[1])
			}
		}
		coloured := [...]string{"\x1b[32m", "\x1b[33m", "\x1b[31m"}[grade] + c.want + "\x1b"
		var list, table1 bytes.Buffer
		all, err := report.List(root, report.Filter{})
		err = errors.Join(err, report.WriteList(&list, all, table.Style{Colour: true}), table.Points(&table1, runs, table.Style{Colour: true}))
		if err != nil || !strings.Contains(list.String(), coloured) || !strings.Contains(table1.String(), coloured) {
			t.Errorf("%q: %v: list and table are coloured %q and %q", c.want, err, &list, &table1)
		}
		checkWatched(t, &s)
		bad := grade == record.Bad
		if failures := strings.Contains(suite.String(), "<failure"); failures != (bad && c.want != "fidelity invalid" || len(s.Expect) > 0 && s.Expect[len(s.Expect)-1].Missed()) {
			t.Errorf("%q: the JUnit report says %s", c.want, suite.String())
		}
		if listed := strings.Contains(results(t, exitOK, "ls", "--failed", "--out", root), r.Dir()); listed != bad {
			t.Errorf("%q: ls --failed lists it: %t", c.want, listed)
		}
		for _, p := range sweep.Parts { // what went wrong leads to the run
			if p.Heading == "What went wrong" && p.Tables[0].Rows[0][1].Link == "" {
				t.Errorf("%q: %q is no link", c.want, p.Tables[0].Rows[0])
			}
		}
	}
}

// inWords returns the verdict at the end of a line of several columns, in its first words as in a
// column of a list. The worst comes first, and what it says after it is not said without it: of an
// expectation that was missed, that data is verified.
func inWords(line string) []string {
	verdict := line[strings.LastIndex(line, "  ")+2:]
	for _, part := range strings.FieldsFunc(verdict, func(c rune) bool { return strings.ContainsRune(",:;", c) }) {
		part = strings.TrimSuffix(strings.TrimSpace(part), " expectations")
		if part == "data verified" {
			continue
		}
		if skipped := regexp.MustCompile(`, (\d+) expectations? skipped`).FindStringSubmatch(verdict); part == "ok" && skipped != nil {
			part += ", " + skipped[1] + " skipped"
		}
		return []string{part}
	}
	return nil
}

// checkWatched checks that the terminal of a run that goes on says of its expectations on counters
// what the summary says at the end, and of none that it is met.
func checkWatched(t *testing.T, s *record.Summary) {
	t.Helper()
	n := &record.NetworkMap{Nodes: []record.MapNode{{Name: "switch0"}, {Name: "h0", Host: true}}, Ports: []record.MapPort{{To: 1}}}
	screen := watch.New("x", n)
	for _, e := range s.Expect {
		screen.Expect = append(screen.Expect, e.That)
	}
	screen.Add([]frames.Frame{{At: units.Microsecond, Ports: []frames.Port{{Queued: 20_000}}}})
	text := screen.Text(80, 0)
	for _, e := range s.Expect {
		word := map[bool]string{true: "missed", false: "so far"}[e.Missed()]
		if e.Skipped {
			word = "at the end"
		}
		if !regexp.MustCompile(`(?m)^  ` + word + ` +` + regexp.QuoteMeta(e.That) + `$`).MatchString(text) {
			t.Errorf("--watch does not say that %q is %s: %s", e.That, word, text)
		}
	}
	if strings.Contains(text, "met") {
		t.Errorf("--watch says met before the end: %s", text)
	}
}
