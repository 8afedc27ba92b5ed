package series

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weft/orchestrator/lab"
	"weft/orchestrator/run"
)

// Datapath returns what carries the packets of labs that leave that to Weft, and why. takes is
// about how long Linux would take for all runs; 0: not known. lacks is why Linux cannot honour one
// of them; nil: it honours all.
func Datapath(takes time.Duration, lacks error) (datapath, why string) {
	switch {
	case lacks != nil:
		return lab.DatapathFabric, fmt.Sprintf("auto: Linux cannot honour the lab: %v", lacks)
	case takes == 0:
		return lab.DatapathFabric, "auto: nobody can tell how long Linux would take"
	case takes > short:
		return lab.DatapathFabric, fmt.Sprintf("auto: Linux would take %s; --datapath kernel takes it",
			run.AboutTime(takes))
	}
	return lab.DatapathKernel, fmt.Sprintf("auto: Linux honours the lab, in %s", run.AboutTime(takes))
}

// ChooseDatapath gives the jobs that may be emulated and leave the datapath to Weft the one that
// Datapath returns, all of them the same: numbers of different datapaths do not compare. The jobs
// say why when they run. blocked, if not nil, is why the command needs the modelled fabric.
// Forecasts of run.Sampled jobs decide; progress is called before anything runs.
func ChooseDatapath(ctx context.Context, e Engine, jobs []*Job, blocked error, progress func(run.Progress)) {
	var open []*Job
	for _, j := range jobs {
		if j.Engine != "sim" && j.Lab.Engine.Datapath == lab.DatapathAuto {
			open = append(open, j)
		}
	}
	if len(open) == 0 {
		return
	}
	takes, known := time.Duration(0), true
	lacks := blocked
	for _, j := range open {
		if problems := j.Lab.KernelProblems(); lacks == nil && len(problems) > 0 {
			lacks = problems[0]
		}
	}
	sampled := run.Sampled(open)
	tried := make([]Job, len(sampled)) // on Linux
	for i, j := range sampled {
		if lacks != nil {
			break
		}
		tried[i] = Job{Lab: j.Lab.On(lab.DatapathKernel), Engine: j.Engine}
		f, err := tried[i].Forecast(ctx, e, run.Options{Progress: progress})
		if err != nil {
			lacks = firstProblem(err)
		}
		if f.Engine == "emu" {
			takes, known = takes+f.Wall, known && f.Wall > 0
		}
	}
	if takes = takes * time.Duration(len(open)) / time.Duration(len(sampled)); !known {
		takes = 0
	}
	datapath, why := Datapath(takes, lacks)
	for _, j := range open {
		j.setDatapath(datapath, why)
	}
	for i, j := range sampled {
		if datapath == lab.DatapathKernel {
			j.built, j.forecast = tried[i].built, tried[i].forecast
		}
	}
}

// firstProblem returns the first of several problems of a lab, or the error itself.
func firstProblem(err error) error {
	var all lab.Problems
	if errors.As(err, &all) && len(all) > 0 {
		return all[0]
	}
	return err
}

// setDatapath makes the job, and a slower one that repeats it, run on a datapath.
func (j *Job) setDatapath(datapath, why string) {
	j.Lab, j.built, j.forecast, j.datapathWhy = j.Lab.On(datapath), nil, nil, why
	if again := j.slower; again != nil {
		j.slower = func(dilation float64) (*lab.Lab, error) {
			l, err := again(dilation)
			if err != nil {
				return nil, err
			}
			return l.On(datapath), nil
		}
	}
}
