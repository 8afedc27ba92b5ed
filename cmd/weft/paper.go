package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/regular"
	library "weft/labs"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/pages"
	"weft/orchestrator/paper"
	"weft/results/expect"
	"weft/results/plot"
	"weft/results/report"
	"weft/results/store"
	"weft/results/table"
)

// paperFlags are the flags of weft paper.
type paperFlags struct {
	quick, fresh, json bool
	out                string
	only               []string
}

func (a *app) paperCommand() *cobra.Command {
	var flags paperFlags
	names, _ := paper.Names(library.Files) // the pattern is a constant, and well formed
	cmd := &cobra.Command{
		Use:   "paper " + strings.Join(names, "|"),
		Short: "run a paper's labs and print its numbers beside ours, pass or fail",
		Long: "Run the labs of a paper in the simulator, print one table (figure, claim, the paper's number, ours, tolerance, pass or\n" +
			"fail), and write one HTML page with every figure redrawn, and each chart beside it as an SVG. A run that this program\n" +
			"finished is not made again.\n\n" +
			"Exit codes: 0 every claim passes; 1 a run failed; 3 a claim fails. docs/papers.md says how claims are written.",
		Example:   "  weft paper pc4 --quick\n  weft paper pc4 --only P1,P7 --json",
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(names, args[0]) {
				return usagef("no paper is called %q; there are %s", args[0], strings.Join(names, ", "))
			}
			return a.paper(cmd.Context(), args[0], flags)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.quick, "quick", false, "smaller sizes and fewer points; claims that need more are skipped")
	f.BoolVar(&flags.fresh, "fresh", false, "make runs again that were finished")
	f.BoolVar(&flags.json, "json", false, "print the table as JSON")
	outFlag(f, &flags.out)
	f.StringSliceVar(&flags.only, "only", nil, "only these figures, as in --only P1,P7")
	return cmd
}

func (a *app) paper(ctx context.Context, name string, flags paperFlags) error {
	p, err := paper.Load(library.Files, name)
	if err != nil {
		return err
	}
	for _, id := range flags.only {
		if !slices.ContainsFunc(p.Figures, func(f paper.Figure) bool { return f.ID == id }) {
			return usagef("%s has no figure %q", name, id)
		}
	}
	if err := store.CheckRoot(flags.out); err != nil {
		return usageError{err}
	}
	if err := os.MkdirAll(flags.out, 0o755); err != nil {
		return err
	}
	stem := filepath.Join(flags.out, "paper-"+name+map[bool]string{true: "-quick"}[flags.quick])
	page := &report.Page{Title: p.Title, About: p.About, Footer: "weft " + versionText()}
	var rows []paper.Row
	var failures []error // of runs
	began := time.Now()
	for i := range p.Figures {
		f := &p.Figures[i]
		if len(flags.only) > 0 && !slices.Contains(flags.only, f.ID) {
			continue
		}
		figureRows, part, pictures, failed, err := a.figure(ctx, p, f, flags)
		if err == nil {
			err = leavePictures(stem+"-"+f.ID, pictures)
		}
		if err != nil {
			return err
		}
		failures = append(failures, failed)
		rows = append(rows, figureRows...)
		page.Parts = append(page.Parts, part)
	}
	passed, failed, skipped := tally(rows)
	page.Verdict = fmt.Sprintf("%d claims pass, %d fail, %d skipped", passed, failed, skipped)
	if failed > 0 {
		page.Class = "bad"
	}
	page.Parts = slices.Insert(page.Parts, 0, report.Part{Heading: "Claims", Tables: []report.Table{claims(rows)}})
	if len(p.Open) > 0 {
		page.Parts = append(page.Parts, report.Part{Heading: "What the paper leaves open", Tables: []report.Table{open(p.Open)}})
	}
	file := stem + ".html"
	if err := pages.Save(file, page); err != nil {
		return err
	}
	if flags.json {
		err = writeJSON(a.stdout, rows)
	} else {
		t := claims(rows)
		err = table.Rows(a.stdout, t.Head, t.Rows, style(a.stdout))
	}
	fmt.Fprintf(a.stderr, "%s, in %v: %s\n", page.Verdict, time.Since(began).Round(time.Second), file)
	if err = errors.Join(append(failures, err)...); err == nil && failed > 0 {
		err = errMissed
	}
	return err
}

