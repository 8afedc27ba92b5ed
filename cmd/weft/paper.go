package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/plural"
	library "weft/labs"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/pages"
	"weft/orchestrator/paper"
	"weft/orchestrator/series"
	"weft/results/expect"
	"weft/results/record"
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
		Short: "run a paper's labs and compare its numbers with ours, pass or fail",
		Long: `Run the labs of a paper in the simulator, and print one table: figure, claim, the paper's number,
ours, tolerance, whose claim it is, pass or fail. Totals count claims of the paper, claims with a
limit of ours, claims about settings that were searched and claims about no figure apart; what the
paper says that is no claim follows. Also write one HTML page with every figure redrawn, and each
chart as an SVG beside it. Runs that this version of the program finished are not repeated.

Exit codes: 0 every claim passes; 1 a run failed; 3 a claim fails. docs/papers.md explains how claims
are written.`,
		Example:   "  weft paper pc4 --quick\n  weft paper pc4 --only P1,P7 --json",
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(names, args[0]) {
				return usagef("unknown paper %q; expected %s", args[0], plural.Or(names))
			}
			return a.paper(cmd.Context(), args[0], flags)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.quick, "quick", false, "use smaller sizes and fewer points, and skip claims that need more")
	f.BoolVar(&flags.fresh, "fresh", false, "repeat finished runs")
	f.BoolVar(&flags.json, "json", false, "print the table as JSON")
	outFlag(f, &flags.out)
	f.StringSliceVar(&flags.only, "only", nil, "only these figures, as in --only P1,P7")
	return cmd
}

// paper runs and judges the figures of a paper, and prints and writes the result.
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
	page := &report.Page{Title: p.Title, About: p.About, Footer: "weft " + versionText(), Docs: docsFrom(flags.out)}
	var rows []paper.Row
	var failures []error // of runs
	ran := false         // the labs of a figure
	began := time.Now()
	work, err := loadPaper(p, flags)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.stderr, work.total())
	for n := range work.figures {
		w := &work.figures[n]
		ran = ran || len(w.jobs) > 0
		if len(w.jobs) > 0 {
			fmt.Fprintf(a.stderr, "%s (%s), %s: %s\n", w.ID, work.place(n), w.Figure.Figure, w.Title)
		}
		figureRows, part, pictures, failed, err := a.figure(ctx, p, w, flags)
		if err == nil {
			err = pages.Pictures(stem+"-"+w.ID, pictures)
		}
		if err != nil {
			return err
		}
		failures = append(failures, failed)
		rows = append(rows, figureRows...)
		page.Parts = append(page.Parts, part)
	}
	totals := paper.Totals(rows)
	sum := paper.Sum(totals)
	page.Verdict = paper.TotalsText(totals)
	if sum.Fail > 0 {
		page.Grade = record.Bad
	}
	claims := pages.Claims(rows)
	page.Parts = pages.FailuresFirst(rows, page.Parts)
	if len(p.Open) > 0 {
		page.Parts = append(page.Parts, report.Part{
			Heading: "What the paper leaves open", Tables: []table.Table{pages.Open(p.Open)},
		})
	}
	if len(p.NotClaims) > 0 {
		page.Parts = append(page.Parts, report.Part{
			Heading: notClaims, Tables: []table.Table{pages.NotClaims(p.NotClaims)},
		})
	}
	file := stem + ".html"
	if err := pages.Save(file, page); err != nil {
		return err
	}
	if flags.json {
		err = writeJSON(a.stdout, judged{totals, rows, p.NotClaims})
	} else {
		err = claims.Write(a.stdout, style(a.stdout), "")
		if len(flags.only) == 0 {
			printNotClaims(a.stdout, p.NotClaims)
		}
	}
	fmt.Fprintf(a.stderr, "%s, in %v: %s\n", page.Verdict, time.Since(began).Round(time.Second), file)
	err = errors.Join(append(failures, err)...)
	switch {
	case err != nil:
	case sum.Fail > 0:
		err = errMissed
	case sum.Pass == 0 && (sum.Skipped > 0 || !ran):
		err = errors.New("no claim was judged: --quick skips all of these figures")
	}
	return err
}

// quickSuffix ends the names of labs for --quick. Claims select a lab by its name without it.
const quickSuffix = "-quick"

// notClaims is the heading of the sentences that no claim is made of.
const notClaims = "What the paper says that is no claim here"

