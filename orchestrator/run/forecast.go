package run

import (
	"context"
	"fmt"
	"math"
	"time"

	"weft/host"
	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/uml"
	"weft/sim"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// Forecast predicts the engine of a run and about how long the run takes.
type Forecast struct {
	Engine string
	Why    string // reason for the engine, and its settings
	// Asked says that the lab or the command line asks for something that only emulation has: a
	// runtime, a datapath or a dilation.
	Asked    bool
	Dilation float64       // of an emulation
	Wall     time.Duration // of an emulation, about; 0: not known
	// Simulated is about how long a simulation of the same experiment takes on one idle processor.
	Simulated time.Duration
}

// NewForecast predicts how an experiment would run. It may have to measure the machine.
func NewForecast(ctx context.Context, x *experiment.Experiment, o Options) (Forecast, error) {
	l := x.Lab
	e, err := chooseEngine(ctx, x, o)
	if err != nil {
		return Forecast{}, err
	}
	f := Forecast{Engine: e.name, Why: e.why, Dilation: e.dilation, Simulated: SimTime(x)}
	f.Asked = experiment.AsksForEmulation(l) || l.Engine.Dilation > 0 ||
		l.Engine.Runtime != "" && l.Engine.Runtime != "auto"
	if e.name == "emu" {
		f.Wall = forecastWall(ctx, x, &e, o.Progress)
	}
	return f, nil
}

// maxForecasts is the maximum number of forecasts for a series of runs, since each may take a
// second. Our own choice.
const maxForecasts = 8

// Sampled returns the runs of a series whose forecasts stand for all: at most maxForecasts, evenly
// spread.
func Sampled[T any](runs []T) []T {
	some := make([]T, min(len(runs), maxForecasts))
	for k := range some {
		some[k] = runs[k*len(runs)/len(some)]
	}
	return some
}

// Announce returns a sentence about a series of runs that may be emulated one after the other, with
// about how long all of them take. It makes the forecasts of those that are Sampled, and
// assumes that the other runs are alike. The sentence is empty if nothing is emulated or the time
// is not known. engines has the requested engine of each run, and forecast returns NewForecast of a
// run's experiment.
func Announce(forecast func(i int, o Options) (Forecast, error), engines []string, o Options) string {
	var which []int
	for i, e := range engines {
		if e != "sim" {
			which = append(which, i)
		}
	}
	sampled, emulated := Sampled(which), 0
	var takes time.Duration
	var first Forecast
	slowest, fastest := 0.0, math.Inf(1)
	for _, i := range sampled {
		o.Engine = engines[i]
		f, err := forecast(i, o)
		if err != nil {
			return "" // the run itself reports the error
		}
		if f.Engine != "emu" {
			continue
		}
		if f.Wall == 0 {
			return ""
		}
		if emulated++; emulated == 1 {
			first = f
		}
		takes, slowest, fastest = takes+f.Wall, max(slowest, f.Dilation), min(fastest, f.Dilation)
	}
	if emulated == 0 {
		return ""
	}
	takes = takes * time.Duration(len(which)) / time.Duration(len(sampled))
	runs := fmt.Sprintf("%d runs", len(which))
	switch {
	case emulated < len(sampled):
		runs = fmt.Sprintf("some of %d runs", len(engines))
	case len(which) < len(engines):
		runs = fmt.Sprintf("%d of %d runs", len(which), len(engines))
	}
	if slowest > fastest {
		runs += fmt.Sprintf(" at dilations from %.15g to %.15g", fastest, slowest)
	}
	return fmt.Sprintf("engine emu: %s, one after the other; takes %s in all. The first: %s",
		runs, AboutTime(takes), first.Why)
}

// Limits of a forecast, all our own choice.
const (
	// forecastEvents is the number of events to simulate: about a second on an idle machine.
	forecastEvents = 1 << 20
	// forecastWait bounds the simulation on a busy one: the user waits for the first line.
	forecastWait = 2 * time.Second
	// forecastStep is the number of events between two samples of the progress.
	forecastStep = 1 << 14
	// forecastShown is the time between two reports of the progress.
	forecastShown = 200 * time.Millisecond
	// forecastConns is the maximum number of connections for which there is a forecast.
	forecastConns = 50_000
	// emulationStart is the time of starting an emulation and collecting its results, beside what
	// each node and each direction of a link takes.
	emulationStart = 2 * time.Second
	namespaceStart = 20 * time.Millisecond
	containerStart = 500 * time.Millisecond
	umlStart       = time.Second // a node under User Mode Linux: docs/kernel.md
	linkStart      = 20 * time.Millisecond
)

// start returns about how long the nodes and links of an experiment take to start, and to end.
// Measured on two processors: quickstart over Linux, 36 nodes and 96 directions, beside other work.
func (p placement) start(x *experiment.Experiment) time.Duration {
	nodes, links, each := len(x.Plans), 0, namespaceStart
	if p.datapath == lab.DatapathKernel {
		nodes, links = nodes+len(x.Fabric.Switches), len(x.Fabric.Ports)
	}
	switch {
	case uml.Inside() != "":
		each = umlStart
	case p.containers:
		each = containerStart
	}
	return emulationStart + time.Duration(nodes)*each + time.Duration(links)*linkStart
}

// forecastWall returns about how long emulating the experiment by an engine takes. 0 means not
// known. progress is called while it is estimated; it may be nil.
func forecastWall(ctx context.Context, x *experiment.Experiment, e *engine, progress func(Progress)) time.Duration {
	dilation := e.dilation
	t, moved, ok := forecastLabTime(ctx, x, forecastEvents, progress)
	if !ok {
		return 0
	}
	if moved < t { // the run fails, and ends when it is given up
		spec := emulation(x, dilation, emulate.Processes{}, qdisc.Full())
		t = min(t, spec.GivenUp(moved))
	}
	return e.placement.start(x) + time.Duration(float64(t)*dilation/float64(units.Nanosecond))
}

// forecastLabTime returns about how long the experiment takes in lab time. It simulates the given
// number of events, or as many as fit into forecastWait, and extrapolates the rest at the speed of
// the second half of them. ok is false where that gives no answer. For a run that fails in the
// simulator, as it will when it is emulated, moved is the completion of its last flow; otherwise
// moved is t. progress is called every forecastShown; it may be nil.
func forecastLabTime(
	ctx context.Context, x *experiment.Experiment, events int64, progress func(Progress),
) (t, moved units.Time, ok bool) {
	for i := range x.Plans {
		t = max(t, x.Plans[i].Until)
		for k := range x.Plans[i].Items {
			t = max(t, x.Plans[i].Items[k].Start)
		}
	}
	if len(x.Items) == 0 || len(x.Conns) > forecastConns || experiment.ProgramPath(x.Lab) != "" {
		return t, t, t > 0 && len(x.Items) == 0
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	shown := began
	hosts := make([]*host.Host, len(x.Plans))
	for i, p := range x.Plans {
		h, err := host.New(p, nil, nil)
		if err != nil {
			return 0, 0, false
		}
		h.Interrupt(func() bool { return ctx.Err() != nil })
		hosts[i] = h
	}
	opts := simOptions(x)
	var seen []Progress
	opts.ProgressEvery = forecastStep
	opts.Progress = func(now units.Time, n int64) {
		took := time.Since(began)
		if seen = append(seen, simProgress(hosts, now)); n >= events || took > forecastWait {
			stop()
		}
		if progress != nil && began.Add(took).Sub(shown) >= forecastShown {
			shown = began.Add(took)
			share := max(float64(n)/float64(events), float64(took)/float64(forecastWait))
			progress(Progress{Phase: Forecasting, Done: units.Bytes(100 * min(share, 1)), Total: 100})
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
	left, ok := extrapolate(seen)
	return max(t, left), max(t, left), ok
}

// crossingTime is about how long the simulator takes for a packet on a link, with the answer to it.
// Measured, on one processor, from 4 to 1,024 hosts: 0.5 to 0.6 us.
const crossingTime = 600 * time.Nanosecond

// worthTelling is the shortest simulation whose duration is announced. Our own choice.
const worthTelling = 10 * time.Second

// SimTime returns about how long one idle processor takes to simulate an experiment.
func SimTime(x *experiment.Experiment) time.Duration {
	return time.Duration(min(x.Packets*float64(x.Links)*float64(crossingTime), math.MaxInt64/2))
}

// forecastSim says how many packets a simulation is of and about how long it takes. It is empty for
// a short one.
func forecastSim(x *experiment.Experiment) string {
	if SimTime(x) < worthTelling {
		return ""
	}
	return fmt.Sprintf("; simulates about %.1f million packets, which takes %s on an idle processor", x.Packets/1e6,
		AboutTime(SimTime(x)))
}

// forecast says about how long a run takes.
func forecast(ctx context.Context, x *experiment.Experiment, e engine, o Options) string {
	if e.name == "sim" {
		return forecastSim(x)
	}
	wall := o.Wall
	if wall == 0 {
		wall = forecastWall(ctx, x, &e, o.Progress)
	}
	if wall > 0 {
		return "; takes " + AboutTime(wall)
	}
	if why := experiment.UnknownTime(x.Lab); why != "" {
		return "; " + why
	}
	return ""
}

// lastAcked returns the completion of the last flow.
func lastAcked(hosts []*host.Host) (last units.Time) {
	for _, h := range hosts {
		flows := h.Flows()
		for i := range flows {
			last = max(last, flows[i].Acked)
		}
	}
	return last
}

// extrapolate returns when a run ends, by its progress at several instants.
func extrapolate(seen []Progress) (units.Time, bool) {
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

// AboutTime formats a duration that is only roughly known: "about 4 min".
func AboutTime(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		d = max(d.Round(time.Second), time.Second)
	case d < 2*time.Minute:
		d = d.Round(5 * time.Second)
	case d < time.Hour:
		d = d.Round(time.Minute)
	case d < 72*time.Hour:
		return fmt.Sprintf("about %.1f h", d.Hours())
	default:
		return fmt.Sprintf("about %.0f days", d.Hours()/24)
	}
	if d < 2*time.Minute {
		return fmt.Sprintf("about %d s", int(d.Seconds()))
	}
	return fmt.Sprintf("about %d min", int(d.Minutes()))
}
