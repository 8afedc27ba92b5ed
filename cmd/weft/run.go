package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/results/junit"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
)

// engine runs one lab: the orchestrator, or a fake in tests.
type engine interface {
	Run(ctx context.Context, l *lab.Lab, o orchestrate.Options) (*record.Summary, error)
}

type orchestrated struct{}

func (orchestrated) Run(ctx context.Context, l *lab.Lab, o orchestrate.Options) (*record.Summary, error) {
	return orchestrate.Run(ctx, l, o)
}

// runFlags are the flags of weft run.
type runFlags struct {
	lab     labFlags
	kernel  string
	out     string
	junit   string
	summary string
	strict  bool
	json    bool
	resume  bool
	capture []string // POINT=FILE

	only func(*lab.Lab) error // changes a lab before it is run; nil: none
}

func (a *app) runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run LAB...",
		Short: "run labs: deploy, run the workload, collect, destroy",
		Long: "Run labs. The first line printed says which engine was chosen and why; the summary follows. A lab with a\n" +
			"sweep is run once for each of its points. Every run leaves a directory under results/.\n\n" +
			"Exit codes: 0 all done and every expectation met; 1 the run failed; 2 the command line or a lab file is\n" +
			"wrong; 3 an expectation was missed, or the fidelity was not ok under --strict; 130 interrupted.",
		Example: "  weft run labs/quickstart.yaml\n" +
			"  weft run labs/quickstart.yaml --engine both\n" +
			"  weft run labs/pc4/incast.yaml --engine sim --json\n" +
			"  weft run labs/quickstart.yaml --set seed=2 --strict --junit report.xml\n" +
			"  weft run labs/pc4/incast-vs.yaml --engine sim --resume --summary summary.md\n" +
			"  weft run labs/ccm/example-emu.yaml --engine emu --capture h2=h2.pcapng",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: labFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, flags) },
	}
	f := cmd.Flags()
	flags.lab.register(cmd)
	f.StringVar(&flags.lab.engine.Runtime, "runtime", "", "auto, namespace or docker: where emulated nodes live")
	f.StringVar(&flags.lab.engine.Datapath, "datapath", "", "auto, fabric or kernel: what carries emulated packets")
	f.StringVar(&flags.lab.engine.Dilation, "dilation", "", "auto or a number from 1: how much slower than the lab emulation runs")
	kernelFlag(cmd, &flags.kernel)
	f.StringVar(&flags.out, "out", "", "directory that keeps all runs (default results)")
	f.StringVar(&flags.junit, "junit", "", "also write a JUnit report to this file")
	f.StringVar(&flags.summary, "summary", "", "also append a summary in Markdown to this file, as $GITHUB_STEP_SUMMARY wants it")
	f.BoolVar(&flags.resume, "resume", false, "do not make a run again that this program finished with the same settings")
	runCaptureFlag(cmd, &flags.capture)
	f.BoolVar(&flags.strict, "strict", false, "exit with 3 unless the fidelity of every emulated run is ok")
	f.BoolVar(&flags.json, "json", false, "print one JSON object per run instead of tables")
	return cmd
}

func (a *app) run(ctx context.Context, names []string, flags runFlags) error {
	collectUsually := collectLate()
	files, err := flags.lab.load(names)
	if err != nil {
		return err
	}
	for _, f := range files {
		for _, l := range f.labs {
			if flags.only != nil {
				if err := flags.only(l); err != nil {
					return err
				}
			}
			if err := orchestrate.Runnable(l); err != nil {
				return err
			}
		}
	}
	jobs := jobsOf(files, time.Now())
	captures, err := flags.captures(jobs)
	if err != nil {
		return err
	}
	written := []string{flags.out, flags.junit, flags.summary}
	for _, c := range captures {
		jobs[0].captures = append(jobs[0].captures, c)
		written = append(written, c.File)
	}
	if err := a.on(ctx, flags.kernel, jobs, written...); err != nil {
		return err
	}
	if emulates(jobs) {
		collectUsually()
		if err := a.elevate(runtimeOf(jobs)); err != nil {
			return err
		}
	}
	report, err := flags.outputs()
	if err != nil {
		return usageError{err}
	}
	runs, runErr := a.runAll(ctx, jobs, flags)
	judged, err := a.acrossPoints(jobs, runs, flags)
	all := append(runs[:len(runs):len(runs)], judged...)
	err = errors.Join(err, writeJUnit(report, runs, judged, flags.strict), writeMarkdown(flags.summary, all))
	if !flags.json {
		err = errors.Join(a.show(jobs, runs), table.Across(a.stdout, judged, style(a.stdout)), err)
	}
	if err != nil {
		return err
	}
	if len(runs) == 1 && !flags.json && runErr != nil {
		runErr = told{runErr}
	}
	return verdict(ctx, all, runErr, flags.strict)
}

// told is an error whose details, the lines after the first, the summary has printed.
type told struct{ error }

func (e told) Error() string {
	first, _, _ := strings.Cut(e.error.Error(), "\n")
	return first
}

func (e told) Unwrap() error { return e.error }

// outputs makes sure, before anything runs, that what the runs leave can be written, and creates the JUnit report;
// nil when none is wanted.
func (f *runFlags) outputs() (report *os.File, err error) {
	if err := store.CheckRoot(f.out); err != nil {
		return nil, err
	}
	if f.junit == "" {
		return nil, nil
	}
	if report, err = os.Create(f.junit); err != nil {
		return nil, fmt.Errorf("junit report: %w", err)
	}
	return report, nil
}

// verdict is how all the runs came out, the worst first.
func verdict(ctx context.Context, runs []*record.Summary, runErr error, strict bool) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if runErr != nil {
		return runErr
	}
	for _, s := range runs {
		if s.Status == "ok" && !s.Verified {
			return fmt.Errorf("%s: the data is not verified: a collective has wrong elements or was not checked", s.Lab)
		}
	}
	for _, s := range runs {
		if table.Missed(s) > 0 || strict && s.Fidelity != nil && s.Fidelity.Verdict != "ok" {
			return errMissed
		}
	}
	return nil
}

// show prints one run in full, or several as a table with what was missed below it.
func (a *app) show(jobs []job, runs []*record.Summary) error {
	st := style(a.stdout)
	switch {
	case len(runs) == 0:
		return nil
	case len(runs) == 1:
		return table.Summary(a.stdout, runs[0], st)
	case len(runs) == 2 && jobs[0].compare:
		for _, s := range runs {
			if err := table.Summary(a.stdout, s, st); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout)
		}
	default:
		if err := table.Points(a.stdout, runs, st); err != nil {
			return err
		}
		if err := table.Misses(a.stdout, runs, st); err != nil {
			return err
		}
	}
	for i := 0; i+1 < len(runs); i++ {
		if !jobs[i].compare {
			continue
		}
		if len(runs) > 2 {
			fmt.Fprintln(a.stdout)
		}
		if err := table.Compare(a.stdout, runs[i], runs[i+1], st); err != nil {
			return err
		}
	}
	return nil
}

// writeJUnit writes and closes the report, if one is wanted.
func writeJUnit(report *os.File, runs, across []*record.Summary, strict bool) error {
	if report == nil {
		return nil
	}
	err := junit.Write(report, runs, across, strict)
	if cerr := report.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("junit report: %w", err)
	}
	return nil
}
