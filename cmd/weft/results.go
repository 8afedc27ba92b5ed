package main

import (
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

	"weft/orchestrator/pages"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/table"
)

// resultsCommand reads what runs left.
func (a *app) resultsCommand() *cobra.Command {
	var root string
	cmd := &cobra.Command{
		Use:   "results",
		Short: "read what runs left: ls, show, compare, plot, export",
		Long: "Read run directories. RUN is the directory of a run or of a sweep, or a lab: then its newest run, or all points of its\n" +
			"newest sweep, is meant. docs/results.md describes every file and column.",
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return usagef("unknown command %q of weft results; there are ls, show, compare, plot and export", args[0])
		},
	}
	outFlag(cmd.PersistentFlags(), &root)
	cmd.AddCommand(a.resultsList(&root), a.resultsShow(&root), a.resultsCompare(&root), a.resultsPlot(&root), a.resultsExport(&root))
	return cmd
}

// runsNamed finds the run directories that an argument means.
func runsNamed(root, name string) ([]string, error) {
	if runs := store.Find(root, name); len(runs) > 0 {
		return runs, nil
	}
	_, err := os.Stat(name)
	if word := moved(root); word != "" {
		return nil, usagef("no run is called %s in %s; %s", name, root, word)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("no run is called %s; `weft results ls` lists those in %s", name, root)
	}
	return nil, usagef("%s holds no run: there is no %s", name, store.ManifestFile)
}

func (a *app) resultsShow(root *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show RUN", Short: "print the summary of a run, or the table of a sweep",
		Example: "  weft results show quickstart\n  weft results show runs/quickstart/20260101T000000-1 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dirs, err := runsNamed(*root, args[0])
			if err != nil {
				return err
			}
			if _, err := os.Stat(args[0]); err != nil && len(dirs) == 1 && filepath.Base(dirs[0]) != filepath.Base(args[0]) && !asJSON {
				fmt.Fprintf(a.stderr, "%s: the newest run; `weft results ls` lists all\n", args[0])
			}
			var runs []*record.Summary
			for _, dir := range dirs {
				s, err := store.ReadSummary(dir)
				if err != nil {
					return err
				}
				if asJSON {
					if err := writeLine(a.stdout, s); err != nil {
						return err
					}
				}
				runs = append(runs, s)
			}
			switch {
			case asJSON:
				return nil
			case len(runs) == 1:
				return table.Summary(a.stdout, runs[0], style(a.stdout))
			}
			return a.showSeveral(runs)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per run")
	return cmd
}

// compareFlags are the flags of weft results compare.
type compareFlags struct {
	json, all bool
	by        string
	failIf    string
	tolerance string
}

