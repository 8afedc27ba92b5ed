package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weft/orchestrator/benchmark"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/series"
	"weft/results/record"
	"weft/results/report"
	"weft/results/table"
	"weft/units"
)

// benchCase is one run of a benchmark, which gives one table.
type benchCase struct {
	benchmark.Result
	job series.Job
}

// name returns a name for the case that none of the others has.
func (c *benchCase) name(all []benchCase) string {
	for i := range all {
		if all[i].Of != c.Of {
			return c.Of.Title() + ", " + c.Transport
		}
	}
	return c.Transport
}

// benchAll runs the cases one after the other, and prints the table of each when it is done; below
// the last one it prints the caveats. The JSON of a case waits for that of the next, since the last
// one has the caveats.
func (a *app) benchAll(ctx context.Context, cases []benchCase, f *benchFlags) error {
	var errs []error
	var waiting *benchmark.JSON
	for i := range cases {
		if ctx.Err() != nil {
			break
		}
		c := &cases[i]
		a.benchOne(ctx, c, fmt.Sprintf("%s over %s (%d of %d)", c.Of.Title(), c.Transport, i+1, len(cases)), f)
		if f.json {
			errs = append(errs, a.writeCase(waiting))
			j := c.JSON()
			waiting = &j
		} else {
			errs = append(errs, a.showCase(c))
		}
		if c.Err != nil {
			errs = append(errs, fmt.Errorf("%s over %s: %w", c.Of.Title(), c.Transport, c.Err))
		}
	}
	caveats := benchCaveats(cases)
	if waiting != nil {
		waiting.Caveats = caveats
		errs = append(errs, a.writeCase(waiting))
	} else if len(caveats) > 0 {
		_, err := fmt.Fprintf(a.stdout, "# %s\n", strings.Join(caveats, "\n# "))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// benchCaveats returns what a reader who compares the tables must know, as weft run has it below
// the table of a sweep.
func benchCaveats(cases []benchCase) (caveats []string) {
	var runs []*record.Summary
	for i := range cases {
		if s := cases[i].Summary; s != nil {
			runs = append(runs, s)
		}
	}
	caveats = benchDoubts(cases)
	runs = table.Started(runs)
	for _, row := range table.Compared(runs) {
		caveats = append(caveats, row[0]+": "+units.Spaced(row[1]))
	}
	if note := report.SweepControllerNote(runs); note != "" {
		caveats = append(caveats, note)
	}
	return caveats
}

// benchDoubts returns each fidelity that is not ok once, with the cases that have it.
func benchDoubts(cases []benchCase) (doubts []string) {
	of := map[string][]string{}
	for i := range cases {
		s := cases[i].Summary
		if s == nil {
			continue
		}
		if text := table.Doubt(s); text != "" {
			if of[text] == nil {
				doubts = append(doubts, text)
			}
			of[text] = append(of[text], cases[i].name(cases))
		}
	}
	for i, text := range doubts {
		doubts[i] = text + " (" + strings.Join(of[text], ", ") + ")"
	}
	return doubts
}

// benchOne runs a case and sets its results. label names it in progress and messages.
func (a *app) benchOne(ctx context.Context, c *benchCase, label string, f *benchFlags) {
	p := a.newPace(f.quiet)
	var parts []record.Part
	c.Summary, c.Err = c.job.Run(ctx, a.engine, orchestrate.Options{
		Engine: c.job.Engine, Root: f.out, LabText: c.job.Text, Version: versionText(), Series: c.job.Series,
		Say:   func(line string) { p.Say(label + ": " + line) },
		Parts: func(p []record.Part) { parts = p },
		Progress: func(now orchestrate.Progress) {
			p.Set(now.Phase, benchLabel(label, now), int64(now.Done), int64(now.Total))
		},
	})
	p.Clear()
	rows, err := c.Of.Rows(parts)
	c.Rows, c.Engine = rows, c.job.Engine
	if c.Err == nil {
		c.Err = err
	}
	if s := c.Summary; c.Err == nil && s != nil && s.Status != record.OK {
		c.Err = fmt.Errorf("%s: %s", s.Status, s.Error)
	}
}

// benchLabel returns the label of progress: run, or what happens before it.
func benchLabel(run string, p orchestrate.Progress) string {
	if p.Before() {
		return p.Phase
	}
	return run
}

// benchLimit is the longest that a benchmark emulates unless emulation is requested. Our choice.
const benchLimit = time.Minute

// simulateLong simulates cases whose emulation would take longer than benchLimit, unless emulation
// is requested.
func (a *app) simulateLong(ctx context.Context, cases []benchCase, f *benchFlags) {
	if f.kernel == "uml" {
		return // emulation was requested
	}
	jobs := make([]*series.Job, len(cases))
	for i := range cases {
		jobs[i] = &cases[i].job
	}
	a.simulateJobs(ctx, jobs, benchLimit, f.quiet)
}

// writeCase writes the JSON of a case, if there is one.
func (a *app) writeCase(j *benchmark.JSON) error {
	if j == nil {
		return nil
	}
	return writeLine(a.stdout, j)
}

// showCase prints the table of a case.
func (a *app) showCase(c *benchCase) error {
	if _, err := fmt.Fprint(a.stdout, colourVerdict(c.Table(), style(a.stdout), c.Summary)); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// colourVerdict colours the verdict of a table of nccl-tests, if st has colours. Nothing is green
// in a run whose numbers are not to be used.
func colourVerdict(text string, st table.Style, s *record.Summary) string {
	good := st.Good("OK")
	if s != nil && s.Outcome().Fidelity == record.Invalid {
		good = "OK"
	}
	return strings.NewReplacer(
		" 0 OK\n", " 0 "+good+"\n", " FAILED\n", " "+st.Bad("FAILED")+"\n",
	).Replace(text)
}
