package path

import "weft/units"

// PLB keeps a connection on one path until it has been congested for some rounds in a row, and then takes another (PLB: Congestion
// Signals are Simple and Effective for Network Load Balancing, SIGCOMM 2022, section 3.2). A round is a base round trip;
// it is congested when at least half of its acknowledgements say so (K = 0.5). The paper takes a random path; here it is the
// next, whose ports switches hash as they would any other. Idle restarts are not modelled.
type PLB struct {
	paths, path uint16
	after       int        // congested rounds
	round       units.Time // length
	end         units.Time // of the present round; 0: none has begun
	acks, marks int        // in it
	congested   int        // rounds up to it
	left        int64      // paths
}

// NewPLB returns a chooser over so many paths that leaves one after so many congested rounds.
func NewPLB(paths, after int, round units.Time) *PLB {
	return &PLB{paths: uint16(paths), after: after, round: max(round, 1)}
}

// Choose returns the present path. A round that is over is judged.
func (p *PLB) Choose(now units.Time) uint16 {
	if p.end == 0 {
		p.end = now + p.round
	}
	if now < p.end {
		return p.path
	}
	switch {
	case p.acks == 0: // says nothing
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

// OnFeedback counts what is said of the present path.
func (p *PLB) OnFeedback(_ units.Time, f Feedback) {
	if f.Path != p.path || f.Lost {
		return
	}
	p.acks++
	if f.Marked {
		p.marks++
	}
}

// Left is how often a path was left.
func (p *PLB) Left() int64 { return p.left }
