package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
		Use: "ls [LAB]", Aliases: []string{"list"}, Short: "list the runs, of one lab or of all",
		Long: "List the runs: labs in the order of their names (s2 before s10), and of each the newest run last. settings are the values of\n" +
			"the sweep and those of --set; slowdown is the 99th percentile, or the error of clocks where there is no workload; busbw is of\n" +
			"the first collective. On a terminal the list goes through $PAGER (less), as git's do; PAGER=cat does without.",
		Example: "  weft results ls\n  weft results ls pc4-incast --json\n  weft results ls --last 10\n  weft results ls --failed --since 2h",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			lab := ""
			if len(args) == 1 {
				lab = filepath.Base(args[0])
			}
			since, err := sinceOf(flags.since, time.Now())
			if err != nil {
				return err
			}
			if flags.last < 0 {
				return usagef("--last %d; expected how many runs", flags.last)
			}
			out := report.List(*root, report.Filter{Lab: lab, Since: since, Failed: flags.failed, Last: flags.last})
			if word := moved(*root); word != "" {
				fmt.Fprintln(a.stderr, word)
			}
			if flags.json {
				return writeJSON(a.stdout, out)
			}
			if len(out) == 0 {
				fmt.Fprintf(a.stderr, "no run to list in %s%s\n", *root, elsewhereListed(*root, args))
			}
			return a.paged(func(w io.Writer) error { return report.WriteList(w, out, style(a.stdout)) })
		},
	}
	f := cmd.Flags()
	f.IntVarP(&flags.last, "last", "n", 0, "only so many runs, the newest (default all)")
	f.BoolVar(&flags.failed, "failed", false, "only runs that are not ok, or missed an expectation")
	f.StringVar(&flags.since, "since", "", "only runs that began since then: a time ago such as 2h or 3d, or a date such as 2026-01-31 or 2026-01-31T15:04")
	f.BoolVar(&flags.json, "json", false, "print JSON")
	return cmd
}

// elsewhereListed says how to list the runs in a directory that was named where a lab belongs; "": the argument is of a lab of root, or
// no directory.
func elsewhereListed(root string, args []string) string {
	if len(args) == 0 || len(store.Runs(root, filepath.Base(args[0]))) > 0 {
		return ""
	}
	if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
		return ""
	}
	return fmt.Sprintf(" of a lab %s; weft results ls --out %s lists the runs in that directory", filepath.Base(args[0]), args[0])
}

// sinceOf parses a duration before now, or a date. Empty text is the zero instant.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 1e5 {
			return now.Add(-time.Duration(n * 24 * float64(time.Hour))), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("--since %q; expected a time ago such as 2h or 3d, or a date such as 2026-01-31", text)
}

// paged writes through $PAGER if standard output is a terminal and the pager exists, else directly.
func (a *app) paged(write func(io.Writer) error) error {
	out, ok := a.stdout.(*os.File)
	pager, set := os.LookupEnv("PAGER")
	if !set {
		pager = "less"
	}
	if !ok || !terminal(out) || pager == "" || pager == "cat" {
		return write(a.stdout)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", pager)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text.Bytes()), out, a.stderr
	cmd.Env = os.Environ()
	if os.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX") // ends where all is on one page, and shows colours
	}
	if name, _, _ := strings.Cut(pager, " "); name != "" {
		if _, err := exec.LookPath(name); err != nil {
			_, err := out.Write(text.Bytes())
			return err
		}
	}
	_ = cmd.Run() // whoever reads may stop when they have seen enough
	return nil
}
