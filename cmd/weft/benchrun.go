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
	"weft/results/table"
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

// benchAll runs the cases one after the other, and prints the table of each when it is done.
func (a *app) benchAll(ctx context.Context, cases []benchCase, f *benchFlags) error {
	var errs []error
	for i := range cases {
		if ctx.Err() != nil {
			break
		}
		c := &cases[i]
		a.benchOne(ctx, c, fmt.Sprintf("%s over %s (%d of %d)", c.Of.Title(), c.Transport, i+1, len(cases)), f)
		errs = append(errs, a.showCase(c, f))
		if c.Err != nil {
			errs = append(errs, fmt.Errorf("%s over %s: %w", c.Of.Title(), c.Transport, c.Err))
		}
	}
	return errors.Join(errs...)
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

// showCase prints the table of a case, or its JSON.
func (a *app) showCase(c *benchCase, f *benchFlags) error {
	if f.json {
		return writeLine(a.stdout, c.JSON())
	}
	if _, err := fmt.Fprint(a.stdout, colourVerdict(c.Table(), style(a.stdout))); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// colourVerdict colours the verdict of a table of nccl-tests, if st has colours.
func colourVerdict(text string, st table.Style) string {
	return strings.NewReplacer(
		" 0 OK\n", " 0 "+st.Good("OK")+"\n", " FAILED\n", " "+st.Bad("FAILED")+"\n",
	).Replace(text)
}
