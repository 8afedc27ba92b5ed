package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/shell"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/series"
	"weft/orchestrator/uml"
	"weft/results/record"
	"weft/results/report"
	"weft/results/store"
	"weft/results/table"
)

// orchestrated is the engine of the program.
type orchestrated struct{}

func (orchestrated) Run(
	ctx context.Context, x *experiment.Experiment, o orchestrate.Options,
) (*record.Summary, error) {
	return orchestrate.Run(ctx, x, o)
}

func (orchestrated) Predict(
	ctx context.Context, x *experiment.Experiment, o orchestrate.Options,
) (orchestrate.Forecast, error) {
	return orchestrate.NewForecast(ctx, x, o)
}

// runFlags are the flags of weft run.
type runFlags struct {
	lab      labFlags
	kernel   string
	out      string
	junit    string
	summary  string
	list     string
	skip     bool   // labs that are not there are skipped
	strict   string // the worst accepted fidelity; empty: any
	retry    bool
	twice    bool // see series.Runner
	program  programFlags
	machine  machineFlags
	quiet    bool
	json     bool
	resume   bool
	capture  []string // POINT=FILE
	view     bool
	live     *liveView // nil: nobody watches in a browser
	watch    bool
	terminal *terminalView                // nil: nobody watches in this terminal
	machines orchestrate.Machines         // nil: all parts run on this one
	done     func(runs []*record.Summary) // called with the summaries of all runs; may be nil
	pageless bool                         // the points of a sweep get no page of their own
}

// retryFlags adds the flags that emulate.Advice names.
func retryFlags(cmd *cobra.Command, flags *runFlags) {
	dilationFlag(cmd.Flags(), &flags.lab.Engine)
	cmd.Flags().BoolVar(&flags.retry, "retry-dilation", false,
		"if the fidelity of an emulation is not ok, repeat it once, slower; both runs are kept, the better counts")
}

// runLong is what the help of weft run says of it.
const runLong = `Run labs. The first line printed says which engine was chosen and why; the summary follows. Without
--engine and engine.kind, labs are emulated if this machine can, unless that takes more than half a
minute by a forecast and simulating seconds, or more than 10 minutes: then the first line has the
command that emulates. --engine emu, --dilation, --runtime and --capture request emulation, and a lab
with programs is never simulated. With --datapath auto, Linux carries the packets if it can honour
every lab of the command within half a minute, and else the modelled fabric; the first line says
which, and why.

A lab with a sweep runs once for each of its points. Every run leaves a directory under runs/. As in
every command, LAB is a file, or - for standard input (weft generate star | weft run -). Labs that
come with Weft need no file: they are inside the program.

After -- comes a program to run instead of the lab's workload, on all hosts or on those of --hosts, in
lab time unless --clock says otherwise (docs/applications.md).

Before an emulation or a long simulation starts, weft prints about how long it will take. Progress is
on standard error: a bar on a terminal, otherwise a line now and then.

Exit codes: 0 all done and every expectation met; 1 a run failed; 2 the command line or a lab file is
wrong; 3 an expectation was missed; 4 --strict does not accept the fidelity of a run; 130 interrupted.
If --strict does not accept a run, the exit code is 4 even if the run missed an expectation, which
proves nothing then; a miss in another run gives 3.`