func (a *app) resultsCompare(root *string) *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use: "compare {BASE NEW | SWEEP --by SETTING}", Short: "say what differs between two runs or sweeps beyond noise, and by how much",
		Long: "Compare two runs, two sweeps point by point, or two directories of runs, the newest runs of each lab in both. With --by, compare\n" +
			"two halves of one sweep, such as two transports over the same seeds. Where both\n" +
			"have several seeds, a difference is held against chance by the Mann-Whitney U test (it takes four seeds on each side to see\n" +
			"any, and more among many numbers), and one run against several by Student's t. Of single runs, means and percentiles of flows are held against a bootstrap\n" +
			"over the flows; anything else of simulations is exact, and of emulations nothing is known. A difference counts if its p,\n" +
			"adjusted for all that are compared (Benjamini and Hochberg), is below 0.05. ~ is no difference beyond noise, ? one that\n" +
			"nothing is known of.\n\n" +
			"--fail-if worse is for scripts: the exit code is 3 if a number of NEW is worse than BASE's by more than --tolerance, and counts\n" +
			"as above, or if a run of BASE, of any point and seed, did not end well in NEW. Simulations of the same seeds are exact there: they\n" +
			"are the same byte for byte unless something was changed, so that any difference beyond the tolerance counts. Means are over the\n" +
			"seeds that ended well on both sides. More is worse of times, queues, drops,\n" +
			"retransmits and pauses, less of bandwidth; of CE marks neither is.\n\n" +
			"Exit codes: 0 compared; 2 the command line is wrong; 3 something is worse.",
		Example: "  weft results compare runs/pc4-incast/20260101T000000-1 runs/pc4-incast/20260102T000000-1\n" +
			"  weft results compare before after --json\n  weft results compare runs-main runs-branch --fail-if worse --tolerance 2%\n" +
			"  weft results compare mine --by transport.kind=roce,pc4",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			tolerance, err := flags.read(cmd.Flags().Changed("tolerance"))
			if err != nil {
				return err
			}
			if want := 2 - min(1, len(flags.by)); len(args) != want {
				return usagef("compare takes BASE and NEW, or one SWEEP and --by SETTING; %s given", plural(len(args), "name"))
			}
			var sides [2]report.Side
			for i, name := range args {
				if sides[i], err = sideNamed(*root, name); err != nil {
					return err
				}
			}
			if flags.by != "" {
				if sides[0], sides[1], err = sides[0].Split(flags.by); err != nil {
					return usagef("--by: %v", err)
				}
			}
			return a.compare(sides[0], sides[1], tolerance, flags)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&flags.json, "json", false, "print JSON")
	f.BoolVar(&flags.all, "all", false, "also show what does not differ")
	f.StringVar(&flags.by, "by", "", "compare two halves of one sweep by a setting that it sweeps: transport.kind, or transport.kind=roce,pc4")
	f.StringVar(&flags.failIf, "fail-if", "", "worse: exit with 3 if a number of NEW is worse than BASE's")
	f.StringVar(&flags.tolerance, "tolerance", "1%", "with --fail-if, by how much a number may be worse: a percentage")
	completeWords(cmd, "fail-if", []string{report.Worse})
	return cmd
}

// read checks the flags and returns the tolerance, as a share.
func (f *compareFlags) read(asked bool) (float64, error) {
	switch {
	case f.failIf != "" && f.failIf != report.Worse:
		return 0, usagef("--fail-if %q; expected worse", f.failIf)
	case f.failIf == "" && asked:
		return 0, usagef("--tolerance is for --fail-if worse")
	case f.failIf == "":
		return 0, nil
	}
	number, ok := strings.CutSuffix(f.tolerance, "%")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v >= 0 && v < math.Inf(1)) {
		return 0, usagef("--tolerance %q; expected a percentage such as 1%%", f.tolerance)
	}
	return v / 100, nil
}

// sideNamed reads the runs that an argument means: as runsNamed, or the newest of every lab of a directory of runs.
func sideNamed(root, name string) (report.Side, error) {
	dirs, err := runsNamed(root, name)
	if err != nil {
		if dirs = store.Newest(name); len(dirs) == 0 {
			return nil, err
		}
	}
	var side report.Side
	for _, dir := range dirs {
		r, err := report.Load(dir)
		if err != nil {
			return nil, err
		}
		side = append(side, r)
	}
	return side, nil
}

