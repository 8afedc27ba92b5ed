package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
)

func (a *app) validateCommand() *cobra.Command {
	var flags labFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate LAB...",
		Short: "check lab files: every error, with line and column",
		Long: "Check lab files without running anything. Every error of every file is reported at once, as\n" +
			"file:line:column: path: message. Expectations are checked too: their syntax, names and units.\n\n" +
			"A warning names a condition that a transport relies on and the lab does not meet, such as PFC for roce. It does\n" +
			"not change the exit code.",
		Example: "  weft validate labs/quickstart.yaml\n" +
			"  weft validate labs/quickstart.yaml labs/pc4/incast.yaml --json\n" +
			"  weft validate labs/quickstart.yaml --set topology.k=8",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: labFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return a.validate(args, flags, asJSON) },
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the errors of each file as JSON")
	return cmd
}

// checked is what `weft validate --json` prints of a file.
type checked struct {
	File     string  `json:"file"`
	OK       bool    `json:"ok"`
	Runs     int     `json:"runs"` // points of the sweep; 0 where there is nothing to run
	Note     string  `json:"note,omitempty"`
	Problems []wrong `json:"problems"`
	Warnings []wrong `json:"warnings"` // of a file that is ok
}

type wrong struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Flag    string `json:"flag,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

func (a *app) validate(names []string, flags labFlags, asJSON bool) error {
	var all lab.Problems
	results := []checked{}
	for _, name := range names {
		f, err := flags.loadOne(name)
		var problems lab.Problems
		if err != nil && !errors.As(err, &problems) {
			problems = lab.Problems{{File: name, Message: unreadable(err)}}
		}
		all = append(all, problems...)
		c := checked{File: name, OK: err == nil, Runs: len(f.Labs), Problems: []wrong{}, Warnings: []wrong{}}
		for _, p := range problems {
			c.Problems = append(c.Problems, wrong{p.Line, p.Column, p.Flag, p.Path, p.Message})
		}
		for _, p := range experiment.OutsideOf(f.Labs) {
			c.Warnings = append(c.Warnings, wrong{p.Line, p.Column, p.Flag, p.Path, p.Message})
			if !asJSON {
				fmt.Fprintf(a.stderr, "warning: %v\n", p)
			}
		}
		if c.OK && experiment.Runnable(f.Labs[0]) != nil {
			c.Runs, c.Note = 0, "nothing to run: weft deploy, plan, graph and explain can use it, weft run needs a workload or clocks.for"
		}
		if c.OK && !asJSON {
			fmt.Fprintf(a.stdout, "%s: %s, %s\n", name, style(a.stdout).Good("ok"), cmp.Or(c.Note, plural(c.Runs, "run")))
		}
		results = append(results, c)
	}
	if asJSON {
		if err := writeJSON(a.stdout, results); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// unreadable is why a file could not be read, without its name, which stands before it.
func unreadable(err error) string {
	var path *fs.PathError
	var lost labfile.Missing
	hint := ""
	if errors.As(err, &lost) {
		hint = "; " + lost.Hint
	}
	if errors.As(err, &path) {
		err = path.Err
	}
	return "cannot be read: " + err.Error() + hint
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
