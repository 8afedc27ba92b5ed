package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"weft/orchestrator/lab"
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

	captures []orchestrate.Capture
}

// jobsOf lists the runs of a command line that began at an instant.
func jobsOf(files []file, began time.Time) []job {
	var jobs []job
	for _, f := range files {
		for _, l := range f.labs {
			if l.Engine.Kind != "both" {
				jobs = append(jobs, job{lab: l, text: f.text, engine: l.Engine.Kind})
				continue
			}
			jobs = append(jobs, job{lab: l, text: f.text, engine: "sim", compare: true}, job{lab: l, text: f.text, engine: "emu"})
		}
	}
	number(jobs, began)
	return jobs
}

// number counts the jobs of each lab, so that the directories of its runs are in the order of the jobs, whichever
// begins first.
func number(jobs []job, began time.Time) {
	of := map[string]int{}
	for i := range jobs {
		of[jobs[i].lab.Name]++
		jobs[i].series = store.Series{Began: began, Number: of[jobs[i].lab.Name]}
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
func (a *app) runAll(ctx context.Context, jobs []job, flags runFlags) ([]*record.Summary, error) {
	w := &watcher{app: a, began: time.Now(), before: map[int]*record.Summary{}, outcomes: make([]outcome, len(jobs)), width: width(jobs), json: flags.json}
	if terminal(a.stderr) {
		w.bar = table.NewProgress(a.stderr)
	}
	if flags.resume {
		for i, s := range finished(jobs, flags.out) {
			w.before[i] = s
		}
		if n := len(w.before); n > 0 {
			fmt.Fprintf(a.stderr, "%d of %d runs were finished before\n", n, len(jobs))
		}
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range width(jobs) {
		workers.Go(func() {
			for i := range next {
				if s := w.before[i]; s != nil {
					w.finished(i, outcome{done: true, summary: s})
					continue
				}
				w.finished(i, a.runOne(ctx, jobs[i], flags, w))
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
		errs = append(errs, o.err)
	}
	return runs, errors.Join(errs...)
}

// outcome is what became of a job.
type outcome struct {
	done    bool
	summary *record.Summary
	err     error
}

// runOne makes one run. A run that never began gets a summary that says so.
func (a *app) runOne(ctx context.Context, j job, flags runFlags, w *watcher) outcome {
	s, err := a.engine.Run(ctx, j.lab, orchestrate.Options{
		Engine: j.engine, Root: flags.out, LabText: j.text, Version: versionText(), Program: program(), Series: j.series, Workers: max(1, runtime.GOMAXPROCS(0)/w.width),
		Captures: j.captures,
		Say:      w.say,
		Progress: func(p orchestrate.Progress) { w.progress(j, p) },
	})
	if s == nil {
		s = &record.Summary{
			Lab: j.lab.Name, Point: j.lab.Point, Engine: j.engine, Seed: j.lab.Seed, Transport: j.lab.Transport.Kind,
			Status: "failed", Collectives: []record.Collective{}, Expect: []record.Expect{},
		}
		if ctx.Err() != nil {
			s.Status = "interrupted"
		}
		if err != nil {
			s.Error = err.Error()
		}
	}
	if lerr := leave(j.lab, s); lerr != nil {
		err = errors.Join(err, fmt.Errorf("report: %w", lerr))
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", j.lab.Name, err)
	}
	return outcome{done: true, summary: s, err: err}
}

// watcher shows what goes on while jobs run. Runs that go on at once share it.
type watcher struct {
	app   *app
	width int  // runs at once
	json  bool // print the summary of each job
	began time.Time

	before map[int]*record.Summary // jobs that were finished before, by their number; not changed once jobs run

	mu       sync.Mutex // guards what follows, and writing to the terminal
	bar      *table.Progress
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
	w.bar.Clear()
	fmt.Fprintln(w.app.stderr, line)
}

func (w *watcher) progress(j job, p orchestrate.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.width > 1 {
		return
	}
	label := j.lab.Name
	if total := len(w.outcomes); total > 1 {
		label = fmt.Sprintf("%s (%d of %d%s)", label, w.count+1, total, remaining(w.began, w.count, total))
	}
	w.bar.Set(label+" "+p.Phase, int64(p.Done), int64(p.Total))
}

// finished keeps what became of a job, and prints the JSON of those whose turn has come, so that it is in order.
func (w *watcher) finished(i int, o outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes[i] = o
	w.count++
	if w.width > 1 {
		w.bar.Set(fmt.Sprintf("%d of %d runs%s", w.count, len(w.outcomes), remaining(w.began, w.count, len(w.outcomes))), int64(w.count), int64(len(w.outcomes)))
	}
	for w.json && w.printed < len(w.outcomes) && w.outcomes[w.printed].done {
		w.bar.Clear()
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
	w.bar.Clear()
}
