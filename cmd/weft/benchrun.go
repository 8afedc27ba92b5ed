package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"weft/collectives/bench"
	"weft/orchestrator/benchmark"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
	"weft/results/table"
)

// benchCase is one run of a benchmark: a table.
type benchCase struct {
	of        *benchmark.Measured
	transport string
	network   string // what is said of it
	job       job

	summary *record.Summary // nil: it was not run
	rows    []bench.Row
	err     error
}

// name is what tells a case from the others.
func (c *benchCase) name(all []benchCase) string {
	for i := range all {
		if all[i].of != c.of {
			return c.of.Title() + ", " + c.transport
		}
	}
	return c.transport
}

// benchAll makes the runs, one after the other, and shows the table of each when it is there.
func (a *app) benchAll(ctx context.Context, cases []benchCase, f *benchFlags) error {
	var errs []error
	for i := range cases {
		if ctx.Err() != nil {
			break
		}
		c := &cases[i]
		a.benchOne(ctx, c, fmt.Sprintf("%s over %s (%d of %d)", c.of.Title(), c.transport, i+1, len(cases)), f)
		if err := a.showCase(c, f); err != nil {
			errs = append(errs, err)
		}
		if c.err != nil {
			errs = append(errs, fmt.Errorf("%s over %s: %w", c.of.Title(), c.transport, c.err))
		}
	}
	return errors.Join(errs...)
}

// benchOne makes a run.
func (a *app) benchOne(ctx context.Context, c *benchCase, label string, f *benchFlags) {
	t := &timed{label: label, words: a.stderr}
	if terminal(a.stderr) {
		t.bar = table.NewProgress(a.stderr)
	}
	var parts []record.Part
	c.summary, c.err = a.engine.Run(ctx, c.job.lab, orchestrate.Options{
		Engine: c.job.engine, Root: f.out, LabText: c.job.text, Version: versionText(), Series: c.job.series,
		Say: func(line string) {
			t.bar.Clear()
			fmt.Fprintf(a.stderr, "%s: %s\n", label, line)
		},
		Parts:    func(p []record.Part) { parts = p },
		Progress: t.progress,
	})
	t.bar.Clear()
	rows, err := c.of.Rows(parts)
	c.rows = rows
	if c.err == nil {
		c.err = err
	}
	if c.err == nil && c.summary != nil && !c.summary.Verified {
		c.err = errors.New("the data is not verified: elements are wrong or were not checked")
	}
}

// timed shows how far a run is and how long the rest takes at this pace: on a bar, or where there is no terminal in a
// line now and then.
type timed struct {
	label string
	words io.Writer
	bar   *table.Progress
	began time.Time
	said  time.Time
}

