package summary

import (
	"fmt"
	"math"
	"slices"

	"weft/clocksync"
	"weft/clocksync/metrics"
	"weft/clocksync/node"
	"weft/orchestrator/experiment"
	"weft/orchestrator/topology"
	"weft/results/record"
	"weft/results/stats"
	"weft/transport/wire"
	"weft/units"
)

// finer is the factor on errors in a distribution, which resolves half a nanosecond: good clocks
// are closer than that. Errors above two seconds count as two.
const finer = 512

// clocksOf sums up the errors of the hosts' clocks, and the cost of synchronization. cut reports
// that stopped returned true before the errors were evaluated: then s has only the cost.
func clocksOf(x *experiment.Experiment, o *Outcome, stopped func() bool) (s record.Clocks, cut bool) {
	c := &x.Lab.Clocks
	s = record.Clocks{Sync: c.Sync}
	if len(o.Clocks) == 0 || c.Kind().Perfect {
		return s, false
	}
	account(x, o, &s)
	grid := shortest(o.Clocks)
	if grid == 0 {
		return s, false
	}
	apart, bounds, follow := stats.NewDist(), stats.NewDist(), stats.NewDist()
	converged := metrics.Convergence{Limit: c.Limit}
	since, at := x.Measure.Clocks, make([]metrics.Reading, len(o.Clocks))
	reference := int(x.Plans[0].Clock.Setup.Reference)
	var samples, covered, pairs int64
	var largest units.Time // of the samples around faults, which are in no distribution
	var squares float64
	cost := s
	for k := range grid {
		if k%stoppedEvery == 0 && stopped() {
			return cost, true
		}
		for h := range o.Clocks {
			p := &o.Clocks[h].Samples[k]
			at[h] = metrics.Reading{Error: p.Error, Bound: p.Bound, Known: p.State != clocksync.Free}
		}
		now := o.Clocks[0].Samples[k].At
		beside := now%c.Sample != 0
		if !beside {
			samples++
		}
		down := func(h int) bool { return o.Clocks[h].Samples[k].Down }
		if now < since {
			converged.Add(now, metrics.Compare(at, down, nil).Worst)
			continue
		}
		i := metrics.Compare(at, down, func(d units.Time) {
			if beside {
				largest = max(largest, d)
				return
			}
			apart.Record(finer * d)
			pairs++
			squares += d.Nanoseconds() * d.Nanoseconds()
		})
		converged.Add(now, i.Worst)
		if beside {
			continue
		}
		s.Pairs, s.BoundPairs, covered = s.Pairs+i.Pairs, s.BoundPairs+i.Bounded, covered+i.Covered
		for h := range at {
			if at[h].Known && !down(h) {
				bounds.Record(at[h].Bound)
			}
			if h != reference && !down(h) && !down(reference) {
				follow.Record(finer * magnitude(at[h].Error-at[reference].Error))
			}
		}
	}
	if pairs == 0 { // all down, or the run ended before measure.from
		return s, false
	}
	s.Error, s.Samples = apart.Describe(finer*units.Nanosecond), samples
	s.Error.Max = max(s.Error.Max, largest.Nanoseconds())
	if follow.Count() > 0 {
		q := follow.Describe(finer * units.Nanosecond)
		for h := range o.Clocks {
			q.Max = max(q.Max, farthest(o.Clocks, h, reference, since).Nanoseconds())
		}
		s.Reference = &q
	}
	s.P999 = apart.Quantile(0.999).Nanoseconds() / finer
	s.RMS = math.Sqrt(squares / float64(pairs))
	if s.BoundPairs > 0 {
		b, share := bounds.Describe(units.Nanosecond), float64(covered)/float64(s.BoundPairs)
		s.Bound, s.Coverage = &b, &share
	}
	if s.Stability = stability(o.Clocks, reference, c.Sample, since, stopped); stopped() {
		return cost, true
	}
	s.LimitNS = c.Limit.Nanoseconds()
	if at, ok := converged.Since(); ok {
		us := at.Microseconds()
		s.ConvergedUS = &us
	}
	return s, false
}

// atInterval returns reports without the samples that are beside the interval, around faults.
func atInterval(clocks []node.Report, every units.Time) []node.Report {
	clocks = slices.Clone(clocks)
	for h := range clocks {
		beside := func(s node.Sample) bool { return s.At%every != 0 }
		if slices.ContainsFunc(clocks[h].Samples, beside) {
			clocks[h].Samples = slices.DeleteFunc(slices.Clone(clocks[h].Samples), beside)
		}
	}
	return clocks
}

// farthest returns the largest distance of a host's clock from the reference, in all samples from
// an instant on in which both run the protocol.
func farthest(clocks []node.Report, host, reference int, since units.Time) (most units.Time) {
	for k := range shortest(clocks) {
		a, b := &clocks[host].Samples[k], &clocks[reference].Samples[k]
		if a.At >= since && !a.Down && !b.Down {
			most = max(most, magnitude(a.Error-b.Error))
		}
	}
	return most
}

// stoppedEvery is the number of samples between two looks whether to stop. Ours.
const stoppedEvery = 256