func (a *app) runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run LAB... [-- CMD...]",
		Short: "run labs: deploy, run the workload, collect, destroy",
		Long:  runLong,
		Example: `  weft run labs/quickstart.yaml
  weft run labs/quickstart.yaml --engine both
  weft run labs/pc4/incast.yaml --engine sim --json
  weft run labs/quickstart.yaml --set seed=2 --strict --junit report.xml
  weft run labs/quickstart.yaml --engine emu --strict=degraded --retry-dilation
  weft run labs/pc4/incast-vs.yaml --engine sim --resume --summary summary.md
  weft run labs/ccm/example-emu.yaml --engine emu --capture h2=h2.pcapng
  weft run labs/apps/allreduce.yaml --twice
  weft run labs/apps/star.yaml --hosts h0 -- ping -c 3 -l 3 h1`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: labFiles,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			far, set, err := flags.machine.machines(func(line string) {
				if !flags.quiet {
					fmt.Fprintln(a.stderr, line)
				}
			}, nil)
			if err != nil {
				return err
			}
			if far != nil {
				defer func() { err = errors.Join(err, far.Close(cmd.Context())) }()
				flags.machines = far
				flags.lab.Set = append(flags.lab.Set, set...)
				flags.lab.Engine.Kind = cmp.Or(flags.lab.Engine.Kind, "emu")
				switch {
				case flags.lab.Engine.Kind != "emu":
					return usagef("--engine %s runs on this machine alone; leave out --on", flags.lab.Engine.Kind)
				case flags.kernel == "uml":
					return usagef("--kernel uml is on this machine alone; leave out --on")
				}
			}
			if args, flags.lab.Program, err = flags.program.command(cmd, args); err != nil {
				return err
			}
			switch {
			case flags.view && flags.watch:
				return usagef("--view shows the run in a browser, --watch in this terminal; leave out one")
			case flags.view:
				err = a.runWatched(cmd.Context(), args, flags)
			case flags.watch:
				err = a.runInTerminal(cmd.Context(), args, flags)
			default:
				err = a.run(cmd.Context(), args, flags)
			}
			if failed := (printedRuns)(nil); flags.lab.Program != nil && errors.As(err, &failed) {
				if c := flags.lab.Program; !a.explainLauncher("weft run LAB", c.Args[0]) {
					a.explainUnseen(c.Args, flags.program.readable)
				}
			}
			return err
		},
	}
	f := cmd.Flags()
	flags.lab.register(cmd)
	f.BoolVar(&flags.view, "view", false, "serve a page on this machine that shows the run while it runs")
	f.BoolVar(&flags.watch, "watch", false, "show the run in this terminal while it runs: progress, queues, links")
	runtimeFlag(f, &flags.lab.Engine)
	datapathFlag(f, &flags.lab.Engine, "auto, fabric (the default) or kernel: what carries emulated packets")
	retryFlags(cmd, &flags)
	kernelFlag(cmd, &flags.kernel)
	f.BoolVar(&flags.twice, "twice", false,
		"run an emulation again at four times the dilation, and print how much each number moved")
	flags.program.register(f)
	flags.machine.register(cmd)
	outFlag(f, &flags.out)
	f.StringVar(&flags.junit, "junit", "", "also write a JUnit report to this file")
	f.StringVar(&flags.summary, "summary", "", "also append a Markdown summary to this file, for $GITHUB_STEP_SUMMARY")
	gateFlags(f, &flags)
	f.BoolVar(&flags.resume, "resume", false,
		"skip runs that this version of the program finished with identical settings and --strict accepts")
	runCaptureFlag(cmd, &flags.capture)
	strictFlag(cmd, &flags.strict)
	quietFlag(cmd, &flags.quiet)
	f.BoolVar(&flags.json, "json", false, "print one JSON object per run instead of tables")
	return cmd
}

// quietFlag adds --quiet to a command that shows progress.
func quietFlag(cmd *cobra.Command, quiet *bool) {
	cmd.Flags().BoolVarP(quiet, "quiet", "q", false,
		"print results, warnings and errors, but no progress and no choice of engine")
}

// warnNamesakes warns of labs of several files that have one name: their runs have one directory.
func (a *app) warnNamesakes(files []labfile.File) {
	first := map[string]string{}
	for _, f := range files {
		if len(f.Labs) == 0 {
			continue
		}
		l := f.Labs[0] // its points have the same name
		if other, is := first[l.Name]; is && other != l.File {
			fmt.Fprintf(a.stderr, "warning: %s and %s are labs with one name, %s: results compare refuses what they "+
				"leave; expected a name of its own for each\n", other, l.File, l.Name)
		}
		first[l.Name] = l.File
	}
}

// run is runExisting without the labs that --skip-missing skips.
func (a *app) run(ctx context.Context, names []string, flags runFlags) error {
	if flags.skip {
		if names = a.existing(names, flags.lab.builtIn); len(names) == 0 {
			return flags.writeNone()
		}
	}
	return a.runExisting(ctx, names, flags)
}

// agree returns an error about flags that exclude each other.
func (f *runFlags) agree() error {
	switch {
	case f.retry && len(f.capture) > 0:
		return usagef("--retry-dilation may run twice, and --capture writes only one run; remove one of them")
	case f.lab.Engine.Kind == "sim" && f.lab.Engine.Datapath != "":
		return usagef("--datapath chooses what carries emulated packets, and --engine sim emulates none; leave one out")
	case f.twice && (f.retry || f.resume || len(f.capture) > 0):
		return usagef("--twice makes two runs that belong together; leave out --retry-dilation, --resume and --capture")
	}
	return nil
}

