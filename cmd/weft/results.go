package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/internal/clip"
	"weft/internal/plural"
	"weft/orchestrator/pages"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/table"
)

// resultsCommand returns weft results, whose commands read directories of runs.
func (a *app) resultsCommand() *cobra.Command {
	var root string
	cmd := &cobra.Command{
		Use:   "results",
		Short: "read finished runs: ls, show, compare, plot, export",
		Long: `Read directories of runs. RUN is the directory of a run or a sweep, or a lab: its newest run, or all
points of its newest sweep. docs/results.md describes every file and column.`,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usagef("unknown command %q of weft results; expected ls, show, compare, plot or export", args[0])
		},
	}
	outFlag(cmd.PersistentFlags(), &root)
	cmd.AddCommand(a.resultsList(&root), a.resultsShow(&root), a.resultsCompare(&root),
		a.resultsPlot(&root), a.resultsExport(&root))
	return cmd
}

// runsNamed returns the runs that an argument names.
func runsNamed(root, name string) (found store.Found, err error) {
	if clean := clip.Line(name); clean != name {
		return found, usagef("no run is called %s: a name has only characters that print", clean)
	}
	found, err = store.Find(root, name)
	if len(found.Runs) > 0 || err != nil {
		return found, err
	}
	if err := checkRoot(root); err != nil {
		return found, err
	}
	_, err = os.Stat(name)
	if hint := formerRootHint(root); hint != "" {
		return found, usagef("no run is called %s in %s; %s", name, root, hint)
	}
	if errors.Is(err, fs.ErrNotExist) {
		hint := ""
		if near := store.Near(root, name); near != "" {
			hint = "did you mean " + near + "? "
		}
		return found, usagef("no run is called %s; %s`weft results ls` lists those in %s", name, hint, root)
	}
	return found, usagef("%s is not the directory of a run: it has no %s", name, store.ManifestFile)
}

func (a *app) resultsShow(root *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show RUN", Short: "print the summary of a run, or the table of a sweep",
		Example: "  weft results show quickstart\n  weft results show runs/quickstart/20260101T000000-1 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := runsNamed(*root, args[0])
			if err != nil {
				return err
			}
			dirs := found.Runs
			_, err = os.Stat(args[0])
			if err != nil && len(dirs) == 1 && filepath.Base(dirs[0]) != filepath.Base(args[0]) && !asJSON {
				fmt.Fprintf(a.stderr, "this is the newest run of %s; `weft results ls` lists all\n", args[0])
			}
			runs, err := summariesOf(found)
			if err != nil {
				return err
			}
			if m, err := store.ReadManifest(dirs[0]); err == nil && !asJSON {
				if set := report.Given(m); len(set) > 0 {
					fmt.Fprintf(a.stderr, "with %s of the command line\n", clip.Line(strings.Join(set, " ")))
				}
			}
			note := table.Interrupted(runs)
			if found.Open {
				note = table.Unended(runs, found.Submitted)
			}
			switch {
			case asJSON:
				for _, s := range runs {
					if err := writeLine(a.stdout, s); err != nil {
						return err
					}
				}
				if found.Open {
					fmt.Fprintln(a.stderr, note)
				}
				return table.Across(a.stderr, table.MissedAmong(found.Judged), style(a.stderr))
			case len(runs) == 1:
				err = table.Summary(a.stdout, runs[0], style(a.stdout))
			default:
				err = a.showSeveral(runs, note)
			}
			return cmp.Or(err, table.Across(a.stdout, found.Judged, style(a.stdout)))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per run")
	return cmd
}

// summariesOf reads the summaries of runs, and those of points without one: a point of a sweep that
// was killed says so, and the others are there.
func summariesOf(found store.Found) (runs []*record.Summary, err error) {
	for _, dir := range found.Runs {
		m, err := store.ReadManifest(dir)
		if err != nil {
			return nil, err
		}
		s, err := store.ReadSummary(dir)
		if errors.Is(err, store.ErrNoSummary) && m.Status != record.OK && len(found.Runs)+len(found.Lacking) > 1 {
			s, err = record.NotRun(m.Lab, m.Point, m.Engine, m.Status, m.Error), nil
			s.Run, s.Seed, s.Transport = dir, m.Seed, m.Transport()
		}
		if err != nil {
			return nil, err
		}
		if point := found.Points[dir]; point != nil {
			s.Point = point
		}
		if damage := store.Damage(dir, m); damage != "" {
			s.Warnings = append(s.Warnings, "files "+damage)
		}
		runs = append(runs, s)
	}
	return append(runs, found.Lacking...), nil
}

