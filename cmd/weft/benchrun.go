package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"weft/internal/plural"
	"weft/orchestrator/benchmark"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/series"
	"weft/orchestrator/uml"
	"weft/results/record"
	"weft/results/table"
)

// benchCase is one run of a benchmark, which gives one table.
type benchCase struct {
	benchmark.Result
	job series.Job
	why string // why chooseEngine changed the engine of job; empty: it did not
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
		Why:   c.why,
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

// benchLabel returns the label of progress: run, or that the machine is measured before the run.
func benchLabel(run string, p orchestrate.Progress) string {
	if p.Phase == orchestrate.Measuring {
		return p.Phase
	}
	return run
}

// emulationLimit is the longest that a benchmark emulates unless emulation is requested. Our
// choice.
const emulationLimit = time.Minute

// chooseEngine makes all cases simulations if emulating them would take longer than emulationLimit
// and was not requested. It changes all or none: tables of different engines cannot be compared.
func (a *app) chooseEngine(ctx context.Context, cases []benchCase, f *benchFlags) {
	if f.kernel == "uml" || uml.Inside() != "" {
		return // emulation was requested
	}
	p := a.newPace(f.quiet)
	defer p.Clear()
	var takes time.Duration
	var dilation float64
	for i := range cases {
		if cases[i].job.Engine != "auto" {
			return
		}
		c, err := cases[i].job.Forecast(ctx, a.engine, orchestrate.Options{
			Engine: "auto",
			Progress: func(now orchestrate.Progress) {
				p.Set(now.Phase, now.Phase, int64(now.Done), int64(now.Total))
			},
		})
		if err != nil || c.Engine != "emu" || c.Asked {
			return // the run itself reports an error
		}
		takes, dilation = takes+c.Wall, max(dilation, c.Dilation)
		if seen := i + 1; takes > emulationLimit { // already too long; assume that the others are alike
			takes = takes * time.Duration(len(cases)) / time.Duration(seen)
			break
		}
	}
	if takes <= emulationLimit {
		return
	}
	why := fmt.Sprintf("emulating %s at dilation %g takes %s; use --engine emu to emulate anyway",
		plural.Count(len(cases), "run"), dilation, orchestrate.AboutTime(takes))
	for i := range cases {
		cases[i].job.Engine, cases[i].why = "sim", why
	}
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
