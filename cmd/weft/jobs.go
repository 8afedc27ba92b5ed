package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
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
)

// job is one run to be made.
type job struct {
	lab     *lab.Lab
	text    []byte
	engine  string
	compare bool // the next job is the same lab in the other engine
	series  store.Series

	sweep    string // directory about all points of its sweep; empty: it has none
	captures []orchestrate.Capture
	retry    *record.Retry // what the run before was, if this is another try of it

	made   *experiment.Experiment                   // of the lab; nil: not made yet
	slower func(dilation float64) (*lab.Lab, error) // reads the lab again, at another dilation
}

// experiment returns the experiment of a job, which is made once.
func (j *job) experiment() (*experiment.Experiment, error) {
	if j.made != nil {
		return j.made, nil
	}
	var err error
	j.made, err = experiment.Build(j.lab)
	return j.made, err
}

// jobsOf lists the runs of a command line that began at an instant.
func jobsOf(files []labfile.File, began time.Time) []job {
	var jobs []job
	for _, f := range files {
		for point, l := range f.Labs {
			j := job{lab: l, text: f.Text, engine: l.Engine.Kind}
			j.slower = func(dilation float64) (*lab.Lab, error) { return f.Slower(point, dilation) }
			if j.engine != "both" {
				jobs = append(jobs, j)
				continue
			}
			j.engine, j.compare = "sim", true
			jobs = append(jobs, j)
			j.engine, j.compare = "emu", false
			jobs = append(jobs, j)
		}
	}
	number(jobs, began)
	return jobs
}

// number makes the jobs a series: it counts those of each lab, so that the directories of its runs are in the order of the jobs,
// whichever begins first.
func number(jobs []job, began time.Time) {
	of := map[string]int{}
	id := rand.Text()
	for i := range jobs {
		of[jobs[i].lab.Name]++
		jobs[i].series = store.Series{ID: id, Began: began, Number: of[jobs[i].lab.Name]}
	}
	for i := range jobs {
		jobs[i].series.Of = of[jobs[i].lab.Name]
	}
}

// runtimeOf is where the nodes of all jobs are to live, auto if that differs.
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

// width is how many jobs are run at once: simulations take a processor each, and what is emulated has the
// machine to itself.
func width(jobs []job) int {
	if emulates(jobs) {
		return 1
	}
	return min(len(jobs), runtime.NumCPU())
}

// runAll makes every run, and returns the summaries in the order of the jobs with the errors of those that
// failed. After an interruption no further run is begun, and jobs that were not run have no summary.
func (a *app) runAll(ctx context.Context, jobs []job, flags runFlags) ([]*record.Summary, []error) {
	w := &watcher{app: a, pace: a.newPace(flags.quiet), before: map[int]*record.Summary{}, outcomes: make([]outcome, len(jobs)), width: width(jobs), json: flags.json}
	if flags.resume {
		for i, s := range finished(jobs, flags.out) {
			w.before[i] = s
		}
		if n := len(w.before); n > 0 {
			fmt.Fprintf(a.stderr, "%d of %d runs were finished before\n", n, len(jobs))
		}
	}
	w.announced = a.announce(ctx, jobs, w, flags)
	next := make(chan int)
	var workers sync.WaitGroup
	for range width(jobs) {
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
		errs = append(errs, o.errs...)
	}
	return runs, errs
}

// announce says what emulating several runs takes in all, and returns whether it did: each run says it for itself otherwise.
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
	foresee := func(i int, o orchestrate.Options) (orchestrate.Forecast, error) { return a.foresee(ctx, left[i], o) }
	line := orchestrate.ForeseeAll(foresee, engines, orchestrate.Options{
		Progress: func(p orchestrate.Progress) { w.progress(&jobs[0], p) },
	})
	if line != "" {
		w.say(line)
	}
	return line != ""
}

// foresee is how a job would be run. The run has the same experiment.
func (a *app) foresee(ctx context.Context, j *job, o orchestrate.Options) (orchestrate.Forecast, error) {
	x, err := j.experiment()
	if err != nil {
		return orchestrate.Forecast{}, err
	}
	return a.engine.Foresee(ctx, x, o)
}

// runJob makes the run of a job, which does not need its experiment any more then.
func (a *app) runJob(ctx context.Context, j *job, o orchestrate.Options) (*record.Summary, error) {
	x, err := j.experiment()
	if err != nil {
		return nil, err
	}
	j.made = nil
	return a.engine.Run(ctx, x, o)
}

// outcome is what became of a job.
type outcome struct {
	done    bool
	summary *record.Summary
	errs    []error
}