// unsynchronized returns a warning about a run in which the protocol never corrected some clocks,
// or "".
func unsynchronized(x *experiment.Experiment, o *Outcome) string {
	c := &x.Lab.Clocks
	if !c.Kind().Talks || len(o.Clocks) == 0 || c.Sample == 0 {
		return ""
	}
	corrected, never := corrections(x, o)
	switch {
	case never == 0:
		return ""
	case corrected > 0:
		return fmt.Sprintf("%s never corrected the clocks of %d of %d hosts", c.Sync, never, never+corrected)
	}
	text := c.Sync + " corrected no clock before the run ended; clocks.for makes it longer"
	if pace := c.Kind().Pace; pace != "" {
		text += fmt.Sprintf(", a shorter clocks.%s.%s makes it faster, as long as it exceeds a round trip "+
			"of a link", c.Sync, pace)
	}
	return text
}

// corrections counts the hosts whose clocks the protocol corrected, and those that it should have
// corrected and never did.
func corrections(x *experiment.Experiment, o *Outcome) (corrected, never int) {
	for h := range o.Clocks {
		switch {
		case clocksync.Node(h) == x.Plans[h].Clock.Setup.Reference || x.Lab.Clocks.Serves(x.Plans[h].Clock.Setup):
		case o.Clocks[h].Counters.Updates > 0:
			corrected++
		default:
			never++
		}
	}
	return corrected, never
}

// minBounded is the share of pairs of samples that must state bounds, so that what holds of those
// that do says something of the clocks. Hosts state none before their first correction. Ours.
const minBounded = 0.5

// unstated returns why the bounds that clocks stated have no value; "" if they have one, or if no
// clock stated any.
func unstated(c *record.Clocks) string {
	if c.BoundPairs == 0 || float64(c.BoundPairs) >= minBounded*float64(c.Pairs) {
		return ""
	}
	return fmt.Sprintf("both hosts state a bound in only %s of %s pairs of samples, and it takes half of them",
		units.Count(c.BoundPairs), units.Count(c.Pairs))
}

// minCoverage is the share of bounds that must hold to avoid a warning. Ours.
const minCoverage = 0.95

// unbounded returns a warning about a run whose clocks were wrong by more than their bounds, or "".
// No clock can notice that by itself.
func unbounded(c *record.Clocks, kind node.Facts, drops int64) string {
	if c.Coverage == nil || *c.Coverage >= minCoverage {
		return ""
	}
	text := fmt.Sprintf("the bounds that clocks stated held for only %.3g %% of the pairs that stated any: "+
		"a path took longer one way than back, without clocks.*.asymmetry, or always had a queue",
		math.Floor(1000**c.Coverage)/10)
	if drops > 0 && kind.Lighter != "" {
		text += fmt.Sprintf(" (%d packets were dropped; %s would load slow links less)", drops, kind.Lighter)
	}
	return text
}

// judgeClocks makes an emulation degraded if a stall may have thrown its clocks off: one that is as
// long as their error, which is beyond clocks.limit. Messages that a stall holds up measure wrong
// delays, long before the workload too, of whose time the verdict knows. If the clocks of none of
// the hosts were corrected, their error is that of the start.
func judgeClocks(f *record.Fidelity, c *record.Clocks, kind node.Facts, corrected int) {
	if f == nil || !kind.Talks || corrected == 0 || c.Samples == 0 || c.Error.P99 <= c.LimitNS {
		return
	}
	var longest record.Stall
	for _, s := range f.Stalls {
		if s.ForUS > longest.ForUS {
			longest = s
		}
	}
	if longest.ForUS*1000 < c.Error.P99 {
		return
	}
	ns := func(t float64) units.Time { return units.Time(t * float64(units.Nanosecond)).Rounded() }
	if f.Slowed = true; f.Verdict == record.OK {
		f.Verdict = record.Degraded
	}
	f.Reasons = append(f.Reasons, fmt.Sprintf("a stall may have thrown clocks off: their error, %v (p99), is above "+
		"clocks.limit, %v, and %s stood or ran late for %v of lab time from %v on", ns(c.Error.P99), ns(c.LimitNS),
		longest.Process, ns(1000*longest.ForUS), ns(1000*longest.FromUS)))
}

// undecided returns a warning about a run in which hosts found no majority among their time
// servers, or "".
func undecided(o *Outcome) string {
	hosts := 0
	for h := range o.Clocks {
		if o.Clocks[h].Counters.NoMajority > 0 {
			hosts++
		}
	}
	if hosts == 0 {
		return ""
	}
	return fmt.Sprintf("time servers contradicted each other without a majority: %d hosts rejected them all and "+
		"continued alone", hosts)
}

// account adds up the counters and the traffic of synchronization.
func account(x *experiment.Experiment, o *Outcome, s *record.Clocks) {
	var total clocksync.Counters
	var capacity float64 // bytes that all NICs could have sent
	for h := range o.Clocks {
		r := &o.Clocks[h]
		total.Add(r.Counters)
		s.Packets += r.Packets
		s.Bytes += int64(r.Wire)
		s.Refused += r.Rejected
		capacity += float64(x.NICRate(topology.NodeID(h)).BytesIn(o.Ended))
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

// shortest returns the number of samples that every host has. Those of an emulated run end when the
// node was told to stop.
func shortest(clocks []node.Report) int {
	n := len(clocks[0].Samples)
	for i := range clocks {
		n = min(n, len(clocks[i].Samples))
	}
	return n
}

// magnitude returns the absolute value of t.
func magnitude(t units.Time) units.Time { return max(t, -t) }
