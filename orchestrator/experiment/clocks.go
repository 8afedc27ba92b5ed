package experiment

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"weft/clocksync"
	"weft/clocksync/clock"
	"weft/clocksync/node"
	"weft/clocksync/noise"
	"weft/host"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/units"
)

// Clocks has the settings of hosts' clocks that follow from the run.
type Clocks struct {
	node.Protocols            // the lab's, with what follows from the run
	Warmup         units.Time // time of synchronization before the workload begins

	// Standing are the clocks of the hosts of a deployed network, by host; nil: they are exact.
	// Plans have a Clock as well if a protocol synchronizes them.
	Standing []clock.Config
}

// addStandingClocks gives the hosts of a deployed network their clocks.
func (x *compiler) addStandingClocks() error {
	c, reference := &x.Lab.Clocks, x.reference()
	if c.Kind().Perfect {
		return nil
	}
	for h := range x.Plans {
		x.Clocks.Standing = append(x.Clocks.Standing, x.oscillator(h, reference))
	}
	if !c.Kind().Talks || x.Lab.Engine.OnKernel() { // where nothing drives nodes
		return nil
	}
	places, err := x.places(reference)
	if err != nil {
		return err
	}
	x.Clocks.Protocols = c.Protocols
	x.Clocks.Fit(node.Sync(c.Sync), programLength, x.BaseRTT)
	return x.setClocks(reference, places, 0)
}

// addClocks gives every host its clock, unless the lab's are perfect. If the experiment is not
// sound so far, it only looks for errors that do not follow from others.
func (x *compiler) addClocks(sound bool) error {
	c := &x.Lab.Clocks
	x.Clocks.Protocols = c.Protocols
	for h := range x.Plans {
		x.Plans[h].Until = c.For
		if b := x.Lab.Background; b.Load > 0 && len(x.Plans) > 1 {
			x.Plans[h].Background = &host.Background{Load: b.Load, Burst: b.Burst, Packet: b.Packet,
				Hosts: len(x.Plans)}
		}
	}
	errs := []error{x.faultsOfClocks()}
	if !c.Imperfect() {
		return errs[0]
	}
	reference := x.reference()
	places, err := x.places(reference)
	errs = append(errs, err)
	warmed, err := x.warmed(reference)
	errs = append(errs, err)
	if !sound {
		return errors.Join(errs...)
	}
	x.warmUp(x.Clocks.Fit(node.Sync(c.Sync), x.length(), x.BaseRTT))
	return errors.Join(append(errs, x.setClocks(reference, places, warmed))...)
}

// setClocks adds the clocks to the plans of all hosts. places is what x.places returned, and warmed
// what x.warmed did. The clocks of a deployed network keep no samples.
func (x *compiler) setClocks(reference clocksync.Node, places []clocksync.Place, warmed float64) error {
	c := &x.Lab.Clocks
	sample := c.Sample
	if !x.workload {
		sample = 0
	}
	also := x.aroundFaults()
	for h := range x.Plans {
		x.Plans[h].Clock = &node.Config{
			Clock: x.oscillator(h, reference), Stamp: c.Stamp, Delay: c.Noise,
			Sync: node.Sync(c.Sync), Control: c.Control, Sample: sample, Also: also, Protocols: x.Clocks.Protocols,
			Setup: clocksync.Setup{
				Self: clocksync.Node(h), Nodes: len(x.Plans), Reference: reference, Seed: x.Lab.Seed,
				Jitter: c.Stamp.Jitter, Quantum: c.Stamp.Quantum, Skew: c.Skew + warmed, Offset: max(c.Offset, 1),
			},
		}
		if places != nil {
			x.Plans[h].Clock.Setup.Place = &places[h]
		}
		if c.PeerToPeer && c.Kind().Bridged != 0 {
			x.Plans[h].Clock.Setup.Bridge = clocksync.Node(x.Graph.Home(topology.NodeID(h)))
		}
		x.upset(h)
		var errs []error
		for _, err := range causes(x.Plans[h].Clock.CheckParams()) {
			errs = append(errs, x.Lab.Errorf("clocks."+c.Sync, "%s", strings.TrimPrefix(err.Error(), c.Sync+": ")))
		}
		if len(errs) > 0 {
			return errors.Join(errs...)
		}
	}
	return x.probesFit()
}

// probesFit rejects probes that exceed the rate of a host's link: they would queue without end and
// measure nothing. A fault that ends may slow a link down to less.
func (x *compiler) probesFit() error {
	clocks := &x.Lab.Clocks
	kind := clocks.Kind()
	var errs []error
	for h := range x.Plans {
		need := x.Plans[h].Clock.Probes()
		link := x.Graph.Uplink(topology.NodeID(h))
		if rate := x.Graph.Links[link].Rate; need >= rate {
			return x.Lab.Errorf("clocks."+clocks.Sync, "probes take %v of the link of %s, which carries %v; "+
				"expected %s", need, x.Graph.Nodes[h].Name, rate, kind.Lighter)
		}
		for _, f := range x.Faults.All {
			if at, ok := x.Graph.LinkNamed(f.Link); ok && at == link && f.Rate != nil && f.For == 0 && need >= *f.Rate {
				errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, "rate"),
					"probes of %s take %v of the link of %s; expected %s", kind.Title, need, x.Graph.Nodes[h].Name,
					kind.Lighter))
			}
		}
	}
	return errors.Join(errs...)
}