func tally(rows []paper.Row) (passed, failed, skipped int) {
	for _, r := range rows {
		switch r.Verdict {
		case paper.Pass:
			passed++
		case paper.Fail:
			failed++
		default:
			skipped++
		}
	}
	return passed, failed, skipped
}

// leavePictures writes the charts of a figure beside the page, numbered from 1, and removes those of an earlier time beyond them.
func leavePictures(stem string, pictures [][]byte) error {
	name := func(i int) string { return fmt.Sprintf("%s-%d.svg", stem, i+1) }
	for i, svg := range pictures {
		if err := regular.WriteOutput(name(i), svg); err != nil {
			return err
		}
	}
	for i := len(pictures); ; i++ {
		switch err := os.Remove(name(i)); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
	}
}

// figure runs the labs of a figure, judges its claims and draws it. failed is what became of runs; a claim about one that failed
// fails as well.
func (a *app) figure(ctx context.Context, p *paper.Paper, f *paper.Figure, flags paperFlags) (
	rows []paper.Row, part report.Part, pictures [][]byte, failed, err error,
) {
	name := p.Name
	part = report.Part{Heading: f.ID + ", " + f.Figure + ": " + f.Title, Text: f.About}
	if flags.quick && f.Quick.Skip {
		part.Text = "Not with --quick. " + part.Text
		return f.Judge(nil, true), part, nil, nil, nil
	}
	files, set := f.Labs, slices.Clone(f.Set)
	if flags.quick {
		if len(f.Quick.Labs) > 0 {
			files = f.Quick.Labs
		}
		set = append(set, f.Quick.Set...)
	}
	var all []file
	for _, l := range files {
		one, err := embedded(path.Join(name, l), set)
		if err != nil {
			return nil, part, nil, nil, fmt.Errorf("%s of %s: %w", f.ID, name, err)
		}
		all = append(all, one)
	}
	fmt.Fprintf(a.stderr, "%s, %s: %s\n", f.ID, f.Figure, f.Title)
	jobs := jobsOf(all, time.Now())
	quiet := &app{stdout: a.stdout, stderr: a.stderr, engine: a.engine, enter: a.enter}
	runs, errs := quiet.runAll(ctx, jobs, runFlags{out: flags.out, resume: !flags.fresh})
	failed = together(errs, func(failedRun) bool { return false })
	if ctx.Err() != nil {
		return nil, part, nil, nil, context.Cause(ctx)
	}
	points := make([]expect.Point, len(runs))
	for i := range runs {
		points[i] = expect.Point{At: expect.At(jobs[i].lab.Point), Summary: runs[i], Scope: jobs[i].lab.Scope()}
		if len(all) > 1 {
			points[i].At["lab"] = jobs[i].lab.Name
		}
	}
	rows = f.Judge(points, flags.quick)
	if len(rows) > 0 {
		part.Tables = []report.Table{claims(rows)}
	}
	for _, p := range f.Plots {
		drawn, err := redraw(p, points)
		if err != nil {
			return nil, part, nil, nil, fmt.Errorf("%s of %s: plot %q: %w", f.ID, name, p.Title, err)
		}
		for _, svg := range drawn {
			part.Pictures = append(part.Pictures, report.Inline(svg))
		}
		pictures = append(pictures, drawn...)
	}
	part.Folded = []report.Folded{
		{Summary: "parameters, and where each comes from", Tables: []report.Table{parameters(p, f, jobs)}},
		{Summary: "the runs", Facts: runFacts(points)},
	}
	return rows, part, pictures, failed, nil
}

// embedded parses a lab of the program for the simulator.
func embedded(name string, set []string) (file, error) {
	text, err := fs.ReadFile(library.Files, name)
	if err != nil {
		return file{}, err
	}
	read := func(beside string) ([]byte, error) {
		return fs.ReadFile(library.Files, path.Join(path.Dir(name), beside))
	}
	l, err := lab.Parse("labs/"+name, text, lab.Options{Set: set, Engine: lab.EngineOptions{Kind: "sim"}, Read: read})
	if err != nil {
		return file{}, err
	}
	if problems := append(experiment.Check(l), checkExpectations(text, &lab.Rest{Labs: l, Network: true}, len(set) == 0)...); len(problems) > 0 {
		return file{}, problems
	}
	return file{source: source{name: name, text: text}, labs: l}, nil
}