// runExisting runs the labs of weft run, demo or clock, prints and writes the results, and returns
// the verdict.
func (a *app) runExisting(ctx context.Context, names []string, flags runFlags) error {
	if err := checkStrict(flags.strict, names); err != nil {
		return err
	}
	if err := flags.agree(); err != nil {
		return err
	}
	restoreGC := delayGC()
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
	a.warnNamesakes(files)
	jobs := series.Jobs(files, time.Now())
	if len(jobs) > 1 { // a single run is over soon, and prints its notes itself
		for _, f := range files {
			a.notes("expect", f.Labs...)
		}
	}
	if (flags.live != nil || flags.terminal != nil) && len(jobs) > 1 {
		return usagef("--view and --watch show one run, and this would be %d; choose one with --set and --engine",
			len(jobs))
	}
	if flags.twice && (len(jobs) > 1 || jobs[0].Engine == "sim") {
		return usagef("--twice is for one emulated run; choose one with --set and --engine emu")
	}
	captures, err := flags.captures(jobs)
	if err != nil {
		return err
	}
	written := []string{flags.out, flags.junit, flags.summary, flags.list}
	for _, c := range captures {
		jobs[0].Captures = append(jobs[0].Captures, c)
		written = append(written, c.File)
	}
	if err := a.useKernel(ctx, flags.kernel, jobs, written...); err != nil {
		return err
	}
	if series.Emulates(jobs) && flags.machines == nil {
		restoreGC()
		if err := a.elevate(ctx, series.Runtime(jobs)); err != nil {
			return err
		}
	}
	all := make([]*series.Job, len(jobs))
	for i := range jobs {
		all[i] = &jobs[i]
	}
	a.chooseDatapath(ctx, all, flags)
	if flags.kernel != "uml" && !flags.twice && len(captures) == 0 { // these request emulation
		a.simulateJobs(ctx, all, runLimit, flags.quiet)
	}
	if slices.ContainsFunc(jobs, func(j series.Job) bool {
		return j.Engine == "sim" && j.Lab.Topology.HostCount() >= manyHosts
	}) {
		useLargePages()
	}
	reports, err := flags.openReports(jobs)
	if err != nil {
		return usageError{err}
	}
	if !flags.pageless {
		if err := series.Claim(jobs, flags.out); err != nil {
			return err
		}
		defer series.Drop(jobs)
	}
	runs, runErrs := a.runAll(ctx, jobs, flags)
	if flags.done != nil {
		flags.done(runs)
	}
	judged, err := a.acrossPoints(jobs, runs[:min(len(runs), len(jobs))])
	every := append(runs[:len(runs):len(runs)], judged...)
	err = errors.Join(err, reports.write(runs, judged, &flags))
	switch {
	case flags.json:
		err = errors.Join(table.Across(a.stderr, table.MissedAmong(judged), style(a.stderr)), err)
	case flags.twice && len(runs) == 2:
		err = errors.Join(a.showTwice(runs[0], runs[1]), err)
	default:
		err = errors.Join(a.show(jobs, runs), table.Across(a.stdout, judged, style(a.stdout)), err)
	}
	if err != nil {
		return err
	}
	err = joinErrors(runErrs, func(f series.Failed) bool { return !flags.json && (f.Started || len(runs) > 1) })
	return verdict(ctx, every, err, flags.strict)
}

// runLimit is the longest that weft run emulates unless emulation is requested, where a simulation
// takes long, too. Our choice: longer than bench's, since a lab that leaves the engine open is
// emulated where the machine can.
const runLimit = 10 * time.Minute

// simulateJobs calls series.SimulateLong and shows its progress.
func (a *app) simulateJobs(ctx context.Context, jobs []*series.Job, limit time.Duration, quiet bool) {
	if uml.Inside() != "" {
		return // emulation was requested
	}
	p := a.newPace(quiet)
	defer p.Clear()
	series.SimulateLong(ctx, a.engine, jobs, limit, a.emulating(), func(now orchestrate.Progress) {
		p.Set(now.Phase, now.Phase, int64(now.Done), int64(now.Total))
	})
}

