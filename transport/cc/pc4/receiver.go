package pc4

import (
	"weft/transport/cc"
	"weft/units"
)

// Modes of the collective that Table I tells apart; every other name is "other".
const (
	AllReduce = "all-reduce"
	AllToAll  = "all-to-all"
	AllGather = "all-gather"
)

// ComputeBaseRate is Algorithm 1, lines 4-11, and Table I. For all-reduce and others n is the number of
// incoming flows; for all-to-all and all-gather it is the number of participants, each of which receives n-1
// flows: so the base rates of all flows that arrive at a host add up to its line rate, rounded down to 1 b/s.
// Where there is nothing to share with (n at most 1, or 2) the base rate is the line rate.
func ComputeBaseRate(mode string, n int, line units.Bandwidth) units.Bandwidth {
	switch mode {
	case AllToAll, AllGather:
		return line / units.Bandwidth(max(n-1, 1)) // lines 7-8
	default:
		return line / units.Bandwidth(max(n, 1)) // lines 5-6 and 9-10
	}
}

// Receiver is Algorithm 1 for the connections of one mode that arrive at a host.
type Receiver struct {
	line    units.Bandwidth
	planned units.Bandwidth
	source  string // Params.BaseRate
	mode    string
}

// NewReceiver returns the receiver half for connections of a collective mode at a host with a NIC of rate line. planned is the base
// rate that the collective has by Table I, which is the answer when Params.BaseRate is Table, and unused otherwise.
func NewReceiver(p Params, mode string, line, planned units.Bandwidth) *Receiver {
	return &Receiver{source: p.BaseRate, mode: mode, line: line, planned: planned}
}

// OnData is Algorithm 1, lines 1-3.
func (r *Receiver) OnData(_ units.Time, d cc.Data) cc.Feedback {
	return cc.Feedback{
		BaseRate: r.baseRate(d),
		OneWay:   d.At - d.SentAt - d.Baseline, // line 3
	}
}

func (r *Receiver) baseRate(d cc.Data) units.Bandwidth {
	flows := d.Expected
	switch r.source {
	case Off:
		return 0
	case Table:
		return r.planned
	case Observed:
		flows = d.Observed
	}
	switch r.mode {
	case AllToAll, AllGather:
		return ComputeBaseRate(r.mode, flows+1, r.line) // n counts this host as well
	default:
		return ComputeBaseRate(r.mode, flows, r.line)
	}
}
