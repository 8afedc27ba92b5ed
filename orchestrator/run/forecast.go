package run

import (
	"context"
	"fmt"
	"math"
	"time"

	"weft/host"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/sim"
	"weft/units"
)

// Forecast is how a run would be made, and about how long it would take.
type Forecast struct {
	Engine   string
	Why      string        // of the engine, and its settings
	Asked    bool          // the lab or the command line asks for what only emulation has: a runtime, a datapath, a dilation
	Dilation float64       // of an emulation
	Takes    time.Duration // an emulation, about; 0: not known
}

// Foresee tells how an experiment would be run. It may have to measure the machine.
func Foresee(ctx context.Context, x *experiment.Experiment, o Options) (Forecast, error) {
	l := x.Lab
	e, err := choose(ctx, x, o)
	if err != nil {
		return Forecast{}, err
	}
	f := Forecast{Engine: e.name, Why: e.why, Dilation: e.dilation}
	f.Asked = experiment.AsksForEmulation(l) || l.Engine.Dilation > 0 || l.Engine.Runtime != "" && l.Engine.Runtime != "auto"
	if e.name == "emu" {
		f.Takes = takes(ctx, x, e.dilation)
	}
	return f, nil
}

// mostForeseen is how many of several runs are foreseen: each may take a second. Ours.
const mostForeseen = 8

// ForeseeAll announces, in a sentence, several runs that may be emulated one after the other, and about how long all of them
// take. It foresees at most mostForeseen of them, evenly spread, and takes the others to be alike. It is empty where
// nothing is emulated, or how long that takes is not known. engines has the engine that is asked for, for each run, and foresee is Foresee of the experiment of a run.
func ForeseeAll(foresee func(i int, o Options) (Forecast, error), engines []string, o Options) string {
	var which []int
	for i, e := range engines {
		if e != "sim" {
			which = append(which, i)
		}
	}
	seen, emulated := min(len(which), mostForeseen), 0
	var takes time.Duration
	var first Forecast
	slowest, fastest := 0.0, math.Inf(1)
	for k := range seen {
		i := which[k*len(which)/seen]
		o.Engine = engines[i]
		f, err := foresee(i, o)
		if err != nil {
			return "" // the run itself says what is wrong
		}
		if f.Engine != "emu" {
			continue
		}
		if f.Takes == 0 {
			return ""
		}
		if emulated++; emulated == 1 {
			first = f
		}
		takes, slowest, fastest = takes+f.Takes, max(slowest, f.Dilation), min(fastest, f.Dilation)
	}
	if emulated == 0 {
		return ""
	}
	takes = takes * time.Duration(len(which)) / time.Duration(seen)
	runs := fmt.Sprintf("%d runs", len(which))
	switch {
	case emulated < seen:
		runs = fmt.Sprintf("some of %d runs", len(engines))
	case len(which) < len(engines):
		runs = fmt.Sprintf("%d of %d runs", len(which), len(engines))
	}
	if slowest > fastest {
		runs += fmt.Sprintf(" at dilations from %.4g to %.4g", fastest, slowest)
	}
	return fmt.Sprintf("engine emu: %s, one after the other; takes %s in all. The first: %s", runs, AboutTime(takes), first.Why)
}

// Of a forecast. Ours: about a second of simulating; and what starting the processes of an emulation and collecting from them take.
const (
	forecastEvents = 1 << 20
	forecastEvery  = 1 << 14 // events between two looks
	forecastConns  = 50_000  // no forecast of more
	emulationStart = 2 * time.Second
)

// takes is about how long emulating the experiment takes; 0: not known.
func takes(ctx context.Context, x *experiment.Experiment, dilation float64) time.Duration {
	t, moved, ok := lasts(ctx, x, forecastEvents)
	if !ok {
		return 0
	}
	if moved < t { // it fails, and need not wait for the last attempt of a connection
		spec := emulation(x, dilation, emulate.Processes{})
		t = min(t, spec.GivenUp(moved))
	}
	return emulationStart + time.Duration(float64(t)*dilation/float64(units.Nanosecond))
}

// lasts is about how long the experiment takes in lab time, by simulating so many events of it; ok is false where that does not tell.
// What is left then goes on as fast as the second half of what was simulated. Of a run that fails in the simulator, as it does when it is
// emulated, moved is when a flow ended last; else it is t.
func lasts(ctx context.Context, x *experiment.Experiment, events int64) (t, moved units.Time, ok bool) {
	for i := range x.Plans {
		t = max(t, x.Plans[i].Until)
		for k := range x.Plans[i].Items {
			t = max(t, x.Plans[i].Items[k].Start)
		}
	}
	if len(x.Items) == 0 || len(x.Conns) > forecastConns || experiment.ProgramPath(x.Lab) != "" {
		return t, t, t > 0 && len(x.Items) == 0
	}
	hosts := make([]*host.Host, len(x.Plans))
	for i, p := range x.Plans {
		h, err := host.New(p, nil, nil)
		if err != nil {
			return 0, 0, false
		}
		hosts[i] = h
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	opts := simOptions(x)
	var seen []Progress
	opts.ProgressEvery = forecastEvery
	opts.Progress = func(now units.Time, n int64) {
		if seen = append(seen, simProgress(hosts, now)); n >= events {
			stop()
		}
	}
	s, err := sim.New(x.Fabric, hosts, opts)
	if err != nil {
		return 0, 0, false
	}
	switch err := s.Run(ctx); {
	case err == nil:
		return max(t, s.End()), max(t, s.End()), true
	case ctx.Err() == nil:
		return max(t, s.End()), max(t, lastAcked(hosts)), true
	}
	left, ok := rest(seen)
	return max(t, left), max(t, left), ok
}

// lastAcked is when a flow ended last.
func lastAcked(hosts []*host.Host) (last units.Time) {
	for _, h := range hosts {
		flows := h.Flows()
		for i := range flows {
			last = max(last, flows[i].Acked)
		}
	}
	return last
}

// rest extrapolates when a run is over from how far it was at several instants.
func rest(seen []Progress) (units.Time, bool) {
	if len(seen) < 2 {
		return 0, false
	}
	last, half := &seen[len(seen)-1], &seen[len(seen)/2]
	for i := range seen {
		if seen[i].LabTime >= last.LabTime/2 {
			half = &seen[i]
			break
		}
	}
	moved := last.Done - half.Done
	if last.Done >= last.Total {
		return last.LabTime, true
	}
	if moved <= 0 {
		return 0, false
	}
	left := float64(last.Total-last.Done) / float64(moved) * float64(last.LabTime-half.LabTime)
	return last.LabTime + units.Time(left), true
}

// AboutTime writes how long something takes, no more exactly than it is known.
func AboutTime(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		d = max(d.Round(time.Second), time.Second)
	case d < 2*time.Minute:
		d = d.Round(5 * time.Second)
	case d < time.Hour:
		d = d.Round(time.Minute)
	default:
		return fmt.Sprintf("about %.1f h", d.Hours())
	}
	if d < 2*time.Minute {
		return fmt.Sprintf("about %d s", int(d.Seconds()))
	}
	return fmt.Sprintf("about %d min", int(d.Minutes()))
}
