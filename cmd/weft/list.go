package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/clip"
	"weft/internal/plural"
	"weft/internal/terminal"
	"weft/results/report"
	"weft/results/store"
)

// listFlags are the flags of weft results ls.
type listFlags struct {
	last   int
	failed bool
	since  string
	json   bool
}

func (a *app) resultsList(root *string) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use: "ls [LAB]", Aliases: []string{"list"}, Short: "list runs, of one lab or of all",
		Long: `List runs: labs in the order of their names (s2 before s10), and for each lab the newest run last.
settings has the values of the sweep and of --set; slowdown is the 99th percentile, or the clock error
if there is no workload; busbw is that of the first collective. The sweeps of a lab with expectations
across points follow its runs. On a terminal the list goes through
$PAGER (less), as in git; PAGER=cat prints it.`,
		Example: `  weft results ls
  weft results ls pc4-incast --json
  weft results ls --last 10
  weft results ls --failed --since 2h`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter := report.Filter{Failed: flags.failed, Last: flags.last}
			if len(args) == 1 {
				filter.Lab = filepath.Base(args[0])
			}
			var err error
			if filter.Since, err = report.ParseSince(flags.since, time.Now()); err != nil {
				return usagef("--since %w", err)
			}
			if flags.last < 1 && cmd.Flags().Changed("last") {
				return usagef("-n %d: expected a number of runs, at least 1, such as -n 10; "+
					"without -n (--last) all are listed", flags.last)
			}
			if err := checkRoot(*root); err != nil {
				return err
			}
			if filter.Lab != "" {
				if runs, err := store.Runs(*root, filter.Lab); len(runs) == 0 && !isUnreadable(err) {
					return unknownLab(*root, args[0])
				}
			}
			out, err := report.List(*root, filter)
			if !isUnreadable(err) {
				err = nil
			}
			if hint := formerRootHint(*root); hint != "" {
				fmt.Fprintln(a.stderr, hint)
			}
			if flags.json {
				return cmp.Or(writeJSON(a.stdout, out), err)
			}
			if len(out) == 0 && err == nil {
				fmt.Fprintf(a.stderr, "no run to list in %s\n", *root)
			}
			return cmp.Or(a.paged(func(w io.Writer) error { return report.WriteList(w, out, style(a.stdout)) }), err)
		},
	}
	f := cmd.Flags()
	f.IntVarP(&flags.last, "last", "n", 0, "only this number of runs, the newest (default all)")
	f.BoolVar(&flags.failed, "failed", false,
		"only runs that are not ok, missed an expectation or have an invalid fidelity, and sweeps that missed one")
	f.StringVar(&flags.since, "since", "",
		"only runs that began later: a time ago, such as 2h or 3d, or a date, such as 2026-01-31 or 2026-01-31T15:04")
	f.BoolVar(&flags.json, "json", false, "print JSON")
	return cmd
}

// unknownLab returns the error for a lab without runs below root. The argument may be a directory
// of runs instead.
func unknownLab(root, arg string) error {
	hint := ""
	if info, err := os.Stat(arg); err == nil && info.IsDir() {
		hint = "; to list the runs in that directory: weft results ls --out " + clip.Line(arg)
	} else if near := store.Near(root, arg); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return usagef("no run of a lab %s in %s%s", clip.Line(filepath.Base(arg)), root, hint)
}

// paged writes to standard output, through a pager if that is a terminal.
func (a *app) paged(write func(io.Writer) error) error {
	if out, ok := a.stdout.(*os.File); ok && isTerminal(out) {
		return terminal.Page(out, a.stderr, write)
	}
	return write(a.stdout)
}

// checkApart tells of runs that are on both sides of a comparison: a slip such as that of a script
// which names one directory twice. If all are, a gate would look at nothing, which is an error. Two
// lists of weft run may name the same runs: --resume took those of the base, since nothing changed.
func (a *app) checkApart(names [2]string, sides [2]report.Side, flags compareFlags) error {
	both := report.Shared(sides[0], sides[1])
	switch {
	case both == 0:
		return nil
	case both < min(len(sides[0]), len(sides[1])):
		fmt.Fprintf(a.stderr, "warning: both sides share %s, which cannot differ\n", plural.Count(both, "run"))
		return nil
	}
	text := fmt.Sprintf("%s and %s have the same runs, so nothing can differ", clip.Line(names[0]), clip.Line(names[1]))
	if flags.failIf != "" && (!isFile(names[0]) || !isFile(names[1])) {
		return usagef("%s; expected the runs of a change beside those of its base", text)
	}
	fmt.Fprintf(a.stderr, "warning: %s\n", text)
	return nil
}