// compareFlags are the flags of weft results compare.
type compareFlags struct {
	json, all bool
	by        string
	failIf    string
	tolerance string
	html      string
	accept    []string
	partial   bool
	left      []string // runs that --by has put on neither side
}

func (a *app) resultsCompare(root *string) *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use: "compare {BASE NEW | SWEEP --by SETTING}", Short: "compare two runs or sweeps: what differs beyond noise",
		Long: `Compare two runs, two sweeps point by point, two directories of runs (the newest runs of each lab in
both), or two lists that weft run --list wrote (what those commands ran or reused, and nothing else in
the same directory). With --by, compare two halves of one sweep, such as two transports over the same seeds.

If both sides have several seeds, the Mann-Whitney U test decides whether a number differs; it needs
at least four seeds on each side, and more if there are many numbers. One run against several is
judged by Student's t. For two single runs, means and percentiles of flows are judged by a bootstrap
over the flows; other numbers are exact in simulations, and cannot be judged in emulations. A
difference counts if its p, adjusted for the number of comparisons (Benjamini and Hochberg), is below
0.05. ~ marks numbers that do not differ beyond noise, ? those that cannot be judged, whose number
is said.

A sweep is all its points, also those that --resume took from earlier runs. A point or seed that only
one side has is named, and not compared. Means are over the seeds that succeeded on both sides.

--fail-if worse is for scripts. The exit code is 3 if

  a number of NEW counts as a difference and is worse by more than --tolerance. Higher is worse for
  times, queues, drops, retransmits and pauses, lower is worse for bandwidth; CE marks are never
  worse. Simulations of the same seeds repeat byte for byte unless something was changed, so there any
  difference beyond the tolerance counts. With --by it must be beyond noise, since other seeds may
  differ. The first drop, retransmit, trim or pause always counts;
  a number that cannot be judged is worse by more than --tolerance, or more runs of NEW than of BASE
  lack it, or none can be judged (--accept unjudged);
  a point or seed of one side has no successful run on the other, or a number was measured on one
  side alone (--partial, unless a run of NEW failed);
  a run of NEW missed expectations, or a sweep of it those across points; the fidelity of a run is
  degraded or invalid, its data is unverified, or it is unfinished or failed (--accept with these
  words). Expectations of BASE are not under test; its
  fidelity must not be invalid.

--html writes a page with charts of both sides, too.

Exit codes: 0 compared; 1 a run or the page of --html failed to be read or written; 2 the command line
is wrong; 3 something is worse.`,
		Example: `  weft results compare runs/pc4-incast/20260101T000000-1 runs/pc4-incast/20260102T000000-1
  weft results compare before after --json
  weft results compare runs-main runs-branch --fail-if worse --tolerance 2%
  weft results compare runs-main runs-branch --fail-if worse --accept degraded,missed --partial
  weft results compare main.json branch.json --fail-if worse --partial
  weft results compare mine --by transport.kind=roce,pc4 --html compared.html`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			tolerance, err := flags.read(cmd.Flags())
			if err != nil {
				return err
			}
			if want := 2 - min(1, len(flags.by)); len(args) != want {
				return usagef("expected BASE and NEW, or one SWEEP with --by SETTING, such as: "+
					"weft results compare mine --by transport.kind=roce,pc4; got %s",
					plural.Count(len(args), "argument"))
			}
			var sides [2]report.Side
			for i, name := range args {
				var newest string
				if sides[i], newest, err = sideNamed(*root, name); err != nil {
					return err
				}
				if newest != "" && !flags.json {
					fmt.Fprintln(a.stderr, newest)
				}
			}
			names := [2]string{args[0], args[len(args)-1]}
			if len(args) == 2 {
				if err := a.checkApart(names, sides, flags); err != nil {
					return err
				}
			}
			if flags.by != "" {
				if sides[0], sides[1], flags.left, err = sides[0].Split(flags.by); err != nil {
					return usagef("--by: %v", err)
				}
				for i, side := range sides {
					names[i] = args[0] + ", " + side.Setting(flags.by)
				}
			}
			return a.compare(names, sides[0], sides[1], tolerance, flags)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.json, "json", false, "print JSON")
	f.StringVar(&flags.html, "html", "", "also write a page to this file")
	f.BoolVar(&flags.all, "all", false, "also show numbers that do not differ")
	f.StringVar(&flags.by, "by", "",
		"compare two halves of one sweep by a swept setting: transport.kind, or transport.kind=roce,pc4")
	f.StringVar(&flags.failIf, "fail-if", "", "worse: exit with 3 if a number of NEW is worse than BASE's")
	f.StringVar(&flags.tolerance, "tolerance", "1%", "with --fail-if, the percentage by which a number may be worse")
	f.StringSliceVar(&flags.accept, "accept", nil,
		"with --fail-if, what is no failure in NEW: "+strings.Join(report.Kinds, ", "))
	f.BoolVar(&flags.partial, "partial", false, "with --fail-if, points that only one side has are no failure")
	return cmd
}

