package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/pages"
	orchestrate "weft/orchestrator/run"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
	"weft/results/view"
)

// job is one run to make: a point of a lab in one engine.
type job struct {
	lab      *lab.Lab
	text     []byte // of the lab file
	engine   string // auto, sim or emu
	compare  bool   // the next job is the same lab in the other engine
	series   store.Series
	sweep    string // directory of the whole sweep; empty: none
	captures []orchestrate.Capture
	retry    *record.Retry // the run that this one repeats; nil: none

	built  *experiment.Experiment                   // of the lab; nil: not built yet
	slower func(dilation float64) (*lab.Lab, error) // reads the lab again at another dilation
}

// experiment returns the experiment of a job, and builds it if necessary.
func (j *job) experiment() (x *experiment.Experiment, err error) {
	if j.built == nil {
		j.built, err = experiment.Build(j.lab)
	}
	return j.built, err
}

// jobsOf returns the runs of the labs of a command line that began at an instant.
func jobsOf(files []labfile.File, began time.Time) []job {
	var jobs []job
	for _, f := range files {
		for point, l := range f.Labs {
			j := job{lab: l, text: f.Text, engine: l.Engine.Kind}
			j.slower = func(dilation float64) (*lab.Lab, error) { return f.Slower(point, dilation) }
			if !l.Engine.Both() {
				jobs = append(jobs, j)
				continue
			}
			j.engine, j.compare = "sim", true
			jobs = append(jobs, j)
			j.engine, j.compare = "emu", false
			jobs = append(jobs, j)
		}
	}
	numberJobs(jobs, began)
	return jobs
}

// numberJobs makes the jobs a series. It numbers the jobs of each lab, so that the directories of
// its runs are in the order of the jobs, whichever starts first.
func numberJobs(jobs []job, began time.Time) {
	count := map[string]int{} // jobs of each lab
	id := rand.Text()
	for i := range jobs {
		count[jobs[i].lab.Name]++
		jobs[i].series = store.Series{ID: id, Began: began, Number: count[jobs[i].lab.Name]}
	}
	for i := range jobs {
		jobs[i].series.Of = count[jobs[i].lab.Name]
	}
}

// runtimeOf returns the runtime of all emulated jobs, or auto if they differ.
func runtimeOf(jobs []job) string {
	for _, j := range jobs {
		if r := j.lab.Engine.Runtime; j.engine != "sim" && r != jobs[0].lab.Engine.Runtime {
			return "auto"
		}
	}
	return jobs[0].lab.Engine.Runtime
}

// emulates reports whether any of the jobs may be emulated.
func emulates(jobs []job) bool {
	return slices.ContainsFunc(jobs, func(j job) bool { return j.engine != "sim" })
}

// parallelism returns the number of jobs to run at once: a simulation takes one processor, an
// emulation has the machine to itself.
func parallelism(jobs []job) int {
	if emulates(jobs) {
		return 1
	}
	return min(len(jobs), runtime.NumCPU())
}

