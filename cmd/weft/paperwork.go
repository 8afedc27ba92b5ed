package main

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"time"

	"weft/internal/plural"
	"weft/orchestrator/labfile"
	"weft/orchestrator/paper"
	orchestrate "weft/orchestrator/run"
	"weft/orchestrator/series"
	"weft/results/record"
)

// figureWork is what a figure of a paper runs; without jobs it is skipped.
type figureWork struct {
	*paper.Figure
	labs  int            // number of its labs
	files []labfile.File // its labs, once for each seed
	jobs  []series.Job
	guess time.Duration // of one idle processor: see run.SimTime
	wall  time.Duration // that its runs took, each on one processor; 0: not known yet
}

// paperWork is what a command line runs of a paper.
type paperWork struct{ figures []figureWork }

// loadPaper loads the labs of the figures that the flags leave.
func loadPaper(p *paper.Paper, flags paperFlags) (work paperWork, err error) {
	for i := range p.Figures {
		w := figureWork{Figure: &p.Figures[i]}
		if len(flags.only) > 0 && !slices.Contains(flags.only, w.ID) {
			continue
		}
		names, set := w.Work(flags.quick)
		if flags.quick && w.Quick.Skip {
			names = nil
		}
		w.labs = len(names)
		for i := range max(w.Seeds, 1) {
			of := set
			if w.Seeds > 0 {
				of = append(slices.Clone(set), fmt.Sprintf("seed=%d", i+1))
			}
			for _, l := range names {
				one, err := embedded(path.Join(p.Name, l), of)
				if err != nil {
					return work, fmt.Errorf("%s of %s: %w", w.ID, p.Name, err)
				}
				w.files = append(w.files, one)
			}
		}
		w.jobs = series.Jobs(w.files, time.Now())
		for k := range w.jobs {
			j := w.jobs[k] // a copy, so that experiments are not all in memory at once
			if x, err := j.Experiment(); err == nil {
				w.guess += orchestrate.SimTime(x)
			}
		}
		work.figures = append(work.figures, w)
	}
	return work, nil
}

// took notes how long the runs of a figure took, now or when an earlier command line made them.
func (w *figureWork) took(runs []*record.Summary) {
	for _, s := range runs {
		w.wall += time.Duration(s.WallS * float64(time.Second))
	}
}

// total says how much there is to run.
func (p *paperWork) total() string {
	runs, figures := 0, 0
	for i := range p.figures {
		runs += len(p.figures[i].jobs)
		figures += min(1, len(p.figures[i].jobs))
	}
	idle, _ := p.left(0)
	return fmt.Sprintf("%s of %s: %s on idle processors, less what was finished before", plural.Count(runs, "run"),
		plural.Count(figures, "figure"), orchestrate.AboutTime(idle))
}

// place says which figure is the n-th and, once runs told how fast this machine is, about how long
// it and those after it take.
func (p *paperWork) place(n int) string {
	place := fmt.Sprintf("%d of %d", n+1, len(p.figures))
	if left, measured := p.left(n); measured {
		place += ", " + orchestrate.AboutTime(left) + " left"
	}
	return place
}

// left returns about how long the figures from the n-th on take. The runs before tell how fast this
// machine is, and how busy; without any, measured is false and the processors count as idle.
func (p *paperWork) left(n int) (takes time.Duration, measured bool) {
	var guess, wall, left time.Duration
	for i := range p.figures {
		w := &p.figures[i]
		switch {
		case i >= n:
			left += w.guess
		case w.wall > 0:
			guess, wall = guess+w.guess, wall+w.wall
		}
	}
	pace := 1.0
	if guess > 0 {
		pace = float64(wall) / float64(guess)
	}
	return time.Duration(float64(left) * pace / float64(runtime.NumCPU())), guess > 0
}
