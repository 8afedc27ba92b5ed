package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"weft/internal/clip"
	"weft/internal/plural"
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
		Long: `Check lab files without running anything. All errors of all files are reported at once, as
file:line:column: path: message, including the syntax, names and units of expectations.

A warning names a condition that a transport needs and the lab does not meet, such as PFC for roce.
Warnings do not change the exit code.`,
		Example: `  weft validate labs/quickstart.yaml
  weft validate labs/quickstart.yaml labs/pc4/incast.yaml --json
  weft validate labs/quickstart.yaml --set topology.k=8`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: labFiles,
		RunE:              func(_ *cobra.Command, args []string) error { return a.validate(args, flags, asJSON) },
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the errors of each file as JSON")
	return cmd
}

// validated is the output of weft validate --json for a file.
type validated struct {
	File     string    `json:"file"`
	OK       bool      `json:"ok"`
	Runs     int       `json:"runs"` // points of the sweep; 0 if there is nothing to run
	Note     string    `json:"note,omitempty"`
	Problems []problem `json:"problems"`
	Warnings []problem `json:"warnings"` // of a file that is ok
}

// problem is an error or a warning of a lab file, or of a flag.
type problem struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Flag    string `json:"flag,omitempty"`
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
}

// problems returns the problems of a lab file for JSON.
func problems(all lab.Problems) []problem {
	out := make([]problem, len(all))
	for i, p := range all {
		out[i] = problem{p.Line, p.Column, p.Flag, p.Path, p.Message}
	}
	return out
}

// validate checks lab files and prints the result.
func (a *app) validate(names []string, flags labFlags, asJSON bool) error {
	var all lab.Problems
	results := []validated{}
	for _, name := range names {
		f, err := flags.loadOne(name)
		var wrong lab.Problems
		if err != nil && !errors.As(err, &wrong) {
			wrong = lab.Problems{{File: clip.Line(labfile.NameOf(name)), Message: readProblem(err)}}
		}
		all = append(all, wrong...)
		c := validated{File: name, OK: err == nil, Runs: len(f.Labs), Problems: problems(wrong)}
		outside := experiment.OutsideOf(f.Labs)
		c.Warnings = problems(outside)
		for _, p := range outside {
			if !asJSON {
				fmt.Fprintf(a.stderr, "warning: %v\n", p)
			}
		}
		if c.OK && experiment.Runnable(f.Labs[0]) != nil {
			c.Runs, c.Note = 0, "nothing to run: weft deploy, plan, graph and explain work, "+
				"weft run needs a workload or clocks.for"
		}
		if c.OK && !asJSON {
			result := cmp.Or(c.Note, plural.Count(c.Runs, "run"))
			if why := experiment.UnknownTime(f.Labs[0]); c.Runs > 0 && why != "" {
				result += "; " + why
			}
			fmt.Fprintf(a.stdout, "%s: %s, %s\n", labfile.NameOf(name), style(a.stdout).Good("ok"), result)
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

// readProblem returns why a file could not be read, without the name of the file.
func readProblem(err error) string {
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
