package emulate

import (
	"fmt"

	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

// Verdicts of a run. See docs/adr/0020-fidelity-verdict.md for the rules and their reasons.
const (
	OK       = "ok"
	Degraded = "degraded"
	Invalid  = "invalid"
)

// lateness is how late one kind of thing was.
type lateness struct {
	what string // "deliveries"
	dist *stats.Dist
}

// evidence is what a verdict is based on.
type evidence struct {
	late      []lateness
	baseRTT   units.Time
	drops     []drops
	cpu       float64  // busiest second, share of all processors
	disturbed []string // what crossed the network and had no business there
	broken    []string // what makes the run worthless whatever the numbers
}

// drops counts what was lost without the model's order.
type drops struct {
	where   string // "sockets of nodes"
	n       int64
	foreign bool // of a node that sends what is no part of the workload
}

// judge gives the verdict. The worst kind of lateness decides: many punctual deliveries do not make up for
// late timers.
func judge(e evidence) record.Fidelity {
	f := record.Fidelity{Verdict: OK, BaseRTTNS: e.baseRTT.Nanoseconds(), CPUMax: e.cpu}
	for _, l := range e.late {
		if l.dist == nil || l.dist.Count() == 0 {
			continue
		}
		p99, most := l.dist.Quantile(0.99), l.dist.Quantile(1)
		f.LatenessP99NS = max(f.LatenessP99NS, p99.Nanoseconds())
		f.LatenessMaxNS = max(f.LatenessMaxNS, most.Nanoseconds())
		share := float64(p99) / float64(e.baseRTT)
		verdict := verdictOf(share)
		if verdict != OK {
			f.Reasons = append(f.Reasons, fmt.Sprintf("p99 lateness of %s is %.0f ns, %.1f %% of the base round trip; ok is up to %g %%",
				l.what, p99.Nanoseconds(), 100*share, 100*record.OKLateness))
		}
		f.Verdict = Worse(f.Verdict, verdict)
	}
	for _, d := range e.drops {
		if d.n == 0 {
			continue
		}
		f.UnorderedDrops += d.n
		if d.foreign {
			f.ForeignDrops += d.n
		}
		f.Verdict = Worse(f.Verdict, Degraded)
		f.Reasons = append(f.Reasons, fmt.Sprintf("%d packets lost in %s, which the model did not order", d.n, d.where))
	}
	for _, d := range e.disturbed {
		f.Verdict = Worse(f.Verdict, Degraded)
		f.Reasons = append(f.Reasons, d)
	}
	for _, b := range e.broken {
		f.Verdict = Invalid
		f.Reasons = append(f.Reasons, b)
	}
	return f
}

// How much slower another try is. Lateness has little to do with dilation in real time, and so is less in lab time by as much as
// dilation is more: the p99 is to come to retryShare of what is still ok, as AutoDilation wants it (docs/adr/0022). Ours.
const (
	retryShare = 0.6
	leastRetry = 2  // also where packets were lost, or the run is invalid for what no lateness shows
	mostRetry  = 10 // beyond, the machine had something else to do, and a try takes too long
)

// Helps says whether a higher dilation can better a verdict: what a node of its own accord sends too fast is lost at any.
func Helps(f *record.Fidelity) bool {
	return f.LatenessP99NS > record.OKLateness*f.BaseRTTNS || f.UnorderedDrops > f.ForeignDrops
}

// Slower is the dilation at which a run that was not ok is made again, by how much it is higher, and why.
func Slower(f *record.Fidelity, dilation float64) (d, factor float64, why string) {
	late := 0.0 // times what is ok
	if f.BaseRTTNS > 0 {
		late = f.LatenessP99NS / (record.OKLateness * f.BaseRTTNS)
	}
	switch wanted := late / retryShare; {
	case late <= 1:
		factor, why = leastRetry, "packets were lost, or parts of the run could not be judged"
	case wanted > mostRetry:
		factor, why = mostRetry, fmt.Sprintf("p99 lateness was %.3g times what is ok; no try is more than %d times as slow", late, mostRetry)
	case wanted < leastRetry:
		factor, why = leastRetry, fmt.Sprintf("p99 lateness was %.3g times what is ok; a try is at least %d times as slow", late, leastRetry)
	default:
		factor, why = wanted, fmt.Sprintf("p99 lateness was %.3g times what is ok, and is to become %g times that", late, retryShare)
	}
	d = roundUp(factor * dilation)
	return d, d / dilation, why
}

// Advice says what to do about a verdict that is not ok, for whoever made the run at a dilation; empty: nothing. Who
// asked for --retry-dilation is told of another dilation alone.
func Advice(f *record.Fidelity, dilation float64, retries bool) string {
	var use, slower string
	switch f.Verdict {
	case OK:
		return ""
	case Degraded:
		use, slower = "do not use it for tails, queues or completion times", "for these run it slower"
	default:
		use, slower = "do not use these times", "run it slower"
	}
	if !Helps(f) {
		return use + "; what is said above is why, and a higher dilation does not help"
	}
	d, _, _ := Slower(f, dilation)
	if retries {
		return fmt.Sprintf("%s; %s still: --dilation %g", use, slower, d)
	}
	return fmt.Sprintf("%s; %s: --dilation %g, or --retry-dilation, which does so by itself", use, slower, d)
}

func verdictOf(share float64) string {
	switch {
	case share <= record.OKLateness:
		return OK
	case share <= record.DegradedLateness:
		return Degraded
	}
	return Invalid
}

// Worse returns the worse of two verdicts.
func Worse(a, b string) string {
	rank := func(v string) int {
		switch v {
		case OK:
			return 0
		case Degraded:
			return 1
		}
		return 2
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