// read checks the flags and returns the tolerance as a fraction.
func (f *compareFlags) read(all *pflag.FlagSet) (float64, error) {
	if f.failIf != "" && f.failIf != string(report.Worse) {
		return 0, usagef("--fail-if %q: expected worse", f.failIf)
	}
	if f.failIf == "" {
		for _, name := range []string{"tolerance", "accept", "partial"} {
			if all.Changed(name) {
				return 0, usagef("--%s needs --fail-if worse", name)
			}
		}
		return 0, nil
	}
	for _, kind := range f.accept {
		if !slices.Contains(report.Kinds, kind) {
			return 0, usagef("--accept %q: expected %s", kind, plural.Or(report.Kinds))
		}
	}
	number, ok := strings.CutSuffix(f.tolerance, "%")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v >= 0 && v < math.Inf(1)) {
		return 0, usagef("--tolerance %q: expected a percentage, such as 1%%", f.tolerance)
	}
	return v / 100, nil
}

// sideNamed reads the runs that an argument names: those of runsNamed or of a list that weft run
// wrote, or the newest of every lab in a directory of runs. newest says which runs a lab stands
// for; "": name is a path.
func sideNamed(root, name string) (side report.Side, newest string, err error) {
	if isFile(name) {
		found, err := store.ReadList(name)
		if err != nil {
			return nil, "", err
		}
		side, err = report.LoadSide(found)
		return side, "", err
	}
	found, err := runsNamed(root, name)
	if err != nil {
		newest, unread := store.Newest(name)
		if len(newest.Runs) == 0 || unread != nil {
			return nil, "", cmp.Or(unread, err)
		}
		found = newest
	}
	if _, err := os.Stat(name); err != nil {
		dirs := found.Runs
		newest = fmt.Sprintf("%s: the newest run, %s", name, dirs[0])
		if len(dirs) > 1 {
			first, last := found.Span()
			newest = fmt.Sprintf("%s: the newest sweep, %d runs, %s to %s", name, len(dirs), first, filepath.Base(last))
		}
	}
	side, err = report.LoadSide(found)
	if err == nil && newest != "" {
		if lacking := len(found.Lacking); lacking > 0 {
			newest += fmt.Sprintf(", and %s of it that did not run", plural.Count(lacking, "point"))
		}
		if set := report.Given(side[0].Manifest); len(set) > 0 {
			newest += ", with " + clip.Line(strings.Join(set, " "))
		}
	}
	return side, newest, err
}

// isFile reports whether a name is that of a regular file.
func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// maxNamed is the number of points that one side lacks, and of runs that are not ok, that compare
// names on standard error. Our own choice.
const maxNamed = 20

