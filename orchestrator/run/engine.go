package run

import (
	"cmp"
	"context"
	"fmt"

	"weft/orchestrator/emulate"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/orchestrator/summary"
	"weft/results/store"
	"weft/units"
)

// runFunc runs an experiment and returns its outcome. On an error the outcome has the results up to
// it.
type runFunc func(context.Context, *experiment.Experiment, engine, *store.Run, Options) (*summary.Outcome, error)

// engine is an engine with its settings for one experiment.
type engine struct {
	name      string // sim or emu
	why       string
	datapath  string
	placement placement // of an emulation
	dilation  float64
	// slower has the dilations to try in turn if the links of the kernel datapath are not as the
	// lab asks.
	slower   []float64
	captures captures
	run      runFunc
}

// chooseEngine returns the requested engine. With auto it returns the emulation if the lab and this
// machine allow it, and the simulator otherwise.
func chooseEngine(ctx context.Context, x *experiment.Experiment, o Options) (engine, error) {
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
		p, err := findPlacement(ctx, x.Lab, o)
		if err != nil {
			return engine{}, cannotEmulate(x.Lab, err)
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
		p, err := findPlacement(ctx, x.Lab, o)
		if err != nil && experiment.AsksForEmulation(x.Lab) {
			return engine{}, cannotEmulate(x.Lab, err)
		}
		if err != nil {
			return simulator(fmt.Sprintf("this machine cannot emulate: %v", err)), nil
		}
		return emulator(ctx, x, p, "this machine can emulate", o)
	}
	return engine{}, fmt.Errorf("engine %q is not auto, sim or emu", kind)
}

func simulator(why string) engine { return engine{name: "sim", why: why, dilation: 1, run: simulate} }

func emulator(ctx context.Context, x *experiment.Experiment, p placement, why string, o Options) (engine, error) {
	d, how, err := p.chooseDilation(ctx, x, max(emulate.Load(x.Plans), x.ProgramLoad()), o)
	if err != nil {
		return engine{}, err
	}
	nic := ""
	if p.bypass {
		nic = ", nic " + p.nic()
	}
	return engine{
		name: "emu", datapath: p.datapath, placement: p, dilation: d, slower: slowerDilations(x, p, d), run: emulated,
		why: fmt.Sprintf("%s; datapath %s, runtime %s%s, dilation %g (%s)", why, p.datapath, p.runtime, nic, d, how),
	}, nil
}

// chooseDilation returns the dilation of an experiment and how it was chosen. load is in data
// packets per second of lab time.
func (p placement) chooseDilation(
	ctx context.Context, x *experiment.Experiment, load float64, o Options,
) (d float64, how string, err error) {
	rtt := emulate.StrictRTT(x.BaseRTT, x.DelayTarget())
	if p.datapath != lab.DatapathKernel {
		processes := p.processes(o)
		processes.Bypass = p.bypass && !p.mixed // the slower kind decides
		return fabricDilation(ctx, x, load, rtt, processes, o.Machines)
	}
	d, how = x.Lab.Engine.Dilation, "asked for"
	if d == 0 {
		pace, err := emulate.MeasureKernel()
		if err != nil {
			return 0, "", err
		}
		n := x.Switches()
		d = pace.Dilation(load, n, rtt)
		how = fmt.Sprintf("auto: this kernel carries about %.0f data packets/s over %d switches", pace.Rate(n), n)
	}
	return d, how, x.Honoured(d, p.kernel)
}

// If the links of the kernel datapath are not as the lab asks and the lab leaves its dilation
// open, the dilation grows up to slowerTimes times by a factor of slowerBy. Our own choice: it
// helps a machine that is busier than when it was measured, and ends soon on one that cannot carry
// the lab.
const (
	slowerTimes = 3
	slowerBy    = 2
)

// slowerDilations returns the dilations that an experiment may have instead of d.
func slowerDilations(x *experiment.Experiment, p placement, d float64) (all []float64) {
	if p.datapath != lab.DatapathKernel || x.Lab.Engine.Dilation != 0 {
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

// fabricDilation returns the dilation on the modelled fabric and how it was chosen: the lab's, or
// the smallest at which this machine carries load, in data packets per second of lab time, late by
// no more than a network with the base round trip rtt allows. It
// returns an error if the lab's dilation cannot work on this machine.
func fabricDilation(
	ctx context.Context, x *experiment.Experiment, load float64, rtt units.Time, p emulate.Processes, far Machines,
) (d float64, how string, err error) {
	if d := x.Lab.Engine.Dilation; d > 0 && emulate.Certain(d, load) {
		return d, "asked for", nil
	}
	all, err := capacities(ctx, p, far)
	if ctx.Err() != nil {
		return 0, "", ctx.Err() // a cancelled measurement fails for no other reason
	}
	if err != nil {
		return 0, "", err
	}
	if d := x.Lab.Engine.Dilation; d > 0 {
		for _, c := range all {
			if err := emulate.CheckDilation(c, d, load, rtt); err != nil {
				return 0, "", x.Lab.Errorf("engine.dilation", "%v", err)
			}
		}
		return d, "asked for", nil
	}
	var slowest emulate.Capacity
	for _, c := range all {
		if least := emulate.AutoDilation(c, load, rtt); least > d {
			d, slowest = least, c
		}
	}
	how = fmt.Sprintf("auto: this machine carries %.0f data packets/s", slowest.PacketsPerSecond)
	if far != nil {
		how = fmt.Sprintf("auto: the slowest machine carries %.0f data packets/s", slowest.PacketsPerSecond)
	}
	if parts, err := x.Parts(); err != nil {
		return 0, "", err
	} else if parts != nil {
		slack := x.Fabric.Slack(parts)
		if cut := emulate.CutDilation(slowest, load, slack); cut > d {
			d = cut
			how = fmt.Sprintf("auto: packets have %v from one part of the network to another", slack.Rounded())
		}
	}
	return d, how, nil
}

// capacities returns what each machine of a run can carry: the other machines, or this one.
func capacities(ctx context.Context, p emulate.Processes, far Machines) ([]emulate.Capacity, error) {
	if far != nil {
		return far.Capacities(ctx)
	}
	c, err := emulate.Calibrate(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("measure what this machine can carry: %w", err)
	}
	return []emulate.Capacity{c}, nil
}
