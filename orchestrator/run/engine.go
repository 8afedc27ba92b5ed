package run

import (
	"cmp"
	"context"
	"fmt"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/results/store"
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
	run      func(context.Context, *experiment.Experiment, engine, *store.Run, Options) (*summary.Outcome, error)
}

// choose picks the engine: the one asked for, or with auto the emulation where this machine can and the
// simulator where it cannot.
func choose(ctx context.Context, x *experiment.Experiment, o Options) (engine, error) {
	kind := o.Engine
	if kind == "" {
		kind = x.Lab.Engine.Kind
	}
	switch kind {
	case "sim":
		if err := experiment.Simulable(x.Lab); err != nil {
			return engine{}, err
		}
		return simulator(cmp.Or(o.Why, "asked for")), nil
	case "emu":
		if err := x.Emulable(); err != nil {
			return engine{}, err
		}
		p, err := places(ctx, x.Lab)
		if err != nil {
			return engine{}, unable(err)
		}
		if err := experiment.Fits(x.Lab, x.Graph); err != nil {
			return engine{}, err
		}
		return emulator(ctx, x, p, "asked for", o)
	case "auto":
		why, err := x.SimulatedUnasked()
		if err != nil {
			return engine{}, err
		}
		if why != "" {
			return simulator(why), nil
		}
		p, err := places(ctx, x.Lab)
		if err != nil && experiment.AsksForEmulation(x.Lab) {
			return engine{}, unable(err)
		}
		if err != nil {
			return simulator(fmt.Sprintf("this machine cannot emulate: %v", err)), nil
		}
		return emulator(ctx, x, p, "this machine can emulate", o)
	}
	return engine{}, fmt.Errorf("engine %q is not auto, sim or emu", kind)
}

func simulator(why string) engine {
	return engine{
		name: "sim", why: why, dilation: 1,
		run: func(ctx context.Context, x *experiment.Experiment, _ engine, dir *store.Run, o Options) (*summary.Outcome, error) {
			return simulate(ctx, x, dir, o)
		},
	}
}

func emulator(ctx context.Context, x *experiment.Experiment, p place, why string, o Options) (engine, error) {
	d, how, err := p.dilation(ctx, x, emulate.Load(x.Plans), o)
	if err != nil {
		return engine{}, err
	}
	return engine{
		name: "emu", datapath: p.datapath, place: p, dilation: d, slower: slower(x, p, d), run: emulated,
		why: fmt.Sprintf("%s; datapath %s, runtime %s, dilation %g (%s)", why, p.datapath, p.runtime, d, how),
	}, nil
}

// dilation is that of a lab in a place which carries a load, in data packets per second of lab time, and how it came about.
func (p place) dilation(ctx context.Context, x *experiment.Experiment, load float64, o Options) (d float64, how string, err error) {
	if p.datapath != experiment.OnKernel {
		return dilationFor(ctx, x, load, p.processes(o))
	}
	d, how = x.Lab.Engine.Dilation, "asked for"
	if d == 0 {
		pace, err := emulate.MeasureKernel()
		if err != nil {
			return 0, "", err
		}
		n := x.Switches()
		d, how = pace.Dilation(load, n, x.BaseRTT), fmt.Sprintf("auto: this kernel carries about %.0f data packets/s over %d switches", pace.Rate(n), n)
	}
	return d, how, x.Honoured(d, p.kernel)
}

// How often, and by how much, the kernel's datapath becomes slower when its links are not what the lab asks for, while the lab leaves
// its dilation open. Ours: a machine that is busier than when it was measured, and not one that cannot.
const (
	slowerTimes = 3
	slowerBy    = 2
)

// slower are the dilations that a lab in a place may have instead of d.
func slower(x *experiment.Experiment, p place, d float64) (all []float64) {
	if p.datapath != experiment.OnKernel || x.Lab.Engine.Dilation != 0 {
		return nil
	}
	for range slowerTimes {
		if d *= slowerBy; x.Honoured(d, p.kernel) != nil {
			break
		}
		all = append(all, d)
	}
	return all
}

// dilationFor is the lab's, unless that is hopeless here, or the smallest that this machine can carry a load at, in data
// packets per second of lab time.
func dilationFor(ctx context.Context, x *experiment.Experiment, load float64, p emulate.Processes) (d float64, how string, err error) {
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
