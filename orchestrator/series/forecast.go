package series

import (
	"context"
	"fmt"
	"runtime"
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
	o.Engine, o.DatapathWhy = j.Engine, j.datapathWhy
	f, err := e.Predict(ctx, x, o)
	if err == nil {
		j.forecast = &f
	}
	return f, err
}

// Waits of a user, both our own choice.
const (
	// short is the longest wait for emulations that could as well be simulated.
	short = 30 * time.Second
	// seconds is the longest that simulations take instead of them.
	seconds = 10 * time.Second
)

// Simulates reports whether runs that leave the engine open are simulated: emulating all would take
// longer than most, or longer than half a minute while simulating all takes seconds. The times are
// expected ones.
func Simulates(emulating, simulating, most time.Duration) bool {
	return emulating > most || emulating > short && simulating <= seconds
}

// SimulateLong makes the jobs that leave the engine open simulations if Simulates says so of all of
// them together and the labs ask for nothing that only an emulation has. It changes all of them or
// none: numbers of different engines do not compare. The jobs say why when they run, and that
// command emulates them. Forecasts of run.Sampled jobs decide; progress is called before anything
// runs.
func SimulateLong(ctx context.Context, e Engine, jobs []*Job, most time.Duration, command string,
	progress func(run.Progress)) {
	var open []*Job
	for _, j := range jobs {
		if j.Engine == "auto" {
			open = append(open, j)
		}
	}
	var emulating, simulating time.Duration
	var dilation float64
	sampled, emulated := run.Sampled(open), 0
	for _, j := range sampled {
		f, err := j.Forecast(ctx, e, run.Options{Progress: progress})
		if err != nil || f.Asked || f.Engine == "emu" && f.Wall == 0 {
			return // the run itself reports an error
		}
		simulating += f.Simulated
		if f.Engine == "emu" {
			emulated, emulating, dilation = emulated+1, emulating+f.Wall, max(dilation, f.Dilation)
		}
	}
	n := time.Duration(len(sampled))
	if n == 0 || emulated == 0 {
		return
	}
	emulating = emulating * time.Duration(len(open)) / n
	simulating = simulating * time.Duration(len(open)) / n / time.Duration(max(1, min(len(open), runtime.NumCPU())))
	if !Simulates(emulating, simulating, most) {
		return
	}
	why := fmt.Sprintf("emulating %s at dilation %.15g takes %s, and simulating %s; %s emulates",
		plural.Count(emulated*len(open)/len(sampled), "run"), dilation, run.AboutTime(emulating),
		run.AboutTime(simulating), command)
	for _, j := range open {
		j.Engine, j.why, j.forecast = "sim", why, nil
	}
}
