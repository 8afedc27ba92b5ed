package series

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"weft/orchestrator/lab"
	"weft/orchestrator/pages"
	"weft/orchestrator/run"
	"weft/results/record"
	"weft/results/store"
	"weft/results/table"
	"weft/results/view"
)

// Watcher observes jobs while they run. Calls may come from several goroutines at once.
type Watcher interface {
	// Resumed is called once, before anything runs, if some of the jobs were finished before, also
	// if all of these are repeated.
	Resumed(Earlier)
	// Say receives a message for the user, such as the chosen engine and why.
	Say(line string)
	// Progress is called a few times per second for each job that runs.
	Progress(j *Job, p run.Progress)
	// Ended is called once for each job that ended, by its index.
	Ended(i int, o *Outcome)
}

// Outcome is the result of a job.
type Outcome struct {
	// Summary is that of the run that counts.
	Summary *record.Summary
	// Again is that of the second run of Runner.Twice; nil: there is none.
	Again *record.Summary
	// Errs are the errors of the job. Those of its runs are Failed.
	Errs []error
}

// Failed is the error of a run. The summary of the run has it too.
type Failed struct {
	// Name is that of the lab and the point. Names of runs that failed alike may be joined.
	Name string
	// Started reports whether the run left a directory with a summary.
	Started bool
	Err     error
}

func (e Failed) Error() string { return e.Name + ": " + e.Err.Error() }
func (e Failed) Unwrap() error { return e.Err }

// Runner runs the jobs of a command line.
type Runner struct {
	Engine Engine
	// Options are those of every run, such as Root, Version, Lines and Frames. What belongs to one
	// job is set for it.
	Options run.Options
	Watcher Watcher
	// Resume skips jobs that this very program finished with the same settings below Options.Root.
	Resume bool
	// Strict is the worst fidelity of an emulation that Resume skips, ok or degraded; empty: any.
	Strict string
	// Retry repeats an emulation once, slower, if its fidelity is not ok and that may help. The
	// better of both counts.
	Retry bool
	// Twice repeats a complete emulation at four times its dilation. Both count.
	Twice bool
	// Announce prints the time of all runs at once if several are emulated, instead of each run's.
	Announce bool
}

// Parallel returns the number of jobs that run at once: a simulation takes one processor, an
// emulation has the machine to itself.
func Parallel(jobs []Job) int {
	if Emulates(jobs) {
		return 1
	}
	return min(len(jobs), runtime.NumCPU())
}

// Run runs the jobs and returns their summaries in order, and the errors of those that failed.
// After an interruption it starts no further run; the summaries of jobs that did not run say so
// (record.Summary.Started).
func (r *Runner) Run(ctx context.Context, jobs []Job) (runs []*record.Summary, errs []error) {
	outcomes := make([]Outcome, len(jobs))
	var before map[int]*record.Summary
	if r.Resume {
		var count Earlier
		before, count = finishedBefore(jobs, r.Options.Root, r.Strict)
		for i, s := range before {
			outcomes[i].Summary = s
		}
		if count.Reused+count.Refused+len(count.Damaged) > 0 {
			r.Watcher.Resumed(count)
		}
	}
	if err := begin(jobs, before, r.Options.Root, r.Options.Version); err != nil {
		errs = append(errs, err)
	}
	each := *r // with the options of every job
	parallel := Parallel(jobs)
	each.Options.Announced = r.Announce && r.announce(ctx, jobs, outcomes)
	each.Options.Workers = max(1, runtime.GOMAXPROCS(0)/max(1, parallel))
	next := make(chan int)
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for i := range next {
				switch {
				case outcomes[i].Summary != nil: // by an earlier command line
				case ctx.Err() != nil:
					outcomes[i].Summary = NotRun(jobs[i].Lab, jobs[i].Engine, record.Interrupted, "not run")
				default:
					outcomes[i] = each.runOne(ctx, &jobs[i])
				}
				r.Watcher.Ended(i, &outcomes[i])
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	workers.Wait()

	for _, o := range outcomes {
		runs = append(runs, o.Summary)
		if o.Again != nil {
			runs = append(runs, o.Again)
		}
		errs = append(errs, o.Errs...)
	}
	return runs, errs
}

// announce says how long several emulated runs take in all, and reports whether it did. Jobs with
// an outcome do not run.
func (r *Runner) announce(ctx context.Context, jobs []Job, outcomes []Outcome) bool {
	var left []*Job
	var engines []string
	for i := range jobs {
		if outcomes[i].Summary == nil {
			left, engines = append(left, &jobs[i]), append(engines, jobs[i].Engine)
		}
	}
	if len(left) < 2 || !Emulates(jobs) {
		return false
	}
	line := run.Announce(func(i int, o run.Options) (run.Forecast, error) { return left[i].Forecast(ctx, r.Engine, o) },
		engines, run.Options{Progress: func(p run.Progress) { r.Watcher.Progress(&jobs[0], p) }})
	if line != "" {
		r.Watcher.Say(line)
	}
	return line != ""
}

// try runs a job once, and writes the pages of its directory. A run that never started gets a
// summary with status failed or interrupted.
func (r *Runner) try(ctx context.Context, j *Job) Outcome {
	o := r.Options
	o.Engine, o.LabText, o.Inputs, o.Series, o.Captures = j.Engine, j.Text, j.Inputs, j.Series, j.Captures
	o.Retry, o.Retries = j.Retry, r.Retry
	o.Say = r.Watcher.Say
	o.Progress = func(p run.Progress) { r.Watcher.Progress(j, p) }
	var kept *view.Source
	o.Kept = func(k run.Kept) { kept = new(view.Source(k)) }
	s, err := j.Run(ctx, r.Engine, o)
	if s == nil {
		status, why := record.Failed, ""
		if ctx.Err() != nil {
			status = record.Interrupted
		}
		if err != nil {
			why = err.Error()
		}
		s = NotRun(j.Lab, j.Engine, status, why)
	}
	out := Outcome{Summary: s}
	name := strings.TrimSpace(j.Lab.Name + " " + table.Point(j.Lab.Point))
	if err != nil {
		out.Errs = append(out.Errs, Failed{name, s.Run != "", err})
	}
	if err := pages.Leave(j.Lab, s, kept); err != nil {
		err = fmt.Errorf("report: %w", err)
		if s.Status == record.OK {
			err = errors.Join(err, store.Fail(s.Run, s, err))
		}
		out.Errs = append(out.Errs, Failed{name, false, err})
	}
	return out
}

// NotRun returns the summary of a lab that did not run, with a status and the reason.
func NotRun(l *lab.Lab, engine, status, why string) *record.Summary {
	s := record.NotRun(l.Name, l.Point, engine, status, why)
	s.Seed, s.Transport = l.Seed, l.Sends()
	return s
}