// compare prints the differences between two sides. With --fail-if it returns errMissed unless the
// change passes.
func (a *app) compare(names [2]string, base, changed report.Side, tolerance float64, flags compareFlags) error {
	gate := flags.failIf != ""
	// With --by, results for the same seeds do not show how much other seeds would differ.
	exact := gate && flags.by == ""
	d, err := report.Compare(base, changed)
	if gate {
		report.Judge(d, tolerance, exact)
	}
	c := report.NewComparison(base, changed, d)
	if err != nil && !(gate && errors.Is(err, report.ErrNoCommonPoint) && len(c.Lacking) > 0) {
		return err // with a gate, missing runs are a result
	}
	if gate {
		accept := map[string]bool{}
		for _, kind := range flags.accept {
			accept[kind] = true
		}
		report.Gate{Tolerance: flags.tolerance, Accept: accept, Partial: flags.partial}.Judge(c)
	}
	if err := a.showComparison(names, c, flags); err != nil {
		return err
	}
	var left []string
	if flags.by != "" {
		left = append(report.Unmatched(base, changed, [2]string{base.Setting(flags.by), changed.Setting(flags.by)}),
			flags.left...)
	} else {
		for _, l := range c.Lacking {
			left = append(left, l.String())
		}
	}
	for i := range left {
		left[i] = "not compared: " + left[i]
	}
	var troubles []string
	for _, t := range c.Troubles {
		if !t.OfFidelity() {
			troubles = append(troubles, t.String())
		}
	}
	for _, lines := range [][]string{left, troubles} {
		for _, line := range lines[:min(len(lines), maxNamed)] {
			fmt.Fprintln(a.stderr, clip.OneLine(line))
		}
		if more := len(lines) - maxNamed; more > 0 {
			fmt.Fprintf(a.stderr, "and %d more, which --json has\n", more)
		}
	}
	notes := compareNotes(base, changed, d, exact)
	if gate && len(c.Fails) == 0 && c.Numbers == 0 {
		notes = append(notes, "warning: no number was compared: all of "+report.Changed+" is new")
	}
	if flags.html != "" {
		top := slices.Concat(c.Fails, left, troubles, notes)
		p, err := report.ComparePage(versionText(), names, base, changed, d, top)
		if err == nil {
			err = pages.Save(flags.html, p)
		}
		if err != nil {
			return err
		}
	}
	if !flags.json {
		for _, note := range notes {
			fmt.Fprintln(a.stderr, clip.OneLine(note))
		}
	}
	if len(c.Fails) == 0 {
		return nil
	}
	fmt.Fprintf(a.stderr, "%s fails: %s\n", report.Changed, strings.Join(c.Fails, "; "))
	return errMissed
}

// showComparison prints what differs, or that nothing does.
func (a *app) showComparison(names [2]string, c *report.Comparison, flags compareFlags) error {
	tolerance := ""
	if flags.failIf != "" {
		tolerance = flags.tolerance
	}
	shown := c.Differences
	if !flags.all {
		shown = slices.DeleteFunc(slices.Clone(shown), func(d report.Difference) bool {
			return !d.Suspect && !d.Lost && (d.Verdict == report.Same || d.Verdict == report.Unknown)
		})
	}
	switch {
	case flags.json:
		return writeJSON(a.stdout, c)
	case len(c.Differences) == 0:
	case len(shown) == 0:
		fmt.Fprintf(a.stderr, "%s; --all shows them\n", report.NoneDiffers(c.Differences, tolerance))
	default:
		fmt.Fprintf(a.stdout, "A: %s\nB: %s\n\n", clip.Line(names[0]), clip.Line(names[1]))
		return report.ComparisonTable(shown).Write(a.stdout, style(a.stdout), "")
	}
	return nil
}

// compareNotes returns what a reader of differences must know. Without a run on one of the sides
// there is no difference.
func compareNotes(base, changed report.Side, d []report.Difference, exact bool) []string {
	base, changed = report.Compared(base, changed)
	if len(base) == 0 || len(changed) == 0 {
		return nil
	}
	a := table.Side{Name: "A", Runs: base.Summaries()}
	b := table.Side{Name: "B", Runs: changed.Summaries()}
	timeouts := table.Timeouts(a, b)
	if timeouts != "" {
		timeouts = "warning: " + timeouts
	}
	notes := append(table.Doubts(a, b), timeouts, table.Uncovered(a, b), table.Unadjusted(a, b),
		report.ControllerNote(base, changed), report.SettingsDiff(base, changed), report.FewSeedsWarning(d, exact),
		report.UnjudgedNote(d), report.LackNote(d), report.SingleSeedWarning(d, exact))
	return slices.DeleteFunc(notes, func(note string) bool { return note == "" })
}

