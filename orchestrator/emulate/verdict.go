package emulate

import (
	"fmt"
	"slices"

	"weft/realtime"
	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

// lateness is the lateness of one kind of event.
type lateness struct {
	what string // "deliveries"
	dist *stats.Dist
	// packets arrive late by it, so it is part of the delays that hosts measure
	measured bool
	twice    bool // it happens twice in a round trip: to the packet, and to its acknowledgement
}

// evidence is the input of a verdict.
type evidence struct {
	late      []lateness
	baseRTT   units.Time
	target    units.Time // Experiment.DelayTarget
	drops     []drops
	cpu       float64             // busiest second, as a share of all processors
	disturbed []string            // foreign packets that crossed the network
	crossings *realtime.Crossings // between the parts of a network; nil: it is in one piece
	broken    []string            // reasons that make the run worthless, whatever the numbers

	dilation float64
	behind   []behind // of all processes
	work     []work
	rto      units.Time // shortest retransmission timeout; 0: there is none

	opened  float64 // sockets that nodes opened while packets waited, for each data packet
	waits   float64 // share of the time in which tasks of programs waited for a processor
	waiting string  // the program and host with this share; "": no program used the network
}

// drops counts losses outside of the model.
type drops struct {
	where   string // "sockets of nodes"
	n       int64
	foreign bool // at a node that sends traffic outside of the workload
}

// judge returns the verdict, by the rules of docs/adr/0020-fidelity-verdict.md. The worst kind of
// lateness decides: many deliveries on time do not make up for late timers.
func judge(e evidence) record.Fidelity {
	f := record.Fidelity{Verdict: record.OK, BaseRTTNS: e.baseRTT.Nanoseconds(), CPUMax: e.cpu,
		DelayTargetNS: e.target.Nanoseconds()}
	for _, l := range e.late {
		if l.dist == nil || l.dist.Count() == 0 {
			continue
		}
		p99, worst := l.dist.Quantile(0.99), l.dist.Quantile(1)
		f.Events += l.dist.Count()
		f.LatenessP99NS = max(f.LatenessP99NS, p99.Nanoseconds())
		f.LatenessMaxNS = max(f.LatenessMaxNS, worst.Nanoseconds())
		share := float64(p99) / float64(e.baseRTT)
		verdict := verdictOf(share)
		if verdict != record.OK {
			f.Reasons = append(f.Reasons, fmt.Sprintf("p99 lateness of %s is %v, %.1f %% of the base round trip; "+
				"ok is up to %g %%", l.what, p99.Rounded(), 100*share, 100*record.OKLateness))
		}
		f.Verdict = record.Worse(f.Verdict, verdict)
		if e.target == 0 || !l.measured {
			continue
		}
		f.DelayErrorP99NS = max(f.DelayErrorP99NS, p99.Nanoseconds())
		if p99 > e.target {
			f.Verdict = record.Worse(f.Verdict, record.Degraded)
			f.Reasons = append(f.Reasons, fmt.Sprintf("p99 lateness of %s is %v, above the queueing delay of %v "+
				"that the transport aims at: senders slow down for queues that are not there",
				l.what, p99.Rounded(), e.target.Rounded()))
		}
	}
	f.RoundTripP99NS = roundTripLateness(e.late).Nanoseconds()
	if e.waiting != "" {
		f.ProgramWait = e.waits
		verdict := verdictOf(e.waits)
		if verdict != record.OK {
			f.Reasons = append(f.Reasons, fmt.Sprintf("tasks of %s waited for a processor during up to %.1f %% of the "+
				"time in which its network was in use; ok is up to %g %%", e.waiting, 100*e.waits,
				100*record.OKLateness))
		}
		f.Verdict = record.Worse(f.Verdict, verdict)
	}
	for _, d := range e.drops {
		if d.n == 0 {
			continue
		}
		f.UnorderedDrops += d.n
		if d.foreign {
			f.ForeignDrops += d.n
		}
		f.Verdict = record.Worse(f.Verdict, record.Degraded)
		f.Reasons = append(f.Reasons, fmt.Sprintf("%d packets lost in %s, which the model did not drop", d.n, d.where))
	}
	for _, d := range e.disturbed {
		f.Verdict = record.Worse(f.Verdict, record.Degraded)
		f.Reasons = append(f.Reasons, d)
	}
	e.judgeCrossings(&f)
	e.judgeStalls(&f)
	for _, b := range e.broken {
		f.Verdict = record.Invalid
		f.Reasons = append(f.Reasons, b)
	}
	if f.Opened = e.opened; short(&f) && f.Verdict != record.OK {
		f.Reasons = append(f.Reasons, fmt.Sprintf("nodes opened %.3g sockets for every 100 data packets, which "+
			"waited: the transport takes more source ports than this process may open; raise that limit (ulimit -n), "+
			"or give the transport fewer paths", 100*f.Opened))
	}
	if f.Unjudged() != "" {
		f.Verdict = record.Unjudged
	}
	return f
}

// roundTripLateness returns a bound on the lateness of 99 % of the round trips, whether or not the
// events of one are late together: the sum of a quantile of each event, such that the events beyond
// theirs are 1 % of the round trips at most.
func roundTripLateness(late []lateness) (sum units.Time) {
	late = slices.DeleteFunc(slices.Clone(late), func(l lateness) bool {
		return !l.twice || l.dist == nil || l.dist.Count() == 0
	})
	for _, l := range late {
		sum += 2 * l.dist.Quantile(1-0.01/float64(2*len(late)))
	}
	return sum
}

// maxLateCrossings is the largest share of packets from one part of the network to another that may
// come after their instant, in a run that is ok: those that the p99 of lateness leaves out.
const maxLateCrossings = 0.01

// judgeCrossings judges packets that came too late from one part of the network to another. How
// late is lateness like any other.
func (e *evidence) judgeCrossings(f *record.Fidelity) {
	c := e.crossings
	if c == nil {
		return
	}
	f.Crossings, f.LateCrossings = c.Lateness.Count(), c.Late
	if float64(c.Late) > maxLateCrossings*float64(f.Crossings) {
		f.Verdict = record.Worse(f.Verdict, record.Degraded)
		f.Reasons = append(f.Reasons, fmt.Sprintf("%d of %d packets came too late from one part of the network to "+
			"another, %.2g %%; ok is up to %g %%", c.Late, f.Crossings,
			100*float64(c.Late)/float64(f.Crossings), 100*maxLateCrossings))
	}
}

// The dilation of another try. Lateness hardly depends on dilation in real time, so in lab time it
// falls as dilation rises. The p99 should fall to retryShare of the ok bound, as in AutoDilation
// (docs/adr/0022). Ours.
const (
	retryShare = 0.6
	// minRetry also applies after drops, or if the run is invalid for another reason than lateness.
	minRetry = 2
	// maxRetry: beyond it the machine was busy with something else, and a try takes too long.
	maxRetry = 10
)

// Helps reports whether a higher dilation can improve a verdict. It cannot if a node sends too fast
// by itself: its losses are the same at any dilation. A stall has a length in real time, so it is
// shorter in lab time at a higher one; and another run may have none.
func Helps(f *record.Fidelity) bool {
	return f.Lateness() > 1 || f.LateCrossings > 0 || f.UnorderedDrops > f.ForeignDrops || stood(f)
}

// short reports whether nodes had too few sockets: they opened one while packets waited for more
// than one data packet in a hundred, as many as the verdict looks at. Opening one takes as long as
// several packets, and explains the lateness of such nodes.
func short(f *record.Fidelity) bool { return f.Opened > 0.01 }

// stood reports whether stalls make a verdict worse.
func stood(f *record.Fidelity) bool { return f.Stalled > record.OKLateness || f.Slowed }

// Slower returns the dilation for another try after a run that was not ok, the factor by which it
// is higher, and the reason.
func Slower(f *record.Fidelity, dilation float64) (d, factor float64, why string) {
	late := f.Lateness()
	switch wanted := late / retryShare; {
	case late <= 1 && stood(f):
		factor, why = minRetry, "processes stood, which another run may not; if they do, it weighs half as much"
	case late <= 1:
		factor, why = minRetry, "packets were lost, or parts of the run could not be judged"
	case wanted > maxRetry:
		factor, why = maxRetry, fmt.Sprintf("p99 lateness was %.3g times the limit for ok; no retry is more than "+
			"%d times "+
			"as slow", late, maxRetry)
	case wanted < minRetry:
		factor = minRetry
		why = fmt.Sprintf("p99 lateness was %.3g times the limit for ok; a retry is at least %d times as slow", late,
			minRetry)
	default:
		factor, why = wanted, fmt.Sprintf("p99 lateness was %.3g times the limit for ok, and the target is %g "+
			"times that limit",
			late, retryShare)
	}
	d = roundUp(factor * dilation)
	return d, d / dilation, why
}

// Advice says what to do about a verdict that is not ok, after a run at the given dilation. It is
// empty if the run is ok or could not be judged. With retries (--retry-dilation) it names the
// dilation alone.
func Advice(f *record.Fidelity, dilation float64, retries bool) string {
	use := "do not use these times; "
	switch f.Verdict {
	case record.OK, record.Unjudged:
		return ""
	case record.Degraded:
		use = "do not use it for tails, queues or completion times; "
	}
	d, _, _ := Slower(f, dilation)
	switch {
	case !Helps(f):
		return use + "a higher dilation does not help: see the reasons above"
	case short(f):
		return use + "nodes lacked sockets: raise the limit of open files (ulimit -n), and run it again"
	case f.ProgramWait > record.OKLateness:
		return use + "programs waited for processors: those that poll, as MPI does, need one for each host, on a " +
			"machine that does nothing else"
	case stood(f):
		return use + "processes stood: find out what stopped them (another program, a debugger, a paused virtual " +
			"machine), and run it again"
	case retries:
		return use + fmt.Sprintf("run it slower still: --dilation %.15g", d)
	}
	return use + fmt.Sprintf("run it slower: --dilation %.15g, or weft run --retry-dilation to do so automatically", d)
}

func verdictOf(share float64) string {
	switch {
	case share <= record.OKLateness:
		return record.OK
	case share <= record.DegradedLateness:
		return record.Degraded
	}
	return record.Invalid
}