// judged is the output of weft paper --json.
type judged struct {
	Totals    []paper.Total    `json:"totals"`
	Claims    []paper.Row      `json:"claims"`
	NotClaims []paper.Sentence `json:"not_claims,omitempty"`
}

// printNotClaims lists the sentences of a paper that no claim is made of, each with the reason.
func printNotClaims(w io.Writer, sentences []paper.Sentence) {
	if len(sentences) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", notClaims)
	for _, s := range sentences {
		fmt.Fprintf(w, "  %s\n    %s\n", s.Says, s.Why)
	}
}

// docsFrom returns a function for the addresses of files of the documentation from pages in a
// folder. They are known in a checkout, which has the documentation in docs.
func docsFrom(folder string) func(name string) string {
	return func(name string) string {
		found, err := filepath.Glob(strings.TrimSuffix(name, ".md") + "*.md") // docs/adr/0081 is short
		if err != nil || len(found) != 1 {
			return ""
		}
		from, err := filepath.Abs(folder)
		to, err2 := filepath.Abs(found[0])
		if err != nil || err2 != nil {
			return ""
		}
		address, err := filepath.Rel(from, to)
		if err != nil {
			return ""
		}
		return filepath.ToSlash(address)
	}
}

// figure runs the labs of a figure, judges its claims and draws it. failed has the errors of its
// runs; claims about a run that failed fail too.
func (a *app) figure(ctx context.Context, p *paper.Paper, w *figureWork, flags paperFlags) (
	rows []paper.Row, part report.Part, pictures [][]byte, failed, err error,
) {
	name, f := p.Name, w.Figure
	part = report.Part{ID: f.ID, Heading: f.ID + ", " + f.Figure + ": " + f.Title, Text: f.About}
	if flags.quick && f.Quick.Skip {
		part.Text = "Skipped by --quick. " + part.Text
		return f.Judge(nil, true), part, nil, nil, nil
	}
	jobs := w.jobs
	series.Number(jobs, time.Now())
	labs := make([]*lab.Lab, len(jobs))
	for i := range jobs {
		labs[i] = jobs[i].Lab
	}
	quiet := &app{stdout: a.stdout, stderr: a.stderr, engine: a.engine, enter: a.enter}
	runs, errs := quiet.runAll(ctx, jobs, runFlags{out: flags.out, resume: !flags.fresh})
	w.took(runs)
	failed = joinErrors(errs, func(series.Failed) bool { return false })
	if ctx.Err() != nil {
		return nil, part, nil, nil, context.Cause(ctx)
	}
	points := make([]expect.Point, len(runs))
	for i := range runs {
		points[i] = expect.Point{At: expect.At(jobs[i].Lab.Point), Summary: runs[i], Scope: jobs[i].Lab.Scope()}
		if w.labs > 1 {
			points[i].At["lab"] = strings.TrimSuffix(jobs[i].Lab.Name, quickSuffix)
		}
	}
	rows = f.Judge(points, flags.quick)
	if len(rows) > 0 {
		part.Tables = []table.Table{pages.FigureClaims(rows)}
	}
	first := points
	if f.Seeds > 0 {
		first = points[:len(points)/f.Seeds]
	}
	for _, p := range f.Plots {
		drawn, err := pages.Redraw(p, first)
		if err != nil {
			return nil, part, nil, nil, fmt.Errorf("%s of %s: plot %q: %w", f.ID, name, p.Title, err)
		}
		for _, svg := range drawn {
			part.Pictures = append(part.Pictures, report.Inline(svg))
		}
		pictures = append(pictures, drawn...)
	}
	part.Folded = []report.Folded{
		{Summary: "parameters, and where each comes from", Tables: []table.Table{pages.Parameters(p, f, labs)}},
		{Summary: "the runs", Facts: pages.Runs(points)},
	}
	return rows, part, pictures, failed, nil
}

// embedded reads a lab inside the program, for the simulator.
func embedded(name string, set []string) (labfile.File, error) {
	text, err := fs.ReadFile(library.Files, name)
	if err != nil {
		return labfile.File{}, err
	}
	read := func(beside string) ([]byte, error) {
		return fs.ReadFile(library.Files, path.Join(path.Dir(name), beside))
	}
	return labfile.Load(labfile.Source{Name: "labs/" + name, Text: text, Read: read},
		lab.Options{Set: set, Engine: lab.EngineOptions{Kind: "sim"}})
}
