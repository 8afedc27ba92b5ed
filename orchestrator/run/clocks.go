package run

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"weft/clocksync"
	"weft/clocksync/clock"
	"weft/clocksync/metrics"
	"weft/clocksync/node"
	"weft/clocksync/noise"
	"weft/host"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/results/record"
	"weft/results/stats"
	"weft/results/store"
	"weft/transport/wire"
	"weft/units"
)

// addClocks gives every host its clock, where the lab's are not perfect. Unless the experiment is sound so far it only looks for
// errors that do not follow from others.
func (x *Experiment) addClocks(sound bool) error {
	l := *x.Lab // what the run chooses for itself is not the lab's
	x.Lab = &l
	c := &l.Clocks
	for h := range x.Plans {
		x.Plans[h].Until = c.For
		if b := x.Lab.Background; b.Load > 0 && len(x.Plans) > 1 {
			x.Plans[h].Background = &host.Background{Load: b.Load, Burst: b.Burst, Packet: b.Packet, Hosts: len(x.Plans)}
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
	x.warmUp(x.rhythm(&c.Huygens))
	c = &x.Lab.Clocks
	for h := range x.Plans {
		x.Plans[h].Clock = &node.Config{
			Clock: x.oscillator(h, reference), Stamp: c.Stamp, Delay: c.Noise,
			Sync: node.Sync(c.Sync), Control: c.Control, Sample: c.Sample, PTP: c.PTP, Huygens: c.Huygens,
			Setup: clocksync.Setup{
				Self: clocksync.Node(h), Nodes: len(x.Plans), Reference: reference, Seed: x.Lab.Seed,
				Jitter: c.Stamp.Jitter, Quantum: c.Stamp.Quantum, Skew: c.Skew + warmed, Offset: max(c.Offset, 1),
			},
		}
		if places != nil {
			x.Plans[h].Clock.PTP.Place = &places[h]
		}
		if c.PeerToPeer && c.Kind().Bridged != 0 {
			x.Plans[h].Clock.PTP.Bridge = clocksync.Node(x.Graph.Home(topology.NodeID(h)))
		}
		x.upset(h)
		if bad := causes(x.Plans[h].Clock.CheckParams()); len(bad) > 0 {
			for _, err := range bad {
				errs = append(errs, x.Lab.Errorf("clocks."+c.Sync, "%s", strings.TrimPrefix(err.Error(), c.Sync+": ")))
			}
			return errors.Join(errs...)
		}
	}
	return errors.Join(append(errs, x.probesFit())...)
}

// probesFit refuses probes of Huygens that a host's link cannot carry: they would wait for each other for ever, and tell nothing of that
// host's clock. A fault that is over some time may slow a link down to less.
func (x *Experiment) probesFit() error {
	const wayOut = "expected fewer clocks.huygens.pairs or neighbours (degree), or a longer window"
	var errs []error
	for h := range x.Plans {
		need := x.Plans[h].Clock.Probes()
		link := x.Graph.Uplink(topology.NodeID(h))
		if rate := x.Graph.Links[link].Rate; need >= rate {
			return x.Lab.Errorf("clocks.huygens", "probes take %v of the link of %s, which carries %v; %s", need, x.Graph.Nodes[h].Name, rate, wayOut)
		}
		for _, f := range x.Lab.Faults {
			if at, ok := x.Graph.LinkNamed(f.Link); ok && at == link && f.Rate != nil && f.For == 0 && need >= *f.Rate {
				errs = append(errs, x.Lab.Errorf(faultPath(f.Index, "rate"), "probes of Huygens take %v of the link of %s; %s", need, x.Graph.Nodes[h].Name, wayOut))
			}
		}
	}
	return errors.Join(errs...)
}

// upset puts what faults do to the clock of host h into its plan.
func (x *Experiment) upset(h int) {
	c := x.Plans[h].Clock
	for _, f := range x.Lab.Faults {
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

// faultsOfClocks refuses faults of clocks where there are none to be upset.
func (x *Experiment) faultsOfClocks() error {
	kind := x.Lab.Clocks.Kind()
	var errs []error
	for _, f := range x.Lab.Faults {
		if f.Clock != nil && kind.Perfect {
			errs = append(errs, x.Lab.Errorf(faultPath(f.Index, "clock"), "perfect clocks have no faults; expected clocks.sync: none, ptp or huygens"))
		}
		if f.Clock != nil && f.Clock.Lies && !kind.Perfect && !kind.Talks {
			errs = append(errs, x.Lab.Errorf(faultPath(f.Index, "lies"), "nobody tells anybody the time where clocks.sync is none; expected ptp or huygens"))
		}
	}
	return errors.Join(errs...)
}

// warmed returns by how much faults change the frequency of a clock at most: an oscillator is as wrong as that as well. PTP refuses
// what its servos cannot correct, between a clock and the reference.
func (x *Experiment) warmed(reference clocksync.Node) (most float64, err error) {
	order := make([]int, len(x.Lab.Faults))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(x.Lab.Faults[a].At, x.Lab.Faults[b].At) })
	leads := x.Graph.Nodes[reference].Name
	changed := make(map[string]float64) // by host
	var lead, others float64            // what the reference's is changed by at most, and any other's
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
			return 0, x.Lab.Errorf(faultPath(x.Lab.Faults[i].Index, "skew"), "two clocks may differ by %s then, and %s's servos correct up to %s; expected less, or sync: huygens",
				params.ShowRatio(math.Round(1e9*apart)/1e9), sync.Title, params.ShowRatio(sync.MaxRate))
		}
	}
	return max(lead, others), nil
}

