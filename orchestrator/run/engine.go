package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"weft/collectives/buffer"
	"weft/orchestrator/emulate"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/results/store"
	"weft/tc-shaping/qdisc"
)

// engine is a way to run an experiment, and why it was chosen.
type engine struct {
	name     string // sim, emu
	why      string
	datapath string
	place    place // of an emulation
	dilation float64
	slower   []float64 // what the kernel's datapath may have instead, should its links not be as asked; in turn
	captures captures
	run      func(context.Context, *Experiment, engine, *store.Run, Options) (*outcome, error)
}

// maxAutoHosts is how many hosts `auto` emulates at most: beyond, processes rather than packets fill the machine.
// Ours.
const maxAutoHosts = 128

// maxHosts is how many hosts are emulated even when asked for: each is a process of some megabytes with a network of
// its own. Ours.
const maxHosts = 1024

// choose picks the engine: the one asked for, or with auto the emulation where this machine can and the
// simulator where it cannot.
func choose(ctx context.Context, x *Experiment, o Options) (engine, error) {
	kind := o.Engine
	if kind == "" {
		kind = x.Lab.Engine.Kind
	}
	switch kind {
	case "sim":
		if err := simulable(x.Lab); err != nil {
			return engine{}, err
		}
		return simulator(cmp.Or(o.Why, "asked for")), nil
	case "emu":
		if err := x.emulable(); err != nil {
			return engine{}, err
		}
		p, err := places(ctx, x.Lab)
		if err != nil {
			return engine{}, unable(err)
		}
		if err := fits(x.Lab, x.Graph); err != nil {
			return engine{}, err
		}
		return emulator(ctx, x, p, "asked for", o)
	case "auto":
		why, err := x.simulatedUnasked()
		if err != nil {
			return engine{}, err
		}
		if why != "" {
			return simulator(why), nil
		}
		p, err := places(ctx, x.Lab)
		if err != nil && chosen(x.Lab) {
			return engine{}, unable(err)
		}
		if err != nil {
			return simulator(fmt.Sprintf("this machine cannot emulate: %v", err)), nil
		}
		return emulator(ctx, x, p, "this machine can emulate", o)
	}
	return engine{}, fmt.Errorf("engine %q is not auto, sim or emu", kind)
}

// simulable refuses what only emulation does.
func simulable(l *lab.Lab) error {
	if at := programPath(l); at != "" {
		return l.Errorf(at, "the simulator's hosts run no programs; --engine emu runs this lab")
	}
	return nil
}

// simulatedUnasked is why a lab that leaves the engine open is simulated on any machine; "": it is not. One that asks for what only
// emulation has is refused instead.
func (x *Experiment) simulatedUnasked() (why string, err error) {
	err = x.emulable()
	switch {
	case err != nil && chosen(x.Lab):
		return "", err
	case err != nil:
		return fmt.Sprintf("the emulation cannot run this lab: %v", problems(x.Lab, err)[0]), nil
	case x.Graph.Hosts > maxAutoHosts:
		return fmt.Sprintf("%d hosts are more than the %d that are emulated unless asked for", x.Graph.Hosts, maxAutoHosts), nil
	}
	return "", nil
}

// fits refuses more hosts than are emulated, by run as by deploy.
func fits(l *lab.Lab, g *topology.Graph) error {
	if n := g.Hosts; n > maxHosts {
		return l.Errorf("topology", "%d hosts are more than the %d that can be emulated on one machine; --engine sim runs them", n, maxHosts)
	}
	return nil
}

// emulable refuses what only the simulator does, by the setting that asks for it.
func (x *Experiment) emulable() error { return errors.Join(x.summable(), onlySimulated(x.Lab)) }

// summable refuses collectives of more ranks than emulated hosts reduce without rounding.
func (x *Experiment) summable() error {
	l := x.Lab
	found := once{lab: l, told: map[string]bool{}}
	for i := range l.Workload {
		if most, n := buffer.MostRanks(l.Workload[i].Spec(0, 0)), len(x.item(i).Ranks); n > most {
			found.add(fmt.Sprintf("workload.%d.ranks", l.Workload[i].Index), "emulated hosts reduce %s exactly for at most %d ranks, not for %d; --engine sim runs this lab",
				l.Workload[i].Type, most, n)
		}
	}
	return errors.Join(found.errs...)
}

// onlySimulated refuses the settings of a lab that the simulator alone heeds.
func onlySimulated(l *lab.Lab) error {
	var errs []error
	for _, c := range []struct {
		set        bool
		path, what string
	}{
		{l.Background.Load > 0, "background", "there is background traffic"},
		{l.Measure.Rates > 0, "measure.rates", "rates are measured"},
		{l.Measure.Acks, "measure.acks", "acknowledgements are recorded one by one"},
		{l.Measure.Events != "", "measure.queue_events", "queues are followed event by event"},
		{l.Measure.From > 0 && len(l.Workload) > 0, "measure.from", "there is a warm-up"}, // errors of clocks may count from an instant on
	} {
		if c.set {
			errs = append(errs, l.Errorf(c.path, "%s in the simulator alone so far; --engine sim runs this lab", c.what))
		}
	}
	return errors.Join(errs...)
}