func (a *app) compare(base, changed report.Side, tolerance float64, flags compareFlags) error {
	gate := flags.failIf != ""
	missing := report.Missing(base, changed)
	d, err := report.Compare(base, changed)
	if err != nil && !(gate && errors.Is(err, report.ErrNoCommonPoint) && len(missing) > 0) {
		return err
	}
	err = nil // a gate counts what is missing
	if gate {
		report.Judge(d, tolerance, true)
	}
	shown := d
	if !flags.all {
		shown = slices.DeleteFunc(slices.Clone(d), func(d report.Difference) bool { return d.Verdict == report.Same || d.Verdict == report.Unknown })
	}
	switch {
	case flags.json:
		err = writeJSON(a.stdout, d)
	case len(d) == 0:
	case len(shown) == 0 && gate:
		fmt.Fprintf(a.stderr, "nothing of %d numbers differs beyond noise and %s; --all shows them\n", len(d), flags.tolerance)
	case len(shown) == 0:
		fmt.Fprintf(a.stderr, "nothing of %d numbers differs beyond noise; --all shows them\n", len(d))
	default:
		t := report.ComparisonTable(shown)
		err = table.Rows(a.stdout, t.Head, t.Rows, style(a.stdout))
	}
	if err != nil {
		return err
	}
	for _, text := range missing {
		fmt.Fprintf(a.stderr, "not compared: %s\n", text)
	}
	if text := table.Timeouts(table.Side{Name: "A", Runs: base.Summaries()}, table.Side{Name: "B", Runs: changed.Summaries()}); text != "" && !flags.json {
		fmt.Fprintln(a.stderr, "warning: "+text)
	}
	words := []string{report.SettingsDiff(base, changed), report.FewSeedsWarning(d, gate)}
	if !gate {
		words = append(words, report.SingleSeedWarning(d))
	}
	for _, word := range words {
		if word != "" && !flags.json {
			fmt.Fprintln(a.stderr, word)
		}
	}
	if !gate {
		return nil
	}
	worse := 0
	for _, x := range d {
		if x.Verdict == report.Worse {
			worse++
		}
	}
	if worse == 0 && len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(a.stderr, "%d of %d numbers are worse by more than %s, %s of BASE did not end well in NEW\n", worse, len(d), flags.tolerance, plural(len(missing), "run"))
	return errMissed
}

func (a *app) resultsPlot(root *string) *cobra.Command {
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "plot RUN...", Short: "draw what a run measured into its plots/, and its report.html anew",
		Long:    "Draw the charts of a run, or of each run of a sweep, into plots/ of its directory, and write its report.html anew.\n--json lists all files.",
		Example: "  weft results plot quickstart\n  weft results plot quickstart --format png",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "svg" && format != "png" {
				return usagef("--format %q; expected svg or png", format)
			}
			files := []string{}
			for _, name := range args {
				dirs, err := runsNamed(*root, name)
				if err != nil {
					return err
				}
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
					fmt.Fprintf(a.stdout, "%s: %d charts in %s/, and %s%s\n", where, len(files)-before-len(dirs), pages.PlotsFolder, pages.PageFile, runs)
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
	cmd := &cobra.Command{
		Use: "export RUN TABLE csv|json", Short: "print a data file of a run as CSV or as JSON lines",
		Example: "  weft results export quickstart flows csv\n  weft results export quickstart queues json",
		Args:    cobra.ExactArgs(3),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 1:
				return tableNames(), cobra.ShellCompDirectiveNoFileComp
			case 2:
				return []string{"csv", "json"}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dirs, err := runsNamed(*root, args[0])
			if err != nil {
				return err
			}
			if len(dirs) > 1 {
				return usagef("%s is a sweep of %d runs; name one of them: %s", args[0], len(dirs), dirs[0])
			}
			name := strings.TrimSuffix(args[1], ".parquet")
			if !slices.Contains(tableNames(), name) {
				return usagef("no table is called %q; there are %s", args[1], strings.Join(tableNames(), ", "))
			}
			if args[2] != "csv" && args[2] != "json" {
				return usagef("%q; expected csv or json", args[2])
			}
			return store.Export(untilDone{cmd.Context(), a.stdout}, dirs[0], name+".parquet", args[2])
		},
	}
	return cmd
}

// untilDone writes until its context is done, so that a signal ends what only writes.
type untilDone struct {
	ctx context.Context
	to  io.Writer
}

func (w untilDone) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.to.Write(p)
}

func tableNames() []string {
	var out []string
	for _, t := range store.Tables() {
		out = append(out, strings.TrimSuffix(t.File, ".parquet"))
	}
	return out
}