// runOne makes one run, and with --retry-dilation another of one that was emulated and is not ok.
func (a *app) runOne(ctx context.Context, j *job, flags runFlags, w *watcher) outcome {
	first := a.try(ctx, j, flags, w)
	s := first.summary
	if !flags.retry || len(first.errs) > 0 || ctx.Err() != nil || s.Fidelity == nil || s.Fidelity.Verdict == emulate.OK {
		return first
	}
	if s.Fidelity.Verdict == emulate.Degraded && !emulate.Helps(s.Fidelity) {
		w.say(fmt.Sprintf("%s: fidelity %s at dilation %g, and a higher dilation does not help: there is no second run", s.Run, s.Fidelity.Verdict, s.Dilation))
		return first
	}
	d, factor, why := emulate.Slower(s.Fidelity, s.Dilation)
	w.say(fmt.Sprintf("%s: fidelity %s at dilation %g; once more at %g, %.3g times as slow: %s", s.Run, s.Fidelity.Verdict, s.Dilation, d, factor, why))
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
		w.say(fmt.Sprintf("%s counts, with fidelity %s: the second run failed: %v", s.Run, s.Fidelity.Verdict, second.errs[0]))
		return first
	case r.Retry == nil || !r.Retry.Counts:
		w.say(fmt.Sprintf("%s counts, with fidelity %s: the second run, %s, is no better", s.Run, s.Fidelity.Verdict, r.Run))
		s.Fidelity.Advice = emulate.Advice(s.Fidelity, r.Dilation, true) // a dilation that was not tried
		return first
	default:
		w.say(fmt.Sprintf("%s counts, with fidelity %s; %s is kept beside it", r.Run, r.Fidelity.Verdict, s.Run))
		return second
	}
}

// try makes one run. A run that never began gets a summary that says so.
func (a *app) try(ctx context.Context, j *job, flags runFlags, w *watcher) outcome {
	s, err := a.runJob(ctx, j, orchestrate.Options{
		Engine: j.engine, Root: flags.out, LabText: j.text, Version: versionText(), Program: store.Program(), Series: j.series, Workers: max(1, runtime.GOMAXPROCS(0)/w.width),
		Captures: j.captures, Retry: j.retry, Retries: flags.retry, Announced: w.announced,
		Say:      w.say,
		Progress: func(p orchestrate.Progress) { w.progress(j, p) },
	})
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
	if err := pages.Leave(j.lab, s); err != nil {
		o.errs = append(o.errs, fmt.Errorf("%s: report: %w", name, err))
	}
	return o
}

// watcher shows what goes on while jobs run. Runs that go on at once share it.
type watcher struct {
	app   *app
	width int  // runs at once
	json  bool // print the summary of each job

	announced bool // what emulating the jobs takes was said for all of them; not changed once jobs run

	before map[int]*record.Summary // jobs that were finished before, by their number; not changed once jobs run

	mu       sync.Mutex // guards what follows, and writing to the terminal
	pace     *table.Pace
	said     string
	outcomes []outcome // by job
	count    int       // jobs done
	printed  int       // jobs whose JSON was printed
	err      error     // of printing it
}

// say prints a line of words: which engine was chosen and why. Points of a sweep say the same, once.
func (w *watcher) say(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if line == w.said {
		return
	}
	w.said = line
	w.pace.Say(line)
}

// steps are those that progress over several runs, one after the other, is told in: of each run.
const steps = 1000

func (w *watcher) progress(j *job, p orchestrate.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := len(w.outcomes)
	switch {
	case w.width > 1 || p.Total <= 0:
	case p.Phase == orchestrate.Measuring:
		w.pace.Set(p.Phase, p.Phase, int64(p.Done), int64(p.Total))
	case total == 1 && j.retry != nil: // another task, so that the share does not run backwards
		w.pace.Set(j.retry.Of, j.lab.Name+" "+p.Phase+" once more", int64(p.Done), int64(p.Total))
	case total == 1:
		w.pace.Set(j.lab.Name, j.lab.Name+" "+p.Phase, int64(p.Done), int64(p.Total))
	case j.retry != nil: // the first try has told the whole share of this run
		w.pace.Set("runs", fmt.Sprintf("%d of %d runs done, one running once more", w.count, total), int64(w.count+1)*steps-1, int64(total)*steps)
	default:
		w.pace.Set("runs", fmt.Sprintf("%d of %d runs done", w.count, total), int64(w.count)*steps+min(int64(float64(steps)*float64(p.Done)/float64(p.Total)), steps-1), int64(total)*steps)
	}
}

// finished keeps what became of a job, and prints the JSON of those whose turn has come, so that it is in order.
func (w *watcher) finished(i int, o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes[i] = o
	w.count++
	if total := len(w.outcomes); total > 1 {
		w.pace.Set("runs", fmt.Sprintf("%d of %d runs done", w.count, total), int64(w.count)*steps, int64(total)*steps)
	}
	for w.json && w.printed < len(w.outcomes) && w.outcomes[w.printed].done {
		w.pace.Clear()
		e := json.NewEncoder(w.app.stdout)
		e.SetEscapeHTML(false)
		if err := e.Encode(w.outcomes[w.printed].summary); err != nil && w.err == nil {
			w.err = fmt.Errorf("standard output: %w", err)
		}
		w.printed++
	}
}

func (w *watcher) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace.Clear()
}