// runAll runs the jobs and returns their summaries in order, and the errors of those that failed.
// After an interruption it starts no further run, and jobs that did not run have no summary.
func (a *app) runAll(ctx context.Context, jobs []job, flags runFlags) ([]*record.Summary, []error) {
	w := &watcher{
		app: a, pace: a.newPace(flags.quiet), outcomes: make([]outcome, len(jobs)),
		parallel: parallelism(jobs), json: flags.json,
	}
	if flags.resume {
		w.before = finishedBefore(jobs, flags.out)
		if n := len(w.before); n > 0 {
			fmt.Fprintf(a.stderr, "%d of %d runs were finished before and are not repeated\n", n, len(jobs))
		}
	}
	w.announced = a.announce(ctx, jobs, w, flags)
	next := make(chan int)
	var workers sync.WaitGroup
	for range w.parallel {
		workers.Go(func() {
			for i := range next {
				if s := w.before[i]; s != nil {
					w.finished(i, outcome{done: true, summary: s})
					continue
				}
				w.finished(i, a.runOne(ctx, &jobs[i], flags, w))
			}
		})
	}
	for i := range jobs {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	w.clear()

	var runs []*record.Summary
	errs := []error{w.err}
	for _, o := range w.outcomes {
		if o.summary != nil {
			runs = append(runs, o.summary)
		}
		if o.again != nil {
			runs = append(runs, o.again)
		}
		errs = append(errs, o.errs...)
	}
	return runs, errs
}

// announce prints how long several emulated runs take in all, and reports whether it did. Otherwise
// each run prints its own time.
func (a *app) announce(ctx context.Context, jobs []job, w *watcher, flags runFlags) bool {
	var left []*job
	var engines []string
	for i := range jobs {
		if w.before[i] == nil {
			left, engines = append(left, &jobs[i]), append(engines, jobs[i].engine)
		}
	}
	if len(left) < 2 || flags.quiet || !emulates(jobs) {
		return false
	}
	forecast := func(i int, o orchestrate.Options) (orchestrate.Forecast, error) { return a.forecast(ctx, left[i], o) }
	line := orchestrate.Announce(forecast, engines, orchestrate.Options{
		Progress: func(p orchestrate.Progress) { w.progress(&jobs[0], p) },
	})
	if line != "" {
		w.say(line)
	}
	return line != ""
}

// forecast returns how a job would run. It keeps the experiment for the run.
func (a *app) forecast(ctx context.Context, j *job, o orchestrate.Options) (orchestrate.Forecast, error) {
	x, err := j.experiment()
	if err != nil {
		return orchestrate.Forecast{}, err
	}
	return a.engine.Predict(ctx, x, o)
}

// runJob runs a job. The job no longer keeps its experiment, so that its memory is free when the
// run ends.
func (a *app) runJob(ctx context.Context, j *job, o orchestrate.Options) (*record.Summary, error) {
	x, err := j.experiment()
	if err != nil {
		return nil, err
	}
	j.built = nil
	return a.engine.Run(ctx, x, o)
}

// outcome is the result of a job.
type outcome struct {
	done    bool // set when the job has ended
	summary *record.Summary
	again   *record.Summary // of --twice; nil: there is none
	errs    []error
}

// runOne runs a job. With --retry-dilation it repeats an emulation whose fidelity is not ok,
// slower.
func (a *app) runOne(ctx context.Context, j *job, flags runFlags, w *watcher) outcome {
	first := a.try(ctx, j, flags, w)
	s := first.summary
	if flags.twice && len(first.errs) == 0 && ctx.Err() == nil && s.Complete() && s.Engine != "sim" {
		return a.again(ctx, j, first, flags, w)
	}
	if !flags.retry || len(first.errs) > 0 || ctx.Err() != nil ||
		s.Fidelity == nil || s.Fidelity.Verdict == emulate.OK {
		return first
	}
	if s.Fidelity.Verdict == emulate.Degraded && !emulate.Helps(s.Fidelity) {
		w.sayf("%s: fidelity %s at dilation %g, and a higher dilation does not help; not repeated",
			s.Run, s.Fidelity.Verdict, s.Dilation)
		return first
	}
	d, factor, why := emulate.Slower(s.Fidelity, s.Dilation)
	w.sayf("%s: fidelity %s at dilation %g; repeating at %g, %.3g times as slow: %s",
		s.Run, s.Fidelity.Verdict, s.Dilation, d, factor, why)
	again := *j
	again.retry = &record.Retry{Of: s.Run, Verdict: s.Fidelity.Verdict, Dilation: s.Dilation, Factor: factor, Why: why}
	var err error
	again.lab, err = j.slower(d)
	second := outcome{done: true, summary: s, errs: []error{err}}
	if err == nil {
		second = a.try(ctx, &again, flags, w)
	}
	switch r := second.summary; {
	case ctx.Err() != nil:
		return second
	case len(second.errs) > 0:
		w.sayf("%s counts, with fidelity %s: the second run failed: %v", s.Run, s.Fidelity.Verdict, second.errs[0])
		return first
	case r.Retry == nil || !r.Retry.Counts:
		w.sayf("%s counts, with fidelity %s: the second run, %s, is no better", s.Run, s.Fidelity.Verdict, r.Run)
		s.Fidelity.Advice = emulate.Advice(s.Fidelity, r.Dilation, true) // suggests another dilation
		return first
	default:
		w.sayf("%s counts, with fidelity %s; %s is kept too", r.Run, r.Fidelity.Verdict, s.Run)
		return second
	}
}

// twiceBy is the factor between the dilations of --twice. Our own choice: what the machine adds
// then shrinks to a quarter.
const twiceBy = 4

// again repeats a run at a higher dilation. Both count.
func (a *app) again(ctx context.Context, j *job, first outcome, flags runFlags, w *watcher) outcome {
	slower := *j
	d := twiceBy * first.summary.Dilation
	w.sayf("%s: again at dilation %g", first.summary.Run, d)
	var err error
	if slower.lab, err = j.slower(d); err != nil {
		first.errs = []error{err}
		return first
	}
	second := a.try(ctx, &slower, flags, w)
	first.again, first.errs = second.summary, second.errs
	return first
}

// try runs a job once, and writes the pages of its directory. A run that never started gets a
// summary with status failed or interrupted.
func (a *app) try(ctx context.Context, j *job, flags runFlags, w *watcher) outcome {
	options := orchestrate.Options{
		Engine: j.engine, Root: flags.out, LabText: j.text, Version: versionText(), Program: store.Program(),
		Series: j.series, Workers: max(1, runtime.GOMAXPROCS(0)/w.parallel),
		Captures: j.captures, Retry: j.retry, Retries: flags.retry, Announced: w.announced,
		Say:      w.say,
		Progress: func(p orchestrate.Progress) { w.progress(j, p) },
	}
	var kept *view.Source
	options.Kept = func(k orchestrate.Kept) { kept = new(view.Source(k)) }
	if !flags.quiet && flags.terminal == nil { // whose picture lines would tear
		options.Lines = w.line
	}
	if flags.live != nil {
		options.Frames = flags.live.update
	}
	if v := flags.terminal; v != nil {
		options.Frames = v.update
		options.Progress = func(p orchestrate.Progress) { v.note(p); w.progress(j, p) }
	}
	s, err := a.runJob(ctx, j, options)
	if s == nil {
		s = &record.Summary{
			Lab: j.lab.Name, Point: j.lab.Point, Engine: j.engine, Seed: j.lab.Seed, Transport: j.lab.Transport.Kind,
			Status: record.Failed, Collectives: []record.Collective{}, Expect: []record.Expect{},
		}
		if ctx.Err() != nil {
			s.Status = record.Interrupted
		}
		if err != nil {
			s.Error = err.Error()
		}
	}
	o := outcome{done: true, summary: s}
	name := strings.TrimSpace(j.lab.Name + " " + table.Point(j.lab.Point))
	if err != nil {
		o.errs = append(o.errs, failedRun{name, s.Run != "", err})
	}
	if err := pages.Leave(j.lab, s, kept); err != nil {
		err = fmt.Errorf("report: %w", err)
		if s.Status == record.OK {
			err = errors.Join(err, store.Fail(s.Run, s, err))
		}
		o.errs = append(o.errs, failedRun{name, false, err})
	}
	return o
}

// watcher shows progress and prints results while jobs run. Jobs that run at once share it.
type watcher struct {
	app      *app
	parallel int  // number of jobs that run at once
	json     bool // print the summary of each job as JSON
	// Fixed once jobs run: whether announce printed the time of all runs, and the results of
	// --resume by the index of the job.
	announced bool
	before    map[int]*record.Summary

	mu       sync.Mutex // guards the fields below, and writing to the terminal
	pace     *table.Pace
	said     string // the last message
	outcomes []outcome
	count    int   // jobs that ended
	printed  int   // jobs whose JSON is printed
	err      error // of printing it
}

// say prints a message, such as the chosen engine and why. It skips a repetition of the last one,
// since the points of a sweep say the same.
func (w *watcher) say(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if line == w.said {
		return
	}
	w.said = line
	w.pace.Say(line)
}

// line prints a line of a program's output. With --json standard output has nothing but summaries.
func (w *watcher) line(host string, errors bool, line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace.Clear()
	to := w.app.stdout
	if errors || w.json {
		to = w.app.stderr
	}
	fmt.Fprintf(to, "%s: %s\n", host, line) // nobody may read it any more
}

func (w *watcher) sayf(format string, args ...any) { w.say(fmt.Sprintf(format, args...)) }

// stepsPerRun is the resolution of the progress of several runs.
const stepsPerRun = 1000

// progress shows the progress of a job.
func (w *watcher) progress(j *job, p orchestrate.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := len(w.outcomes)
	switch {
	case w.parallel > 1 || p.Total <= 0:
	case p.Phase == orchestrate.Measuring:
		w.pace.Set(p.Phase, p.Phase, int64(p.Done), int64(p.Total))
	case total == 1 && j.retry != nil: // a task of its own, so that the share does not fall
		w.pace.Set(j.retry.Of, j.lab.Name+" "+p.Phase+" again", int64(p.Done), int64(p.Total))
	case total == 1:
		w.pace.Set(j.lab.Name, j.lab.Name+" "+p.Phase, int64(p.Done), int64(p.Total))
	case j.retry != nil: // the first try used up the share of this run
		w.showRuns(", repeating one", stepsPerRun-1)
	default:
		w.showRuns("", min(int64(float64(stepsPerRun)*float64(p.Done)/float64(p.Total)), stepsPerRun-1))
	}
}

// showRuns shows the progress of several runs, with the steps of the current one.
func (w *watcher) showRuns(more string, done int64) {
	total := len(w.outcomes)
	w.pace.Set("runs", fmt.Sprintf("%d of %d runs done%s", w.count, total, more),
		int64(w.count)*stepsPerRun+done, int64(total)*stepsPerRun)
}

// finished keeps the outcome of a job, and prints the JSON of all jobs up to the first that still
// runs, so that it is in order.
func (w *watcher) finished(i int, o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes[i] = o
	w.count++
	if len(w.outcomes) > 1 {
		w.showRuns("", 0)
	}
	for w.json && w.printed < len(w.outcomes) && w.outcomes[w.printed].done {
		w.pace.Clear()
		w.err = cmp.Or(w.err, writeLine(w.app.stdout, w.outcomes[w.printed].summary))
		if again := w.outcomes[w.printed].again; again != nil {
			w.err = cmp.Or(w.err, writeLine(w.app.stdout, again))
		}
		w.printed++
	}
}

func (w *watcher) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace.Clear()
}
