package series

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/labfile"
	"weft/orchestrator/run"
	"weft/results/record"
	"weft/results/store"
)

// Job is one run to make: a point of a lab in one engine.
type Job struct {
	Lab      *lab.Lab
	Text     []byte // of the lab file
	Inputs   store.Inputs
	Engine   string // auto, sim or emu
	Compare  bool   // the next job is the same lab in the other engine
	Series   store.Series
	Sweep    string // directory of the whole sweep; empty: none
	Captures []run.Capture

	Retry *record.Retry          // the run that this one repeats; nil: none
	built *experiment.Experiment // of Lab; nil: not built yet
	// forecast is how the job runs; nil: not known yet.
	forecast *run.Forecast
	why      string // why SimulateLong changed Engine; empty: it did not
	// datapathWhy is why ChooseDatapath chose that of Lab; empty: it did not.
	datapathWhy string
	slower      func(dilation float64) (*lab.Lab, error) // reads the lab again at another dilation
}

// Jobs returns the runs of the labs of a command line that began at an instant.
func Jobs(files []labfile.File, began time.Time) []Job {
	var jobs []Job
	for _, f := range files {
		inputs := f.Inputs()
		for point, l := range f.Labs {
			j := Job{Lab: l, Text: f.Text, Inputs: inputs, Engine: l.Engine.Kind}
			j.slower = func(dilation float64) (*lab.Lab, error) { return f.Slower(point, dilation) }
			if !l.Engine.Both() {
				jobs = append(jobs, j)
				continue
			}
			j.Engine, j.Compare = "sim", true
			jobs = append(jobs, j)
			j.Engine, j.Compare = "emu", false
			jobs = append(jobs, j)
		}
	}
	Number(jobs, began)
	return jobs
}

// Number makes the jobs a series. It numbers the jobs of each lab, so that the directories of its
// runs are in the order of the jobs, whichever starts first.
func Number(jobs []Job, began time.Time) {
	count := map[string]int{} // jobs of each lab
	id := rand.Text()
	for i := range jobs {
		count[jobs[i].Lab.Name]++
		jobs[i].Series = store.Series{ID: id, Began: began, Number: count[jobs[i].Lab.Name]}
	}
	for i := range jobs {
		jobs[i].Series.Of = count[jobs[i].Lab.Name]
	}
}

// Runtime returns the runtime of all emulated jobs, or auto if they differ.
func Runtime(jobs []Job) string {
	for _, j := range jobs {
		if r := j.Lab.Engine.Runtime; j.Engine != "sim" && r != jobs[0].Lab.Engine.Runtime {
			return "auto"
		}
	}
	return jobs[0].Lab.Engine.Runtime
}

// Emulates reports whether any of the jobs may be emulated.
func Emulates(jobs []Job) bool {
	return slices.ContainsFunc(jobs, func(j Job) bool { return j.Engine != "sim" })
}

// Experiment returns the experiment of a job, and builds it if necessary.
func (j *Job) Experiment() (x *experiment.Experiment, err error) {
	if j.built == nil {
		j.built, err = experiment.Build(j.Lab)
	}
	return j.built, err
}

// Engine runs experiments: the orchestrator, or a fake in tests. See run.Run and run.NewForecast.
type Engine interface {
	Run(ctx context.Context, x *experiment.Experiment, o run.Options) (*record.Summary, error)
	Predict(ctx context.Context, x *experiment.Experiment, o run.Options) (run.Forecast, error)
}

// Run runs a job. The job no longer keeps its experiment, so that its memory is free when the run
// ends.
func (j *Job) Run(ctx context.Context, e Engine, o run.Options) (*record.Summary, error) {
	x, err := j.Experiment()
	if err != nil {
		return nil, err
	}
	o.Why, o.DatapathWhy = j.why, j.datapathWhy
	if j.forecast != nil {
		o.Wall = j.forecast.Wall
	}
	j.built, j.forecast = nil, nil // a copy of the job may run at another dilation
	return e.Run(ctx, x, o)
}
