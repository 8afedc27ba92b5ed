package main

import (
	"cmp"
	"fmt"
	"sync"

	"weft/internal/clip"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/series"
	"weft/results/table"
)

// runProgress shows progress and prints results while jobs run. It implements series.Watcher.
type runProgress struct {
	app      *app
	terminal *terminalView // nil: nobody watches in this terminal
	parallel int           // number of jobs that run at once
	json     bool          // print the summary of each job as JSON

	mu       sync.Mutex // guards the fields below, and writing to the terminal
	pace     *table.Pace
	said     string            // the last message
	outcomes []*series.Outcome // by job; nil: it has not ended
	count    int               // jobs that ended
	printed  int               // jobs whose JSON is printed
	err      error             // of printing it
}

// Resumed implements series.Watcher.
func (w *runProgress) Resumed(e series.Earlier) {
	if e.Reused > 0 {
		doubt := ""
		if e.Doubtful > 0 {
			doubt = fmt.Sprintf(", although the fidelity of %d is not ok; --strict repeats such runs",
				e.Doubtful)
		}
		fmt.Fprintf(w.app.stderr, "%d of %d runs were finished before and are not repeated%s\n", e.Reused, e.Jobs,
			doubt)
	}
	if e.Refused > 0 {
		fmt.Fprintf(w.app.stderr, "%d of %d runs were finished before with a fidelity that --strict does not accept, "+
			"and are repeated\n", e.Refused, e.Jobs)
	}
	for _, line := range e.Damaged[:min(len(e.Damaged), maxNamed)] {
		fmt.Fprintf(w.app.stderr, "repeated, since an earlier run is damaged: %s\n", clip.OneLine(line))
	}
	if more := len(e.Damaged) - maxNamed; more > 0 {
		fmt.Fprintf(w.app.stderr, "and %d more\n", more)
	}
}

// Say prints a message. It skips a repetition of the last one, since the points of a sweep say the
// same.
func (w *runProgress) Say(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if line == w.said {
		return
	}
	w.said = line
	w.pace.Say(line)
}

// line prints a line of a program's output. With --json standard output has nothing but summaries.
func (w *runProgress) line(host string, errors bool, line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace.Clear()
	to := w.app.stdout
	if errors || w.json {
		to = w.app.stderr
	}
	fmt.Fprintf(to, "%s: %s\n", host, line) // nobody may read it any more
}

// stepsPerRun is the resolution of the progress of several runs.
const stepsPerRun = 1000

// Progress shows the progress of a job.
func (w *runProgress) Progress(j *series.Job, p orchestrate.Progress) {
	if w.terminal != nil && !p.Before() {
		w.terminal.note(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	total, retry := len(w.outcomes), j.Retry
	switch {
	case w.parallel > 1 || p.Total <= 0:
	case p.Before():
		w.pace.Set(p.Phase, p.Phase, int64(p.Done), int64(p.Total))
	case total == 1 && retry != nil: // a task of its own, so that the share does not fall
		w.pace.Set(retry.Of, j.Lab.Name+" "+p.Phase+" again", int64(p.Done), int64(p.Total))
	case total == 1:
		w.pace.Set(j.Lab.Name, j.Lab.Name+" "+p.Phase, int64(p.Done), int64(p.Total))
	case retry != nil: // the first try used up the share of this run
		w.showRuns(", repeating one", stepsPerRun-1)
	default:
		w.showRuns("", min(int64(float64(stepsPerRun)*float64(p.Done)/float64(p.Total)), stepsPerRun-1))
	}
}

// showRuns shows the progress of several runs, with the steps of the current one.
func (w *runProgress) showRuns(more string, done int64) {
	total := len(w.outcomes)
	w.pace.Set("runs", fmt.Sprintf("%d of %d runs done%s", w.count, total, more),
		int64(w.count)*stepsPerRun+done, int64(total)*stepsPerRun)
}

// Ended prints the JSON of all jobs up to the first that still runs, so that it is in order.
func (w *runProgress) Ended(i int, o *series.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes[i] = o
	if o.Summary.Started() {
		w.count++
		if len(w.outcomes) > 1 {
			w.showRuns("", 0)
		}
	}
	for w.json && w.printed < len(w.outcomes) && w.outcomes[w.printed] != nil {
		w.pace.Clear()
		w.err = cmp.Or(w.err, writeLine(w.app.stdout, w.outcomes[w.printed].Summary))
		if again := w.outcomes[w.printed].Again; again != nil {
			w.err = cmp.Or(w.err, writeLine(w.app.stdout, again))
		}
		w.printed++
	}
}

func (w *runProgress) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pace.Clear()
}