// chooseDatapath calls series.ChooseDatapath and shows its progress.
func (a *app) chooseDatapath(ctx context.Context, jobs []*series.Job, flags runFlags) {
	var blocked error
	switch {
	case len(flags.capture) > 0:
		blocked = errors.New("--capture copies packets of the modelled fabric alone")
	case flags.machines != nil:
		blocked = errors.New("--on cuts the modelled fabric into parts")
	case flags.live != nil, flags.terminal != nil:
		blocked = errors.New("--view and --watch show the modelled fabric alone")
	}
	p := a.newPace(flags.quiet)
	defer p.Clear()
	series.ChooseDatapath(ctx, a.engine, jobs, blocked, func(now orchestrate.Progress) {
		p.Set(now.Phase, now.Phase, int64(now.Done), int64(now.Total))
	})
}

// emulating returns this command line as one that emulates, for people to copy.
func (a *app) emulating() string {
	words := []string{"weft"}
	for _, arg := range a.args {
		words = append(words, shell.Quote(arg))
	}
	return strings.Join(append(words, "--engine", "emu"), " ")
}

// runAll runs the jobs and shows their progress. See series.Runner.
func (a *app) runAll(ctx context.Context, jobs []series.Job, flags runFlags) ([]*record.Summary, []error) {
	w := &runProgress{
		app: a, terminal: flags.terminal, pace: a.newPace(flags.quiet), outcomes: make([]*series.Outcome, len(jobs)),
		parallel: series.Parallel(jobs), json: flags.json,
	}
	r := series.Runner{
		Engine: a.engine, Watcher: w, Announce: !flags.quiet,
		Resume: flags.resume, Strict: flags.strict, Retry: flags.retry, Twice: flags.twice,
		Options: orchestrate.Options{Root: flags.out, Version: versionText(), Program: store.Program(),
			Machines: flags.machines, On: flags.machine.on},
	}
	switch {
	case flags.terminal != nil: // lines would tear its picture
		r.Options.Frames = flags.terminal.update
	case !flags.quiet:
		r.Options.Lines = w.line
	}
	if flags.live != nil {
		r.Options.Frames = flags.live.update
	}
	defer context.AfterFunc(ctx, func() {
		toldInterruption.Store(true)
		w.Say("interrupted: ending the run, which may take seconds; Ctrl-C again stops at once")
	})()
	runs, errs := r.Run(ctx, jobs)
	toldInterruption.Store(false) // a second Ctrl-C no longer costs the summary
	w.clear()
	return runs, append([]error{w.err}, errs...)
}

// acrossPoints judges and draws what is across the points of sweeps. See series.Across.
func (a *app) acrossPoints(jobs []series.Job, runs []*record.Summary) ([]*record.Summary, error) {
	return series.Across(jobs, runs, versionText(), func(line string) { fmt.Fprintln(a.stderr, line) })
}

// printedRuns are failed runs whose reason is printed already, in their summaries.
type printedRuns []series.Failed

func (e printedRuns) Error() string {
	names := map[string]bool{} // a run may have failed, and then its report
	for _, f := range e {
		names[f.Name] = true
	}
	if len(names) == 1 {
		return e[0].Name + " failed; see its summary"
	}
	return fmt.Sprintf("%d runs failed; the reasons are above", len(names))
}

func (e printedRuns) Unwrap() (all []error) {
	for _, f := range e {
		all = append(all, f)
	}
	return all
}

// isProblem reports whether an error is about a lab file. Such errors are printed with their place
// in the file.
func isProblem(err error) bool {
	var one lab.Problem
	var all lab.Problems
	return errors.As(err, &one) || errors.As(err, &all)
}

// joinErrors joins errors. Runs that failed for the same reason share one line, and all runs whose
// reason is printed already, as printed reports, share the first.
func joinErrors(errs []error, printed func(series.Failed) bool) error {
	var all []error
	var before printedRuns
	same := map[string]int{} // index of the line by reason
	for _, err := range errs {
		f, ok := err.(series.Failed)
		if ok && printed(f) && !isProblem(f) {
			before = append(before, f)
			continue
		}
		if ok {
			reason := f.Err.Error()
			if i, seen := same[reason]; seen {
				f.Name = all[i].(series.Failed).Name + ", " + f.Name
				all[i] = f
				continue
			}
			same[reason] = len(all)
		}
		all = append(all, err)
	}
	if before != nil {
		all = append([]error{before}, all...)
	}
	return errors.Join(all...)
}

