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

// The largest p99 lateness, as a share of the base round trip, that is still ok, and still degraded.
const (
	okLateness       = 0.05
	degradedLateness = 0.20
)

// lateness is how late one kind of thing was.
type lateness struct {
	what string // "deliveries"
	dist *stats.Dist
}

// evidence is what a verdict is based on.
type evidence struct {
	late    []lateness
	baseRTT units.Time
	drops   []drops
	cpu     float64  // busiest second, share of all processors
	broken  []string // what makes the run worthless whatever the numbers
}

// drops counts what was lost without the model's order.
type drops struct {
	where string // "sockets of nodes"
	n     int64
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
				l.what, p99.Nanoseconds(), 100*share, 100*okLateness))
		}
		f.Verdict = worse(f.Verdict, verdict)
	}
	for _, d := range e.drops {
		if d.n == 0 {
			continue
		}
		f.UnorderedDrops += d.n
		f.Verdict = worse(f.Verdict, Degraded)
		f.Reasons = append(f.Reasons, fmt.Sprintf("%d packets lost in %s, which the model did not order", d.n, d.where))
	}
	for _, b := range e.broken {
		f.Verdict = Invalid
		f.Reasons = append(f.Reasons, b)
	}
	return f
}

func verdictOf(share float64) string {
	switch {
	case share <= okLateness:
		return OK
	case share <= degradedLateness:
		return Degraded
	}
	return Invalid
}

// worse returns the worse of two verdicts.
func worse(a, b string) string {
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