// reference is the host whose clock the others follow.
func (x *Experiment) reference() clocksync.Node {
	h, ok := x.Graph.NodeNamed(x.Lab.Clocks.Reference) // a host, as the lab has checked
	if !ok {
		return 0
	}
	return clocksync.Node(h)
}

// Cells of the grid on which a clock's frequency is constant. A wander of 1 ppm/sqrt(s) makes less than a picosecond within
// one, and a run of a second has ten thousand. Ours.
const (
	cell      = 100 * units.Microsecond
	mostCells = 100_000 // of a run that says how long it lasts: longer ones have wider cells
)

// oscillator draws the clock of host h: what is wrong with one does not depend on how many hosts there are. Where several
// servers of time are voted over, theirs are right: each has a source of its own, such as a receiver of satellites.
func (x *Experiment) oscillator(h int, reference clocksync.Node) clock.Config {
	c := &x.Lab.Clocks
	cfg := clock.Config{Grid: max(cell, c.For/mostCells), Seed: noise.Seed(x.Lab.Seed, h, "wander")}
	self := clocksync.Setup{Self: clocksync.Node(h), Nodes: len(x.Plans), Reference: reference}
	if c.Kind().Perfect || c.PTP.Servers > 1 && c.PTP.Server(self) >= 0 {
		return cfg
	}
	seed := noise.Seed(x.Lab.Seed, h, "oscillator")
	r := rand.New(rand.NewPCG(seed[0], seed[1]))
	cfg.Offset = units.Time(float64((2*r.Float64() - 1) * float64(c.Offset)))
	cfg.Skew = float64((2*r.Float64() - 1) * c.Skew)
	cfg.Wander = c.Wander
	return cfg
}

// since is the instant from which the errors of clocks count: measure.from, or when the workload begins.
func (x *Experiment) since() units.Time {
	if from := x.Lab.Measure.From; from > 0 {
		return from
	}
	first := units.Never
	for i := range x.items {
		first = min(first, x.items[i].Start)
	}
	if first == units.Never {
		return 0
	}
	return first
}

// finer is what errors are multiplied by in a distribution, which keeps half a nanosecond: good clocks are closer. What is
// more than two seconds counts as two.
const finer = 512

// clocksOf sums up what is known of the hosts' clocks.
func (x *Experiment) clocksOf(o *outcome) record.Clocks {
	c := &x.Lab.Clocks
	s := record.Clocks{Sync: c.Sync}
	if len(o.Clocks) == 0 || c.Kind().Perfect {
		return s
	}
	x.account(o, &s)
	grid := shortest(o.Clocks)
	if grid == 0 {
		return s
	}
	apart, bounds, follow := stats.NewDist(), stats.NewDist(), stats.NewDist()
	converged := metrics.Convergence{Limit: c.Limit}
	since, at := x.since(), make([]metrics.Reading, len(o.Clocks))
	reference := int(x.Plans[0].Clock.Setup.Reference)
	var bounded, covered, pairs int64
	var squares float64
	for k := range grid {
		for h := range o.Clocks {
			p := &o.Clocks[h].Samples[k]
			at[h] = metrics.Reading{Error: p.Error, Bound: p.Bound, Known: p.State != clocksync.Free}
		}
		now := o.Clocks[0].Samples[k].At
		down := func(h int) bool { return o.Clocks[h].Samples[k].Down }
		if now < since {
			converged.Add(now, metrics.Compare(at, down, nil).Worst)
			continue
		}
		i := metrics.Compare(at, down, func(d units.Time) {
			apart.Record(finer * d)
			pairs++
			squares += d.Nanoseconds() * d.Nanoseconds()
		})
		converged.Add(now, i.Worst)
		bounded, covered = bounded+i.Bounded, covered+i.Covered
		for h := range at {
			if at[h].Known && !down(h) {
				bounds.Record(at[h].Bound)
			}
			if h != reference && !down(h) && !down(reference) {
				follow.Record(finer * magnitude(at[h].Error-at[reference].Error))
			}
		}
	}
	s.Error, s.Samples = apart.Describe(finer*units.Nanosecond), int64(grid)
	q := follow.Describe(finer * units.Nanosecond)
	s.Reference = &q
	s.P999 = apart.Quantile(0.999).Nanoseconds() / finer
	if pairs > 0 {
		s.RMS = math.Sqrt(squares / float64(pairs))
	}
	if bounded > 0 {
		b, share := bounds.Describe(units.Nanosecond), float64(covered)/float64(bounded)
		s.Bound, s.Coverage = &b, &share
	}
	s.Stability = stability(o.Clocks, reference, grid, since)
	s.LimitNS = c.Limit.Nanoseconds()
	if at, ok := converged.Since(); ok {
		us := at.Microseconds()
		s.ConvergedUS = &us
	}
	return s
}

