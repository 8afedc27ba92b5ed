package series

import (
	"context"
	"fmt"
	"time"

	"weft/internal/plural"
	"weft/orchestrator/run"
)

// Forecast returns how a job would run. It keeps the forecast, and the experiment for the run.
func (j *Job) Forecast(ctx context.Context, e Engine, o run.Options) (run.Forecast, error) {
	if j.forecast != nil {
		return *j.forecast, nil
	}
	x, err := j.Experiment()
	if err != nil {
		return run.Forecast{}, err
	}
	o.Engine = j.Engine
	f, err := e.Predict(ctx, x, o)
	if err == nil {
		j.forecast = &f
	}
	return f, err
}

// SimulateLong makes the jobs that leave the engine open simulations if emulating all of them would
// take longer than limit and the labs ask for nothing that only an emulation has. It changes all of
// them or none: numbers of different engines do not compare. The jobs say why when they run.
// Forecasts of run.Sampled jobs decide; progress is called before anything runs.
func SimulateLong(ctx context.Context, e Engine, jobs []*Job, limit time.Duration, progress func(run.Progress)) {
	var open []*Job
	for _, j := range jobs {
		if j.Engine == "auto" {
			open = append(open, j)
		}
	}
	var takes time.Duration
	var dilation float64
	sampled, emulated := run.Sampled(open), 0
	for _, j := range sampled {
		f, err := j.Forecast(ctx, e, run.Options{Progress: progress})
		if err != nil || f.Asked || f.Engine == "emu" && f.Wall == 0 {
			return // the run itself reports an error
		}
		if f.Engine == "emu" {
			emulated, takes, dilation = emulated+1, takes+f.Wall, max(dilation, f.Dilation)
		}
	}
	n := len(sampled)
	if n == 0 {
		return
	}
	if takes = takes * time.Duration(len(open)) / time.Duration(n); takes <= limit {
		return
	}
	why := fmt.Sprintf("emulating %s at dilation %.4g takes %s; use --engine emu to emulate anyway",
		plural.Count(emulated*len(open)/n, "run"), dilation, run.AboutTime(takes))
	for _, j := range open {
		j.Engine, j.why, j.forecast = "sim", why, nil
	}
}
