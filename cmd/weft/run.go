package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/regular"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	orchestrate "weft/orchestrator/run"
	"weft/results/junit"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
)

// engine runs one experiment: the orchestrator, or a fake in tests.
type engine interface {
	Run(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error)
	Foresee(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (orchestrate.Forecast, error)
}

type orchestrated struct{}

func (orchestrated) Run(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (*record.Summary, error) {
	return orchestrate.Run(ctx, x, o)
}

func (orchestrated) Foresee(ctx context.Context, x *experiment.Experiment, o orchestrate.Options) (orchestrate.Forecast, error) {
	return orchestrate.Foresee(ctx, x, o)
}

// runFlags are the flags of weft run.
type runFlags struct {
	lab     labFlags
	kernel  string
	out     string
	junit   string
	summary string
	strict  string // the worst fidelity that is accepted; empty: any
	retry   bool
	quiet   bool
	json    bool
	resume  bool
	capture []string // POINT=FILE
}

// demoCommand is weft demo: the quickstart, wherever it is called.
func (a *app) demoCommand() *cobra.Command {
	flags := runFlags{lab: labFlags{builtIn: true}}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "run the quickstart, which is inside the program: no checkout, no file",
		Long: "Run the lab quickstart, emulated where this machine can and simulated where it cannot. The lab is inside the\n" +
			"program, as all labs that come with Weft: weft run pc4/incast works anywhere, too, unless a file is called so.\n\n" +
			"Where the machine is too busy for the dilation that was measured, the run is made once more, slower, as by\n" +
			"--retry-dilation; --dilation or --retry-dilation=false turn that off.",
		Example: "  weft demo\n  weft demo --engine sim\n  weft explain quickstart",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("retry-dilation") {
				flags.retry = flags.lab.Engine.Dilation == ""
			}
			return a.run(cmd.Context(), []string{"quickstart"}, flags)
		},
	}
	flags.lab.register(cmd)
	dilationFlags(cmd, &flags)
	kernelFlag(cmd, &flags.kernel)
	outFlag(cmd.Flags(), &flags.out)
	quietFlag(cmd, &flags.quiet)
	cmd.Flags().BoolVar(&flags.json, "json", false, "print a JSON object instead of tables")
	return cmd
}

// dilationFlags adds the flags that emulate.Advice names.
func dilationFlags(cmd *cobra.Command, flags *runFlags) {
	f := cmd.Flags()
	f.StringVar(&flags.lab.Engine.Dilation, "dilation", "", "auto or a number from 1: how much slower than the lab emulation runs")
	f.BoolVar(&flags.retry, "retry-dilation", false, "make an emulated run whose fidelity is not ok once more, slower; both are kept, the better counts")
}

func (a *app) runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run LAB...",
		Short: "run labs: deploy, run the workload, collect, destroy",
		Long: "Run labs. The first line printed says which engine was chosen and why; the summary follows. A lab with a\n" +
			"sweep is run once for each of its points. Every run leaves a directory under runs/. As in every command, LAB is a\n" +
			"file, or - for standard input (weft generate star | weft run -). Labs that come with Weft need no file: they are\n" +
			"inside the program.\n\n" +
			"An emulation says before it starts about how long it takes. How far runs are is on standard error: a bar on a\n" +
			"terminal, a line now and then elsewhere.\n\n" +
			"Exit codes: 0 all done and every expectation met; 1 the run failed; 2 the command line or a lab file is\n" +
			"wrong; 3 an expectation was missed; 4 the fidelity of a run is not what --strict asks for; 130 interrupted.\n" +
			"A run whose fidelity --strict refuses gives 4 even if it missed something, which is no evidence; 3 is for others.",
		Example: "  weft run labs/quickstart.yaml\n" +
			"  weft run labs/quickstart.yaml --engine both\n" +
			"  weft run labs/pc4/incast.yaml --engine sim --json\n" +
			"  weft run labs/quickstart.yaml --set seed=2 --strict --junit report.xml\n" +
			"  weft run labs/quickstart.yaml --engine emu --strict=degraded --retry-dilation\n" +
			"  weft run labs/pc4/incast-vs.yaml --engine sim --resume --summary summary.md\n" +
			"  weft run labs/ccm/example-emu.yaml --engine emu --capture h2=h2.pcapng",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: labFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args, flags) },
	}
	f := cmd.Flags()
	flags.lab.register(cmd)
	f.StringVar(&flags.lab.Engine.Runtime, "runtime", "", "auto, namespace or docker: where emulated nodes live")
	f.StringVar(&flags.lab.Engine.Datapath, "datapath", "", "auto, fabric or kernel: what carries emulated packets")
	dilationFlags(cmd, &flags)
	kernelFlag(cmd, &flags.kernel)
	outFlag(f, &flags.out)
	f.StringVar(&flags.junit, "junit", "", "also write a JUnit report to this file")
	f.StringVar(&flags.summary, "summary", "", "also append a summary in Markdown to this file, as $GITHUB_STEP_SUMMARY wants it")
	f.BoolVar(&flags.resume, "resume", false, "do not make a run again that this program finished with the same settings")
	runCaptureFlag(cmd, &flags.capture)
	strictFlag(cmd, &flags.strict)
	quietFlag(cmd, &flags.quiet)
	f.BoolVar(&flags.json, "json", false, "print one JSON object per run instead of tables")
	return cmd
}