// upset adds the faults of the clock of host h to its plan.
func (x *compiler) upset(h int) {
	c := x.Plans[h].Clock
	for _, f := range x.Faults.All {
		k := f.Clock
		switch {
		case k == nil || k.Host != x.Graph.Nodes[h].Name:
		case k.Down:
			c.Outages = append(c.Outages, node.Outage{At: f.At, For: f.For})
		case k.Lies:
			c.Lies = append(c.Lies, node.Lie{At: f.At, By: k.Lie})
		case k.Step != 0:
			c.Clock.Steps = append(c.Clock.Steps, clock.Step{At: f.At, By: k.Step})
		default:
			c.Clock.Ramps = append(c.Clock.Ramps, clock.Ramp{At: f.At, Over: k.Over, By: k.Skew})
		}
	}
	slices.SortFunc(c.Outages, func(a, b node.Outage) int { return cmp.Compare(a.At, b.At) })
	slices.SortStableFunc(c.Lies, func(a, b node.Lie) int { return cmp.Compare(a.At, b.At) })
	slices.SortFunc(c.Clock.Steps, func(a, b clock.Step) int { return cmp.Compare(a.At, b.At) })
}

// aroundFaults returns the instants before and at which faults of clocks begin or end: between the
// samples of an interval a clock could be stepped and back unseen.
func (x *compiler) aroundFaults() (all []units.Time) {
	for _, f := range x.Faults.All {
		if f.Clock == nil {
			continue
		}
		for _, at := range []units.Time{f.At, f.At + f.For + f.Clock.Over} {
			all = append(all, max(at-1, 0), at)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// faultsOfClocks rejects faults of clocks if the lab's are perfect, and those of a protocol if none
// exchanges the time.
func (x *compiler) faultsOfClocks() error {
	kind := x.Lab.Clocks.Kind()
	var errs []error
	for _, f := range x.Lab.Faults {
		if f.Clock != nil && kind.Perfect {
			errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, "clock"),
				"perfect clocks have no faults; expected clocks.sync: %s",
				node.With(func(f node.Facts) bool { return !f.Perfect })))
		}
		if f.Clock != nil && (f.Clock.Lies || f.Clock.Down) && !kind.Perfect && !kind.Talks {
			key := "lies"
			if f.Clock.Down {
				key = "sync"
			}
			errs = append(errs, x.Lab.Errorf(FaultPath(f.Index, key),
				"hosts do not exchange the time with clocks.sync: %s; expected %s", x.Lab.Clocks.Sync,
				node.With(func(f node.Facts) bool { return f.Talks })))
		}
	}
	return errors.Join(errs...)
}

// warmed returns the largest change of frequency that faults cause, on top of Clocks.Skew. It
// rejects a change that the servos of PTP cannot correct between a clock and the reference.
func (x *compiler) warmed(reference clocksync.Node) (most float64, err error) {
	order := make([]int, len(x.Lab.Faults))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x.Lab.Faults[a].At, x.Lab.Faults[b].At) })
	leads := x.Graph.Nodes[reference].Name
	changed := make(map[string]float64) // by host
	var lead, others float64            // the largest change of the reference, and of any other
	for _, i := range order {
		k := x.Lab.Faults[i].Clock
		if k == nil || k.Skew == 0 {
			continue
		}
		changed[k.Host] += k.Skew
		if far := math.Abs(changed[k.Host]); k.Host == leads {
			lead = max(lead, far)
		} else {
			others = max(others, far)
		}
		sync := x.Lab.Clocks.Kind()
		if apart := 2*x.Lab.Clocks.Skew + lead + others; sync.MaxRate > 0 && apart > sync.MaxRate {
			return 0, x.Lab.Errorf(FaultPath(x.Lab.Faults[i].Index, "skew"),
				"two clocks may then differ by %s, and %s's servos correct up to %s; expected less, or sync: %s",
				params.ShowRatio(math.Round(1e9*apart)/1e9), sync.Title, params.ShowRatio(sync.MaxRate),
				node.With(node.Facts.AnyRate))
		}
	}
	return max(lead, others), nil
}

// reference returns the host whose clock the others follow.
func (x *compiler) reference() clocksync.Node {
	h, ok := x.Graph.NodeNamed(x.Lab.Clocks.Reference) // a host, as the lab has checked
	if !ok {
		return 0
	}
	return clocksync.Node(h)
}

// Cells of the grid on which a clock's frequency is constant. A wander of 1 ppm/sqrt(s) makes less
// than a picosecond within one, and a run of a second has ten thousand. Ours.
const (
	cell         = 100 * units.Microsecond
	maxCells     = 100_000      // of a run with clocks.for: longer ones have wider cells
	standingCell = units.Second // of a deployed network, which stays up for days
)

// oscillator draws the clock of host h. Its errors do not depend on the number of hosts. If hosts
// vote over several time servers, the servers' clocks are right: each has a source of its own, such
// as a GNSS receiver.
func (x *compiler) oscillator(h int, reference clocksync.Node) clock.Config {
	c := &x.Lab.Clocks
	cfg := clock.Config{Grid: max(cell, c.For/maxCells), Seed: noise.Seed(x.Lab.Seed, h, "wander")}
	if !x.workload {
		cfg.Grid = standingCell
	}
	self := clocksync.Setup{Self: clocksync.Node(h), Nodes: len(x.Plans), Reference: reference}
	if c.Kind().Perfect || c.Serves(self) {
		return cfg
	}
	seed := noise.Seed(x.Lab.Seed, h, "oscillator")
	r := rand.New(rand.NewPCG(seed[0], seed[1]))
	cfg.Offset = units.Time(float64((2*r.Float64() - 1) * float64(c.Offset)))
	cfg.Skew = float64((2*r.Float64() - 1) * c.Skew)
	cfg.Wander = c.Wander
	return cfg
}
