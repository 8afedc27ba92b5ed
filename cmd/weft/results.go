package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
		Short: "read what runs left: list, show, compare, plot, export",
		Long: "Read run directories. RUN is the directory of a run, or a lab: then its newest run, or all points of its newest\n" +
			"sweep, is meant. docs/results.md describes every file and column.",
	}
	cmd.PersistentFlags().StringVar(&root, "out", "results", "directory that keeps all runs")
	cmd.AddCommand(a.resultsList(&root), a.resultsShow(&root), a.resultsCompare(&root), a.resultsPlot(&root), a.resultsExport(&root))
	return cmd
}

// runsNamed finds the run directories that an argument means.
func runsNamed(root, name string) ([]string, error) {
	candidates := []string{name, filepath.Join(root, name)}
	for _, dir := range candidates {
		if isRun(dir) {
			return []string{dir}, nil
		}
		if runs := newest(dir); len(runs) > 0 {
			return runs, nil
		}
	}
	_, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("no run is called %s; `weft results ls` lists those in %s", name, root)
	}
	return nil, usagef("%s holds no run: there is no %s", name, store.ManifestFile)
}

func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, store.ManifestFile))
	return err == nil
}

// newest is the runs below a folder that one command line made, the last one that there was.
func newest(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	last := ""
	var out []string
	for _, e := range entries {
		dir := filepath.Join(folder, e.Name())
		stamp, _, ok := strings.Cut(e.Name(), "-")
		if !ok || !isRun(dir) {
			continue
		}
		if stamp != last {
			last, out = stamp, nil
		}
		out = append(out, dir)
	}
	slices.SortFunc(out, func(x, y string) int {
		if len(x) != len(y) {
			return len(x) - len(y) // 2 before 10
		}
		return strings.Compare(x, y)
	})
	return out
}

// listed is a line of `weft results ls --json`.
type listed struct {
	Run     string         `json:"run"`
	Lab     string         `json:"lab,omitempty"`
	Point   map[string]any `json:"point,omitempty"`
	Engine  string         `json:"engine,omitempty"`
	Seed    uint64         `json:"seed"`
	Started string         `json:"started,omitempty"`
	Status  string         `json:"status"`
	Error   string         `json:"error,omitempty"`
}

func (a *app) resultsList(root *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls [LAB]", Short: "list the runs, of one lab or of all", Example: "  weft results ls\n  weft results ls pc4-incast --json",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			lab := "*"
			if len(args) == 1 {
				lab = filepath.Base(args[0])
			}
			files, err := filepath.Glob(filepath.Join(*root, lab, "*", store.ManifestFile))
			if err != nil {
				return usageError{err}
			}
			out := []listed{}
			for _, f := range files {
				l := listed{Run: filepath.Dir(f)}
				if m, err := store.ReadManifest(l.Run); err != nil {
					l.Status, l.Error = "damaged", err.Error()
				} else {
					l.Lab, l.Point, l.Engine, l.Seed, l.Started, l.Status, l.Error = m.Lab, m.Point, m.Engine, m.Seed, m.Started, m.Status, m.Error
				}
				out = append(out, l)
			}
			if asJSON {
				return writeJSON(a.stdout, out)
			}
			rows := make([][]string, len(out))
			for i, l := range out {
				rows[i] = []string{l.Run, l.Started, l.Engine, table.Point(l.Point), l.Status, l.Error}
			}
			return table.Rows(a.stdout, []string{"run", "started", "engine", "point", "status", ""}, rows, style(a.stdout))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) resultsShow(root *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show RUN", Short: "print the summary of a run, or the table of a sweep",
		Example: "  weft results show quickstart\n  weft results show results/quickstart/20260101T000000-1 --json",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dirs, err := runsNamed(*root, args[0])
			if err != nil {
				return err
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
			return errors.Join(table.Points(a.stdout, runs, style(a.stdout)), table.Misses(a.stdout, runs, style(a.stdout)))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per run")
	return cmd
}

func (a *app) resultsCompare(root *string) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "compare A B", Short: "say what differs between two runs or sweeps beyond noise, and by how much",
		Long: "Compare two runs, or two sweeps point by point. Where both have several seeds, a difference is held against chance by the\n" +
			"Mann-Whitney U test (it takes four seeds on each side to see any), and one run against several by Student's t. Of single\n" +
			"runs, means and percentiles of flows are held against a bootstrap over the flows; anything else of simulations is exact, and of\n" +
			"emulations nothing is known. A difference counts if its p, adjusted for all that are compared (Benjamini and Hochberg),\n" +
			"is below 0.05. ~ is no difference beyond noise, ? one that nothing is known of.",
		Example: "  weft results compare results/pc4-incast/20260101T000000-1 results/pc4-incast/20260102T000000-1\n  weft results compare before after --json",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			var sides [2]report.Side
			for i, name := range args {
				dirs, err := runsNamed(*root, name)
				if err != nil {
					return err
				}
				for _, dir := range dirs {
					r, err := report.Load(dir)
					if err != nil {
						return err
					}
					sides[i] = append(sides[i], r)
				}
			}
			d, err := report.Compare(sides[0], sides[1])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(a.stdout, d)
			}
			if !all {
				kept := slices.DeleteFunc(slices.Clone(d), func(d report.Difference) bool { return !d.Beyond })
				if len(kept) == 0 {
					fmt.Fprintf(a.stderr, "nothing of %d numbers differs beyond noise; --all shows them\n", len(d))
					if word := report.SingleSeeds(d); word != "" {
						fmt.Fprintln(a.stderr, word)
					}
					return nil
				}
				d = kept
			}
			t := report.Comparison(d)
			if err := table.Rows(a.stdout, t.Head, t.Rows, style(a.stdout)); err != nil {
				return err
			}
			if word := report.SingleSeeds(d); word != "" {
				fmt.Fprintln(a.stderr, word)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "also show what does not differ")
	return cmd
}

func (a *app) resultsPlot(root *string) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "plot RUN...", Short: "draw what a run measured into its plots/, and its report.html anew",
		Example: "  weft results plot quickstart\n  weft results plot quickstart --format png",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "svg" && format != "png" {
				return usagef("--format %q; expected svg or png", format)
			}
			for _, name := range args {
				dirs, err := runsNamed(*root, name)
				if err != nil {
					return err
				}
				for _, dir := range dirs {
					if err := a.plotRun(dir, format); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "svg", "svg or png")
	return cmd
}

func (a *app) plotRun(dir, format string) error {
	r, err := report.Load(dir)
	if err != nil {
		return err
	}
	figures, err := r.Figures()
	if err != nil {
		return err
	}
	for _, f := range figures {
		path, ok, err := draw(f, filepath.Join(dir, plotsFolder), f.Name, format)
		if err != nil {
			return err
		}
		if ok {
			fmt.Fprintln(a.stdout, path)
		}
	}
	if err := writeReport(dir); err != nil {
		return err
	}
	fmt.Fprintln(a.stdout, filepath.Join(dir, reportFile))
	return nil
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
