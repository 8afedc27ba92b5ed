package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"weft/host"
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
		if err := p.checkSockets(x, o); err != nil && !experiment.AsksForEmulation(x.Lab) {
			return simulator(err.Error()), nil
		}
		return emulator(ctx, x, p, "this machine can emulate", o)
	}
	return engine{}, fmt.Errorf("engine %q is not auto, sim or emu", kind)
}

func simulator(why string) engine { return engine{name: "sim", why: why, dilation: 1, run: simulate} }

func emulator(ctx context.Context, x *experiment.Experiment, p placement, why string, o Options) (engine, error) {
	work, err := workloadLoad(x)
	if err != nil {
		return engine{}, err
	}
	d, how, err := p.chooseDilation(ctx, x, work, o)
	if err != nil {
		return engine{}, err
	}
	if slices.ContainsFunc(x.Lab.Sources, isRepeat) {
		how = "slower than the run that it repeats"
	}
	nic, doubt, datapath := "", "", p.datapath
	if o.DatapathWhy != "" {
		datapath += " (" + o.DatapathWhy + ")"
	}
	if err := p.checkSockets(x, o); err != nil {
		doubt = "; " + err.Error()
	}
	if p.bypass {
		nic = ", nic " + p.nic()
	}
	return engine{
		name: "emu", datapath: p.datapath, placement: p, dilation: d, slower: slowerDilations(x, p, d), run: emulated,
		why: fmt.Sprintf("%s; datapath %s, runtime %s%s, dilation %.15g (%s)%s", why, datapath, p.runtime, nic, d, how,
			doubt),
	}, nil
}

// isRepeat reports whether a setting is a dilation that Weft chose to repeat a run more slowly.
func isRepeat(s lab.Source) bool { return s.Path == "engine.dilation" && s.Flag == lab.RepeatFlag }

// load is the data packets per second of lab time that a network must carry.
type load struct {
	whole float64
	parts []float64 // what each part must do; nil: the network is in one piece
}

// loadOf returns the load of hosts on a network.
func loadOf(x *experiment.Experiment, hosts []host.Demand) (load, error) {
	l := load{whole: emulate.Load(hosts)}
	parts, err := x.Parts()
	if parts != nil {
		l.parts = emulate.PartLoads(hosts, &x.Fabric, parts, x.Lab.Engine.Machines)
	}
	return l, err
}

// workloadLoad returns the load of a lab's collectives, or of its programs if that is larger.
func workloadLoad(x *experiment.Experiment) (load, error) {
	work, err := loadOf(x, host.Demands(x.Plans))
	if err != nil || len(x.Programs) == 0 {
		return work, err
	}
	programs, err := loadOf(x, x.ProgramDemands())
	work.whole = max(work.whole, programs.whole)
	for k := range work.parts {
		work.parts[k] = max(work.parts[k], programs.parts[k])
	}
	return work, err
}

// byMachine returns what each of several machines must do, or this one alone.
func (l *load) byMachine(several bool) []float64 {
	if l.parts == nil {
		return []float64{l.whole}
	}
	if several {
		return l.parts
	}
	sum := 0.0
	for _, part := range l.parts {
		sum += part
	}
	return []float64{sum}
}

// chooseDilation returns the dilation of an experiment and how it was chosen.
func (p placement) chooseDilation(
	ctx context.Context, x *experiment.Experiment, work load, o Options,
) (d float64, how string, err error) {
	rtt := emulate.StrictRTT(x.BaseRTT, x.DelayTarget())
	if p.datapath != lab.DatapathKernel {
		processes := p.processes(o)
		processes.Bypass = p.bypass && !p.mixed // the slower kind decides
		return fabricDilation(ctx, x, work, rtt, processes, o.Machines)
	}
	d, how = x.Lab.Engine.Dilation, "asked for"
	if d == 0 {
		pace, err := emulate.MeasureKernel()
		if err != nil {
			return 0, "", err
		}
		n := max(1, x.Links-1)
		d = pace.Dilation(work.whole, n, rtt)
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
// the smallest at which each machine carries its load, late by no more than a network with the base
// round trip rtt allows, and packets come from one part of the network to another in time. It
// returns an error if the lab's dilation cannot work.
func fabricDilation(
	ctx context.Context, x *experiment.Experiment, work load, rtt units.Time, p emulate.Processes, far Machines,
) (d float64, how string, err error) {
	asked, loads := x.Lab.Engine.Dilation, work.byMachine(far != nil)
	if asked > 0 && far == nil {
		loads = []float64{work.whole} // what crosses is an estimate: no reason for a refusal
	}
	if asked > 0 && emulate.Certain(asked, slices.Max(loads)) {
		return asked, "asked for", nil
	}
	all, err := capacities(ctx, p, far)
	if ctx.Err() != nil {
		return 0, "", ctx.Err() // a cancelled measurement fails for no other reason
	}
	if err != nil {
		return 0, "", err
	}
	parts, err := x.Parts()
	if err != nil {
		return 0, "", err
	}
	tightest, refused := 0.0, error(nil)
	for k, c := range all {
		name, load := "this machine", loads[k]
		if far != nil {
			name, load = sharing(all, loads, k)
		}
		if asked > 0 {
			if tight := load / c.PacketsPerSecond; tight > tightest {
				tightest, refused = tight, emulate.CheckDilation(c, name, asked, load, rtt)
			}
			continue
		}
		if least := emulate.AutoDilation(c, load, rtt); least > d {
			d, how = least, fmt.Sprintf("auto: %s carries %.0f data packets/s", name, c.PacketsPerSecond)
		}
		if parts == nil {
			continue
		}
		slack := x.Fabric.Slack(parts)
		if cut := emulate.CutDilation(c, load, slack); cut > d {
			d, how = cut, fmt.Sprintf("auto: packets have %v from one part of the network to another", slack.Rounded())
		}
	}
	if refused != nil {
		return 0, "", x.Lab.Errorf("engine.dilation", "%v", refused)
	}
	if asked > 0 {
		return asked, "asked for", nil
	}
	return d, how, nil
}

// sharing returns a name for machine k, and what it must carry: several agents may be on one.
func sharing(all []emulate.Capacity, loads []float64, k int) (name string, load float64) {
	var parts []string
	for i, c := range all {
		if i == k || c.Boot != "" && c.Boot == all[k].Boot {
			parts = append(parts, emulate.MachineName(i))
			load += loads[i]
		}
	}
	if len(parts) == 1 {
		return parts[0], load
	}
	return "the one machine of " + strings.Join(parts, ", "), load
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