func simulator(why string) engine {
	return engine{
		name: "sim", why: why, dilation: 1,
		run: func(ctx context.Context, x *Experiment, _ engine, dir *store.Run, o Options) (*outcome, error) {
			return simulate(ctx, x, dir, o)
		},
	}
}

func emulator(ctx context.Context, x *Experiment, p place, why string, o Options) (engine, error) {
	d, how, err := p.dilation(ctx, x, emulate.Load(x.Plans), o)
	if err != nil {
		return engine{}, err
	}
	return engine{
		name: "emu", datapath: p.datapath, place: p, dilation: d, slower: x.slower(p, d), run: emulated,
		why: fmt.Sprintf("%s; datapath %s, runtime %s, dilation %g (%s)", why, p.datapath, p.runtime, d, how),
	}, nil
}

// dilation is that of a lab in a place which carries a load, in data packets per second of lab time, and how it came about.
func (p place) dilation(ctx context.Context, x *Experiment, load float64, o Options) (d float64, how string, err error) {
	if p.datapath != onKernel {
		return dilationFor(ctx, x, load, p.processes(o))
	}
	d, how = x.Lab.Engine.Dilation, "asked for"
	if d == 0 {
		pace, err := emulate.MeasureKernel()
		if err != nil {
			return 0, "", err
		}
		n := x.switches()
		d, how = pace.Dilation(load, n, x.BaseRTT), fmt.Sprintf("auto: this kernel carries about %.0f data packets/s over %d switches", pace.Rate(n), n)
	}
	return d, how, x.honoured(d, p.kernel)
}

// How often, and by how much, the kernel's datapath becomes slower when its links are not what the lab asks for, while the lab leaves
// its dilation open. Ours: a machine that is busier than when it was measured, and not one that cannot.
const (
	slowerTimes = 3
	slowerBy    = 2
)

// slower are the dilations that a lab in a place may have instead of d.
func (x *Experiment) slower(p place, d float64) (all []float64) {
	if p.datapath != onKernel || x.Lab.Engine.Dilation != 0 {
		return nil
	}
	for range slowerTimes {
		if d *= slowerBy; x.honoured(d, p.kernel) != nil {
			break
		}
		all = append(all, d)
	}
	return all
}

// switches is over how many switches the longest ways between hosts lead.
func (x *Experiment) switches() int {
	most := 1
	for i := range x.Conns {
		most = max(most, len(x.Conns[i].Forward.Rates)-1)
	}
	return most
}

// checkKernel refuses what no kernel can be at the dilation that the lab asks for.
func (x *Experiment) checkKernel() error {
	d := x.Lab.Engine.Dilation
	if x.Lab.Engine.Datapath != onKernel || x.Lab.Engine.Kind == "sim" || d == 0 {
		return nil
	}
	return x.honoured(d, qdisc.Full())
}

// honoured refuses what a kernel cannot be at a dilation, by the setting of the lab.
func (x *Experiment) honoured(d float64, kernel qdisc.Capabilities) error {
	spec := x.emulation(d, emulate.Processes{})
	port, err := spec.CheckKernel(kernel)
	if err == nil {
		return nil
	}
	return x.Lab.Errorf("engine.datapath", "%s at dilation %g: %v; datapath fabric can", x.PortNames()[port], d, err)
}

// dilationFor is the lab's, unless that is hopeless here, or the smallest that this machine can carry a load at, in data
// packets per second of lab time.
func dilationFor(ctx context.Context, x *Experiment, load float64, p emulate.Processes) (d float64, how string, err error) {
	if d := x.Lab.Engine.Dilation; d > 0 && emulate.Certain(d, load) {
		return d, "asked for", nil
	}
	c, err := emulate.Calibrate(ctx, p)
	if ctx.Err() != nil {
		return 0, "", ctx.Err() // what else went wrong came of that
	}
	if err != nil {
		return 0, "", fmt.Errorf("measure what this machine can carry: %w", err)
	}
	if d := x.Lab.Engine.Dilation; d > 0 {
		if err := emulate.CheckDilation(c, d, load, x.BaseRTT); err != nil {
			return 0, "", x.Lab.Errorf("engine.dilation", "%v", err)
		}
		return d, "asked for", nil
	}
	return emulate.AutoDilation(c, load, x.BaseRTT), fmt.Sprintf("auto: this machine carries %.0f data packets/s", c.PacketsPerSecond), nil
}