// quietFlag adds the flag of commands that tell how far they are.
func quietFlag(cmd *cobra.Command, quiet *bool) {
	cmd.Flags().BoolVarP(quiet, "quiet", "q", false, "no words but warnings and errors: neither which engine was chosen, nor how far runs are")
}

func (a *app) run(ctx context.Context, names []string, flags runFlags) error {
	if err := checkStrict(flags.strict, names); err != nil {
		return err
	}
	if flags.retry && len(flags.capture) > 0 {
		return usagef("--retry-dilation may make a second run, and --capture has room for one; leave one of them away")
	}
	collectUsually := collectLate()
	files, err := flags.lab.load(names)
	if err != nil && flags.kernel == "host" {
		return orchestrate.WithMachine(ctx, err)
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		for _, l := range f.Labs {
			if err := experiment.Runnable(l); err != nil {
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
	reports, err := flags.outputs(jobs)
	if err != nil {
		return usageError{err}
	}
	if err := claimSweeps(jobs, flags.out); err != nil {
		return err
	}
	defer dropSweeps(jobs)
	runs, runErrs := a.runAll(ctx, jobs, flags)
	judged, err := a.acrossPoints(jobs, runs)
	all := append(runs[:len(runs):len(runs)], judged...)
	err = errors.Join(err, reports.write(runs, judged, flags.strict))
	if !flags.json {
		err = errors.Join(a.show(jobs, runs), table.Across(a.stdout, judged, style(a.stdout)), err)
	}
	if err != nil {
		return err
	}
	return verdict(ctx, all, together(runErrs, func(f failedRun) bool { return !flags.json && (f.left || len(runs) > 1) }), flags.strict)
}

// failedRun is the failure of a run, whose summary has it, too.
type failedRun struct {
	name string // of the lab and the point
	left bool   // it left a summary; otherwise it never began
	error
}

func (e failedRun) Error() string { return e.name + ": " + e.error.Error() }
func (e failedRun) Unwrap() error { return e.error }

// told are failures of runs of which what was printed says why.
type told []failedRun

func (e told) Error() string {
	if len(e) == 1 {
		return e[0].name + " failed; its summary says why"
	}
	return fmt.Sprintf("%d runs failed; their summaries say why", len(e))
}

func (e told) Unwrap() []error {
	all := make([]error, len(e))
	for i := range e {
		all[i] = e[i]
	}
	return all
}

// alike are runs that failed for the same reason.
type alike struct {
	names []string
	error
}

func (e *alike) Error() string { return strings.Join(e.names, ", ") + ": " + e.error.Error() }
func (e *alike) Unwrap() error { return e.error }

// isProblem says that an error is of a lab file, whose place is told as every such error is.
func isProblem(err error) bool {
	var one lab.Problem
	var all lab.Problems
	return errors.As(err, &one) || errors.As(err, &all)
}

// together joins errors, of which each reason is told once. printed says that what was printed tells it already.
func together(errs []error, printed func(failedRun) bool) error {
	var all []error
	var before told
	same := map[string]*alike{}
	for _, err := range errs {
		f, ok := err.(failedRun)
		switch {
		case !ok:
			all = append(all, err)
		case printed(f) && !isProblem(f):
			before = append(before, f)
		case same[f.error.Error()] != nil:
			one := same[f.error.Error()]
			one.names = append(one.names, f.name)
		default:
			one := &alike{names: []string{f.name}, error: f.error}
			same[f.error.Error()] = one
			all = append(all, one)
		}
	}
	if before != nil {
		all = append([]error{before}, all...)
	}
	return errors.Join(all...)
}

// reports are the files that are written after all runs; nil: not wanted.
type reports struct{ junit, summary *os.File }

// outputs makes sure, before anything runs, that what the runs leave can be written, and opens the reports.
func (f *runFlags) outputs(jobs []job) (r reports, err error) {
	var labs []string
	for i := range jobs {
		labs = append(labs, jobs[i].lab.Name)
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
	return r, nil
}

// write writes and closes the reports.
func (r reports) write(runs, across []*record.Summary, strict string) error {
	return errors.Join(
		writeOutput("junit report", r.junit, func(w io.Writer) error { return junit.Write(w, runs, across, strict) }),
		writeOutput("summary", r.summary, func(w io.Writer) error { return table.Markdown(w, slices.Concat(runs, across)) }))
}

// writeOutput writes and closes one of the reports, if it is wanted.
func writeOutput(what string, f *os.File, write func(io.Writer) error) error {
	if f == nil {
		return nil
	}
	err := write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// verdict is how all the runs came out, the worst first.
func verdict(ctx context.Context, runs []*record.Summary, runErr error, strict string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if runErr != nil {
		return runErr
	}
	for _, s := range runs {
		if s.Status != record.OK {
			return fmt.Errorf("%s: %s: %s", s.Lab, s.Status, s.Error)
		}
	}
	var doubtful, missed error
	for _, s := range runs {
		if !s.Fidelity.Accepted(strict) {
			doubtful = fmt.Errorf("%s: the fidelity is %s, and %w", s.Lab, s.Fidelity.Verdict, errFidelity)
			break
		}
	}
	for _, s := range runs {
		across := s.Run == "" && s.Engine != "sim" // what was expected across points of emulations rests on all of them
		if table.Missed(s) > 0 && s.Fidelity.Accepted(strict) && (doubtful == nil || !across) {
			missed = errMissed
		}
	}
	return cmp.Or(missed, doubtful)
}

// strictFlag adds --strict, alone or with the worst fidelity that is accepted.
func strictFlag(cmd *cobra.Command, strict *string) {
	f := cmd.Flags()
	f.StringVar(strict, "strict", "", "exit with 4 unless the fidelity of every emulated run is ok; --strict=degraded takes degraded, too")
	f.Lookup("strict").NoOptDefVal = "ok"
}

// checkStrict refuses other words, and one that is no file and stands behind --strict without an equals sign: it is taken for a lab.
func checkStrict(strict string, labs []string) error {
	for _, word := range []string{"ok", "degraded"} {
		if _, err := os.Stat(word); strict == "ok" && slices.Contains(labs, word) && err != nil {
			return usagef("--strict %s; a word belongs behind an equals sign: --strict=%s", word, word)
		}
	}
	switch strict {
	case "", "ok", "degraded":
		return nil
	}
	return usagef("--strict=%s; expected --strict, or --strict=degraded", strict)
}

// show prints one run in full, or several as a table with what was missed below it.
func (a *app) show(jobs []job, runs []*record.Summary) error {
	st := style(a.stdout)
	switch {
	case len(runs) == 0:
		return nil
	case len(runs) == 1 && runs[0].Run == "" && runs[0].Status != "ok":
		return nil // it never began: the error says all
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
		if err := a.showSeveral(runs); err != nil {
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

// showSeveral prints several runs as a table, and below it what was missed and what they warn of.
func (a *app) showSeveral(runs []*record.Summary) error {
	st := style(a.stdout)
	return errors.Join(table.Points(a.stdout, runs, st), table.Misses(a.stdout, runs, st), table.Warnings(a.stdout, runs, st))
}