func (t *timed) progress(p orchestrate.Progress) {
	if p.Phase == orchestrate.Measuring {
		t.bar.Set(p.Phase, int64(p.Done), int64(p.Total))
		return
	}
	now := time.Now()
	if t.began.IsZero() {
		t.began, t.said = now, now
	}
	label := t.label
	// Small sizes take time and move nothing: until there is something to go by, how long the rest takes is not known.
	if took := now.Sub(t.began); p.Done > p.Total/50 && p.Done < p.Total && took > 2*time.Second {
		left := time.Duration(float64(took) * float64(p.Total-p.Done) / float64(p.Done))
		label += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	t.bar.Set(label, int64(p.Done), int64(p.Total))
	if t.bar == nil && now.Sub(t.said) >= 10*time.Second && p.Total > 0 {
		t.said = now
		fmt.Fprintf(t.words, "%s: %.0f %%\n", label, 100*float64(p.Done)/float64(p.Total))
	}
}

// showCase prints the table of a case, or its JSON.
func (a *app) showCase(c *benchCase, f *benchFlags) error {
	if f.json {
		e := json.NewEncoder(a.stdout)
		e.SetEscapeHTML(false)
		if err := e.Encode(c.asJSON()); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		return nil
	}
	if _, err := fmt.Fprint(a.stdout, c.table()); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	return nil
}

// table is what nccl-tests would print: what is measured, the rows that are there, and the sums.
func (c *benchCase) table() string {
	var b strings.Builder
	first, last := c.of.Specs[0], c.of.Specs[len(c.of.Specs)-1]
	fmt.Fprintf(&b, "# weft bench: %s, %d ranks, transport %s, %s\n", c.of.Title(), first.Ranks, c.transport, c.network)
	if s := c.summary; s != nil {
		fmt.Fprintf(&b, "# engine %s", s.Engine)
		if s.Engine == "emu" {
			fmt.Fprintf(&b, ", dilation %g", s.Dilation)
		}
		if s.Fidelity != nil {
			fmt.Fprintf(&b, ", fidelity %s", s.Fidelity.Verdict)
		}
		fmt.Fprintf(&b, ", seed %d, %.1f s of wall time, %s\n", s.Seed, s.WallS, s.Run)
	}
	fmt.Fprintf(&b, "# sizes %d to %d B, %d warm-up iterations, %s measured", first.Size, last.Size, c.of.Warmup, c.iterations())
	if n := len(c.of.Skipped); n > 0 {
		fmt.Fprintf(&b, "; %d sizes are too small to give each rank something", n)
	}
	b.WriteString("\n")
	b.WriteString(bench.Table(c.rows))
	if missing := len(c.of.Specs) - len(c.rows); missing > 0 {
		fmt.Fprintf(&b, "# %d sizes were not measured: the run ended before\n#\n", missing)
	}
	for _, text := range c.warnings() {
		fmt.Fprintf(&b, "# warning: %s\n", text)
	}
	return b.String()
}

// warnings are what the run has to say of itself: which rank's data is wrong since which step, among others.
func (c *benchCase) warnings() []string {
	if c.summary == nil {
		return nil
	}
	return c.summary.Warnings
}

// iterations says how often each size is measured.
func (c *benchCase) iterations() string {
	least, most := slices.Min(c.of.Iterations), slices.Max(c.of.Iterations)
	if least == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// benchJSON is a table as JSON. Times and bandwidths are of the lab.
type benchJSON struct {
	Run        string         `json:"run,omitempty"`
	Collective string         `json:"collective"`
	Algorithm  string         `json:"algorithm"`
	Transport  string         `json:"transport"`
	Ranks      int            `json:"ranks"`
	Engine     string         `json:"engine"`
	Dilation   float64        `json:"dilation"`
	Fidelity   string         `json:"fidelity,omitempty"`
	Status     string         `json:"status"`
	Error      string         `json:"error,omitempty"`
	Verified   bool           `json:"verified"` // every rank finished every collective with data that was compared and is right
	Warnings   []string       `json:"warnings,omitempty"`
	Warmup     int            `json:"warmup_iterations"`
	Rows       []benchRowJSON `json:"rows"`
	Missing    int            `json:"missing"`       // sizes that were not measured
	Wrong      int            `json:"out_of_bounds"` // rows with wrong elements
	BusBW      float64        `json:"avg_busbw_gb_per_s"`
	WallS      float64        `json:"wall_s"`
}

type benchRowJSON struct {
	Size       int64   `json:"size_bytes"`
	Count      int64   `json:"count"`
	Type       string  `json:"type"`
	Op         string  `json:"redop"`
	Root       int     `json:"root"`
	Iterations int     `json:"iterations"`
	TimeUS     float64 `json:"time_us"`
	AlgBW      float64 `json:"algbw_gb_per_s"`
	BusBW      float64 `json:"busbw_gb_per_s"`
	Wrong      int64   `json:"wrong"`
	Checked    bool    `json:"checked"`
}

func (c *benchCase) asJSON() benchJSON {
	j := benchJSON{
		Collective: c.of.Collective, Algorithm: c.of.Algorithm, Transport: c.transport, Ranks: c.of.Specs[0].Ranks,
		Engine: c.job.engine, Status: "failed", Warmup: c.of.Warmup, Rows: []benchRowJSON{}, Missing: len(c.of.Specs) - len(c.rows),
	}
	if s := c.summary; s != nil {
		j.Run, j.Engine, j.Dilation, j.Status, j.Error, j.WallS = s.Run, s.Engine, s.Dilation, s.Status, s.Error, s.WallS
		j.Verified, j.Warnings = s.Verified, s.Warnings
		if s.Fidelity != nil {
			j.Fidelity = s.Fidelity.Verdict
		}
	}
	if c.err != nil {
		j.Verified = false
		j.Error = cmp.Or(j.Error, c.err.Error())
		if j.Status == "ok" {
			j.Status = "failed" // the run ended well, and what it measured is not right
		}
	}
	for i, r := range c.rows {
		m := r.OutOfPlace
		row := benchRowJSON{
			Size: int64(r.Size), Count: r.Count, Type: r.Type, Op: r.Op, Root: r.Root, Iterations: c.of.Iterations[i],
			TimeUS: m.Time.Microseconds(), AlgBW: bench.GBps(m.Alg), BusBW: bench.GBps(m.Bus), Wrong: m.Wrong, Checked: m.Checked,
		}
		j.Rows = append(j.Rows, row)
		if m.Wrong > 0 {
			j.Wrong++
		}
		j.BusBW += row.BusBW / float64(len(c.rows))
	}
	return j
}