// verdict returns the error that decides the exit code of all runs, the worst first. A signal that
// arrived once all runs had ended changes nothing.
func verdict(ctx context.Context, runs []*record.Summary, runErr error, strict string) error {
	if err := context.Cause(ctx); err != nil && (runErr != nil || len(runs) == 0 ||
		slices.ContainsFunc(runs, func(s *record.Summary) bool { return !s.Complete() })) {
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
	if s := worstRefused(runs, strict); s != nil {
		is := "is " + s.Outcome().Fidelity
		if why := s.Unjudged(); why != "" {
			is = "was not judged (" + why + ")"
		}
		doubtful = fmt.Errorf("%s: the fidelity %s, and %w", s.Lab, is, errFidelity)
	}
	for _, s := range runs {
		across := s.Run == "" && s.Engine != "sim" // depends on the fidelity of all emulations
		if table.Missed(s) > 0 && s.Accepted(strict) && (doubtful == nil || !across) {
			missed = errMissed
		}
	}
	return cmp.Or(missed, doubtful)
}

// worstRefused returns the run with the worst fidelity of those that --strict does not accept, the
// first of equals; nil: it accepts all.
func worstRefused(runs []*record.Summary, strict string) (worst *record.Summary) {
	for _, s := range runs {
		if !s.Accepted(strict) && (worst == nil || s.Outcome().WorseFidelity(worst.Outcome())) {
			worst = s
		}
	}
	return worst
}

// strictFlag adds --strict, alone or with the worst accepted fidelity.
func strictFlag(cmd *cobra.Command, strict *string) {
	f := cmd.Flags()
	f.StringVar(strict, "strict", "",
		"exit with 4 unless the fidelity of every emulated run is ok; --strict=degraded accepts degraded too")
	f.Lookup("strict").NoOptDefVal = "ok"
}

// checkStrict returns an error for unknown values, and for --strict degraded without an equals
// sign, which makes the value a lab, unless there is such a file.
func checkStrict(strict string, labs []string) error {
	for _, word := range []string{"ok", "degraded"} {
		if _, err := os.Stat(word); strict == "ok" && slices.Contains(labs, word) && err != nil {
			return usagef("--strict %s: write --strict=%[1]s, with an equals sign", word)
		}
	}
	switch strict {
	case "", "ok", "degraded":
		return nil
	}
	return usagef("--strict=%s: expected --strict, or --strict=degraded", strict)
}

// show prints one run in full, or several as a table, and compares pairs of engines.
func (a *app) show(jobs []series.Job, runs []*record.Summary) error {
	st := style(a.stdout)
	switch {
	case !slices.ContainsFunc(runs, (*record.Summary).Started):
		return nil
	case len(runs) == 1 && runs[0].Run == "" && runs[0].Status != "ok":
		return nil // it never started, and the error says why
	case len(runs) == 1:
		return table.Summary(a.stdout, runs[0], st)
	case len(runs) == 2 && jobs[0].Compare && runs[1].Started():
		for _, s := range runs {
			if err := table.Summary(a.stdout, s, st); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout)
		}
	default:
		if err := a.showSeveral(runs, table.Interrupted(runs)); err != nil {
			return err
		}
	}
	for i := 0; i+1 < len(runs); i++ {
		if !jobs[i].Compare || !runs[i].Started() || !runs[i+1].Started() {
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

// showSeveral prints a table of runs, and below it missed expectations, warnings, what a controller
// does for one transport alone, and a note, such as how many runs an interruption left out.
func (a *app) showSeveral(runs []*record.Summary, note string) error {
	st := style(a.stdout)
	runs = table.Started(runs)
	err := errors.Join(table.Points(a.stdout, runs, st), table.Modules(a.stdout, runs),
		table.Misses(a.stdout, runs, st), table.Warnings(a.stdout, runs, st))
	for _, text := range []string{report.SweepControllerNote(runs), note} {
		if text != "" {
			fmt.Fprintf(a.stdout, "\n%s\n", text)
		}
	}
	return err
}

// showTwice prints a run, the same at another dilation, and how much its numbers moved.
func (a *app) showTwice(first, second *record.Summary) error {
	st := style(a.stdout)
	for _, s := range []*record.Summary{first, second} {
		if err := table.Summary(a.stdout, s, st); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout)
	}
	return table.Twice(a.stdout, first, second, st)
}
