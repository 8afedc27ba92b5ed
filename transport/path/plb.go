package path

import "weft/units"

// PLB keeps a connection on one path until it has been congested for several rounds in a row, and
// then changes to another one ("PLB: Congestion Signals are Simple and Effective for Network Load
// Balancing", SIGCOMM 2022, section 3.2). A round is a base RTT; it is congested if at least half
// of its acknowledgements carry a mark (K = 0.5). The paper takes a random path; here it is the
// next one, whose source port switches hash as they would any other. Idle restarts are not
// modelled.
type PLB struct {
	paths       uint16
	path        uint16
	after       int        // congested rounds in a row after which the path changes
	round       units.Time `state:"span"` // length of a round
	end         units.Time // end of the current round, units.Never if none has begun
	acks, marks int        // acknowledgements of the current round, and those with a mark
	congested   int        // congested rounds in a row
	left        int64      `state:"count"` // number of changes
}

// NewPLB returns a chooser over a number of paths that changes the path after a number of congested
// rounds in a row.
func NewPLB(paths, after int, round units.Time) *PLB {
	return &PLB{paths: uint16(paths), after: after, round: max(round, 1), end: units.Never}
}

// Rest implements cc.Resting. There is nothing to forget.
func (p *PLB) Rest(units.Time) {}

// Choose returns the current path. If the round is over it first decides whether to change.
func (p *PLB) Choose(now units.Time) uint16 {
	if p.end == units.Never {
		p.end = now + p.round
	}
	if now < p.end {
		return p.path
	}
	switch {
	case p.acks == 0: // neither congested nor not
	case 2*p.marks >= p.acks:
		p.congested++
	default:
		p.congested = 0
	}
	p.end, p.acks, p.marks = now+p.round, 0, 0
	if p.congested >= p.after {
		p.path, p.congested = (p.path+1)%p.paths, 0
		p.left++
	}
	return p.path
}

// OnFeedback counts the feedback of the current path.
func (p *PLB) OnFeedback(_ units.Time, f Feedback) {
	if f.Path != p.path || f.Lost {
		return
	}
	p.acks++
	if f.Marked {
		p.marks++
	}
}

// Left returns the number of path changes.
func (p *PLB) Left() int64 { return p.left }
