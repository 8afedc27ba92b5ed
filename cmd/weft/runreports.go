package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"weft/internal/clip"
	"weft/internal/regular"
	"weft/orchestrator/labfile"
	"weft/orchestrator/series"
	"weft/results/junit"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
)

// gateFlags adds the flags of a gate: what ran, and labs that one of its sides may lack.
func gateFlags(f *pflag.FlagSet, flags *runFlags) {
	f.StringVar(&flags.list, "list", "",
		"also write the runs of this command, reused ones too, to this file, for weft results compare")
	f.BoolVar(&flags.skip, "skip-missing", false,
		"skip labs that do not exist, and say which; it is no error if none is left")
}

// reports are the files to write after all runs; nil: not requested.
type reports struct{ junit, summary, list *os.File }

// openReports checks, before anything runs, that the runs can be stored, and opens the reports.
func (f *runFlags) openReports(jobs []series.Job) (r reports, err error) {
	var labs []string
	for i := range jobs {
		labs = append(labs, jobs[i].Lab.Name)
	}
	if err := store.CheckRoot(f.out, slices.Compact(labs)...); err != nil {
		return r, err
	}
	if f.summary != "" {
		if r.summary, err = regular.OpenOutput(f.summary, os.O_APPEND); err != nil {
			return r, fmt.Errorf("summary: %w", err)
		}
	}
	if f.junit != "" {
		if r.junit, err = regular.OpenOutput(f.junit, os.O_TRUNC); err != nil {
			return r, fmt.Errorf("junit report: %w", err)
		}
	}
	if f.list != "" { // empty until the end, so that nobody takes an older one for that of a killed command
		if r.list, err = regular.OpenOutput(f.list, os.O_TRUNC); err != nil {
			return r, fmt.Errorf("list of runs: %w", err)
		}
	}
	return r, nil
}

// writeNone writes the reports of a command line without a lab.
func (f *runFlags) writeNone() error {
	r, err := f.openReports(nil)
	if err != nil {
		return usageError{err}
	}
	return r.write(nil, nil, f)
}

// existing returns the labs that exist, and says which do not.
func (a *app) existing(labs []string, builtIn bool) (left []string) {
	for _, name := range labs {
		if name != labfile.Stdin {
			if _, err := labfile.Open(name, builtIn); errors.Is(err, fs.ErrNotExist) {
				fmt.Fprintf(a.stderr, "skipped: %s does not exist here\n", clip.Line(name))
				continue
			}
		}
		left = append(left, name)
	}
	if len(left) == 0 {
		fmt.Fprintln(a.stderr, "no lab is left to run")
	}
	return left
}

// write writes and closes the reports.
func (r reports) write(runs, across []*record.Summary, f *runFlags) error {
	return errors.Join(
		writeReport("junit report", r.junit, func(w io.Writer) error {
			return junit.Write(w, runs, across, f.strict)
		}),
		writeReport("list of runs", r.list, func(w io.Writer) error {
			return store.WriteList(w, f.list, versionText(), runs, across)
		}),
		writeReport("summary", r.summary, func(w io.Writer) error {
			return table.Markdown(w, slices.Concat(runs, across))
		}))
}

// writeReport writes and closes a report, if it is requested.
func writeReport(what string, f *os.File, write func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	if err := cmp.Or(write(f), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
