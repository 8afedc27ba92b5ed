package pc4

import (
	"weft/transport/cc"
	"weft/units"
)

// Collectives that Table I distinguishes. Every other collective is "other".
const (
	AllReduce = "all-reduce"
	AllToAll  = "all-to-all"
	AllGather = "all-gather"
)

// ComputeBaseRate returns the base rate of a flow (Algorithm 1, lines 4-11, and Table I), rounded
// down to 1 bit/s. For all-to-all and all-gather n is the number of participants, each of which
// receives n-1 flows. For all other modes n is the number of incoming flows. So the base rates of
// the flows into a host add up to its line rate. A single flow, or none, gets the whole line rate.
func ComputeBaseRate(mode string, n int, line units.Bandwidth) units.Bandwidth {
	switch mode {
	case AllToAll, AllGather:
		return line / units.Bandwidth(max(n-1, 1)) // lines 7-8
	default:
		return line / units.Bandwidth(max(n, 1)) // lines 5-6 and 9-10
	}
}

// Receiver is Algorithm 1 for the connections of one collective into one host. It implements
// cc.Receiver and keeps no state: the counts of flows come with each packet.
type Receiver struct {
	_ struct{} `state:"-"`

	line    units.Bandwidth // rate of the host's NIC
	planned units.Bandwidth // base rate if source is Table
	source  string          // Params.BaseRate
	mode    string          // AllReduce, AllToAll, AllGather or another collective
}

// NewReceiver returns the receiver for the connections of a collective into a host whose NIC has
// rate line. mode is the collective. planned is its base rate by Table I; it is used only if
// p.BaseRate is Table. p must pass Check.
func NewReceiver(p Params, mode string, line, planned units.Bandwidth) *Receiver {
	return &Receiver{source: p.BaseRate, mode: mode, line: line, planned: planned}
}

// Rest implements cc.Resting. There is nothing to forget.
func (r *Receiver) Rest(units.Time) {}

// OnData returns what the acknowledgement of d carries: the base rate and the one-way queueing
// delay (Algorithm 1, lines 1-3). The delay is negative if the clocks disagree by more than it.
func (r *Receiver) OnData(_ units.Time, d cc.Data) cc.Feedback {
	return cc.Feedback{
		BaseRate: r.baseRate(d),
		OneWay:   d.At - d.SentAt - d.Baseline, // line 3
	}
}

// baseRate returns the current base rate of the connection, or 0 if base rates are off.
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
		return ComputeBaseRate(r.mode, flows+1, r.line) // n includes this host, which sends nothing to itself
	default:
		return ComputeBaseRate(r.mode, flows, r.line)
	}
}