func (a *app) resultsPlot(root *string) *cobra.Command {
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "plot RUN...", Short: "draw the charts and write the report.html of a run again",
		Long: `Draw the charts of a run, or of each run of a sweep, into plots/ in its directory, and write its
report.html again. --json lists all files. The charts of a sweep itself are those that it drew.`,
		Example: "  weft results plot quickstart\n  weft results plot quickstart --format png",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "svg" && format != "png" {
				return usagef("--format %q: expected svg or png", format)
			}
			files := []string{}
			for _, name := range args {
				found, err := runsNamed(*root, name)
				if err != nil {
					return err
				}
				dirs := found.Runs
				before := len(files)
				for _, dir := range dirs {
					written, err := pages.Draw(dir, format)
					files = append(files, written...)
					if err != nil {
						return err
					}
				}
				where, runs := dirs[0], ""
				if len(dirs) > 1 {
					where, runs = filepath.Dir(dirs[0]), fmt.Sprintf(" for each of %d runs", len(dirs))
				}
				if !asJSON {
					fmt.Fprintf(a.stdout, "%s: %d charts in %s/, and %s%s\n",
						where, len(files)-before-len(dirs), pages.PlotsFolder, pages.PageFile, runs)
				}
			}
			if asJSON {
				return writeJSON(a.stdout, files)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "svg", "svg or png")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the paths of all files as JSON")
	return cmd
}

func (a *app) resultsExport(root *string) *cobra.Command {
	return &cobra.Command{
		Use:   "export RUN TABLE csv|json | export RUN perfetto",
		Short: "print a data file of a run as CSV or as JSON lines, or its timeline for ui.perfetto.dev",
		Example: "  weft results export quickstart flows csv\n  weft results export quickstart queues json\n" +
			"  weft results export quickstart perfetto",
		Args: cobra.RangeArgs(2, 3),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 1:
				return append(tableNames(), perfetto), cobra.ShellCompDirectiveNoFileComp
			case 2:
				return []string{"csv", "json"}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := runsNamed(*root, args[0])
			if err != nil {
				return err
			}
			dirs := found.Runs
			if len(dirs) > 1 {
				return usagef("%s stands for %d runs; name one of them, such as %s; weft results ls %[1]s lists all",
					args[0], len(dirs), dirs[0])
			}
			if args[1] == perfetto && (len(args) == 2 || args[2] == "json") {
				dir := dirs[0]
				if filepath.Base(args[0]) != filepath.Base(dir) { // of a lab
					dir = store.NewestComplete(dir)
				}
				switch s, err := store.ReadSummary(dir); {
				case dir != dirs[0]:
					fmt.Fprintf(a.stderr, "%s did not end; this is %s, the newest run that did\n", dirs[0], dir)
				case err != nil && !errors.Is(err, store.ErrNoSummary):
					return err
				case err != nil || !s.Complete():
					fmt.Fprintf(a.stderr, "warning: %s did not end; its timeline may be empty\n", dir)
				}
				return store.Perfetto(contextWriter{cmd.Context(), a.stdout}, dir)
			}
			if len(args) != 3 {
				return usagef("expected a run, a table and csv or json, or a run and perfetto")
			}
			name := strings.TrimSuffix(args[1], ".parquet")
			if !slices.Contains(tableNames(), name) {
				return usagef("unknown table %q; expected %s", args[1], plural.Or(tableNames()))
			}
			if args[2] != "csv" && args[2] != "json" {
				return usagef("unknown format %q; expected csv or json", args[2])
			}
			return store.Export(contextWriter{cmd.Context(), a.stdout}, dirs[0], name+".parquet", args[2])
		},
	}
}

// perfetto is the word for the timeline of a run.
const perfetto = "perfetto"

// contextWriter fails once its context is done, so that a signal ends a command that only writes.
type contextWriter struct {
	ctx context.Context
	to  io.Writer
}

func (w contextWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(p)
}

// tableNames returns the names of the tables that weft results export accepts.
func tableNames() []string {
	var out []string
	for _, t := range store.Tables() {
		out = append(out, strings.TrimSuffix(t.File, ".parquet"))
	}
	return out
}