func runFacts(points []expect.Point) [][2]string {
	var out [][2]string
	for _, p := range points {
		var at []string
		for _, k := range slices.Sorted(maps.Keys(p.At)) {
			at = append(at, k+"="+p.At[k])
		}
		out = append(out, [2]string{p.Summary.Run, strings.Join(at, " ") + ": " + p.Summary.Status})
	}
	return out
}

// redraw draws a chart of a figure: one, or for a series over time one of each run that is meant.
func redraw(p paper.Plot, points []expect.Point) ([][]byte, error) {
	var chosen []expect.Point
	for _, pt := range points {
		ok := pt.Summary != nil && pt.Summary.Run != ""
		for path, v := range p.Where {
			ok = ok && pt.At[path] == v
		}
		if ok {
			chosen = append(chosen, pt)
		}
	}
	var reference []plot.Series
	for _, c := range p.Paper {
		reference = append(reference, plot.Series{Name: c.Name, X: c.X, Y: c.Y, Dashed: true})
	}
	switch p.Kind {
	case "sweep":
		d, err := report.SweepPlot{Title: p.Title, Caption: p.Caption, X: p.X, Y: p.Y, By: p.By, Log: p.Log, Near: p.Near, Reference: reference}.Draw(chosen)
		return one(d, err)
	case "cdf":
		c := plot.Chart{Title: p.Title, Caption: p.Caption, X: plot.Axis{Label: "slowdown"}, Y: plot.Axis{Label: "share of flows"}}
		if p.Y == "fct" {
			c.X = plot.Axis{Label: "flow completion time", Unit: "us"}
		}
		if strings.Contains(p.Log, "x") {
			c.X.Scale = plot.Log10
		}
		distribution := report.Distribution
		if p.Y == "jobs" {
			c.X, c.Y.Label = plot.Axis{Label: "time of a collective", Unit: "us"}, "share of collectives"
			distribution = func(dir, _, name string) (plot.Series, error) { return report.Jobs(dir, name) }
		}
		for _, pt := range chosen {
			s, err := distribution(pt.Summary.Run, p.Y, report.Label(pt.At, p.By))
			if err != nil {
				return nil, err
			}
			c.Series = append(c.Series, s)
		}
		c.Series = append(c.Series, reference...)
		return one(c, nil)
	}
	return overTime(p, chosen, reference)
}

// overTime draws one chart of each run.
func overTime(p paper.Plot, points []expect.Point, reference []plot.Series) ([][]byte, error) {
	var out [][]byte
	for _, pt := range points {
		r, err := report.Load(pt.Summary.Run)
		if err != nil {
			return nil, err
		}
		f, err := map[string]func() (report.Figure, error){
			"queues": r.Queues, "rates": r.Rates, "cwnd": r.Windows, "acks": r.Acks, "clocks": r.Clocks,
		}[p.Kind]()
		if errors.Is(err, store.ErrNoTable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		f.Title = strings.TrimSuffix(p.Title+": "+report.Label(pt.At, p.By), ": ")
		f.Caption = strings.TrimSpace(p.Caption + " " + f.Caption)
		if p.Only != "" {
			f.Series = slices.DeleteFunc(f.Series, func(s plot.Series) bool { return s.Name != p.Only })
		}
		f.Series = append(f.Series, reference...)
		pictures, err := one(f, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, pictures...)
	}
	return out, nil
}

// one is a drawing as a list, empty where there is nothing to see.
func one(d report.Drawing, err error) ([][]byte, error) {
	if err == nil {
		var svg []byte
		if svg, err = d.SVG(); err == nil {
			return [][]byte{svg}, nil
		}
	}
	if errors.Is(err, plot.ErrEmpty) {
		return nil, nil
	}
	return nil, err
}

// claims is the table of claims.
func claims(rows []paper.Row) report.Table {
	t := report.Table{Head: []string{"figure", "claim", "paper", "ours", "tolerance", "class", "verdict", "note"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.ID + " " + r.Figure, r.Claim, r.Paper, r.Ours, r.Tolerance, r.Class, r.Verdict, r.Note})
	}
	return t
}

// open is the table of what a paper leaves open.
func open(parameters []paper.Parameter) report.Table {
	t := report.Table{Head: []string{"parameter", "value", "why", "sensitivity"}}
	for _, o := range parameters {
		t.Rows = append(t.Rows, []string{o.Name, o.Value, o.Why, strings.Join(o.Sensitivity, ", ")})
	}
	return t
}