// unsynchronized is a warning of a run in which the protocol corrected no clock; empty where it did, or there is none.
func (x *Experiment) unsynchronized(o *outcome) string {
	c := &x.Lab.Clocks
	if !c.Kind().Talks || len(o.Clocks) == 0 || c.Sample == 0 {
		return ""
	}
	corrected, never := 0, 0
	for h := range o.Clocks {
		switch {
		case clocksync.Node(h) == x.Plans[h].Clock.Setup.Reference || c.PTP.Servers > 1 && c.PTP.Server(x.Plans[h].Clock.Setup) >= 0:
		case o.Clocks[h].Counters.Updates > 0:
			corrected++
		default:
			never++
		}
	}
	switch {
	case never == 0:
		return ""
	case corrected > 0:
		return fmt.Sprintf("%s never corrected the clocks of %d of %d hosts", c.Sync, never, never+corrected)
	}
	return fmt.Sprintf("%s corrected no clock before the run ended; clocks.for makes it longer, a shorter clocks.huygens.window or clocks.ptp.interval makes it "+
		"faster, if that is still longer than a round trip of a link", c.Sync)
}

// leastCoverage is the share of bounds that hold below which a run says that they do not. Ours.
const leastCoverage = 0.95

// unbounded is a warning of a run whose clocks were wrong by more than they said, which no clock can see by itself; empty without.
func unbounded(c *record.Clocks, drops int64) string {
	if c.Coverage == nil || *c.Coverage >= leastCoverage {
		return ""
	}
	text := fmt.Sprintf("the bounds that clocks stated held for %.3g %% of pairs alone: a path took longer one way than back, without "+
		"clocks.*.asymmetry, or was never free of a queue", math.Floor(1000**c.Coverage)/10)
	if drops > 0 {
		text += fmt.Sprintf(" (%d packets were dropped; fewer clocks.huygens.pairs load a slow link less)", drops)
	}
	return text
}

// undecided is a warning of a run in which hosts found no majority among their servers of time; empty without.
func undecided(o *outcome) string {
	hosts := 0
	for h := range o.Clocks {
		if o.Clocks[h].Counters.NoMajority > 0 {
			hosts++
		}
	}
	if hosts == 0 {
		return ""
	}
	return fmt.Sprintf("servers of time contradicted each other and left no majority: %d hosts refused them all and went on alone", hosts)
}

// account adds up what synchronization did and cost.
func (x *Experiment) account(o *outcome, s *record.Clocks) {
	var total clocksync.Counters
	var capacity float64 // bytes that all NICs could have sent
	for h := range o.Clocks {
		r := &o.Clocks[h]
		total.Add(r.Counters)
		s.Packets += r.Packets
		s.Bytes += int64(r.Wire)
		s.Refused += r.Rejected
		capacity += float64(x.nicRate(topology.NodeID(h)).BytesIn(o.Ended))
	}
	if capacity > 0 {
		s.Share = float64(s.Bytes) / capacity
	}
	b := &o.Bridges
	s.Packets += b.Sent
	s.Bytes += b.SentBytes + b.Sent*int64(wire.Overhead)
	s.Refused += b.Malformed + b.Stale + b.Foreign
	total.Add(*b)
	s.Steps, s.Resets, s.Filtered = total.Steps, total.Resets, total.Filtered
	s.Falsetickers, s.NoMajority = total.Falsetickers, total.NoMajority
}

// shortest is how many samples every host has: those of an emulated run end each when its node was told to stop.
func shortest(clocks []node.Report) int {
	n := len(clocks[0].Samples)
	for i := range clocks {
		n = min(n, len(clocks[i].Samples))
	}
	return n
}

func magnitude(t units.Time) units.Time { return max(t, -t) }

// storeClocks writes the error of every host's clock over time.
func (x *Experiment) storeClocks(o *outcome, dir *store.Run) error {
	if x.Lab.Clocks.Kind().Perfect {
		return nil
	}
	for h := range o.Clocks {
		for _, p := range o.Clocks[h].Samples {
			row := record.Clock{
				At: p.At, Host: x.Graph.Nodes[h].Name, Error: p.Error, Bound: p.Bound, State: p.State.String(), Down: p.Down,
			}
			if err := dir.Clock(row); err != nil {
				return err
			}
		}
	}
	return nil
}
