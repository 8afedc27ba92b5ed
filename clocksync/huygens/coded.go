package huygens

import "weft/units"

// gap is one coded pair: the stamps of its two packets at one end.
type gap struct {
	sequence uint32
	at       [2]units.Time
	have     [2]bool
	used     bool // it has become points
	told     bool // the other end has told how far apart it arrived
}

func (g *gap) complete() bool { return g.have[0] && g.have[1] }

// ringSize is how many pairs are remembered, each way: what is still on its way, and what was told back.
const ringSize = 64

// pairs is the last pairs of one direction at one end.
type pairs struct {
	ring  [ringSize]gap
	last  uint32 // highest sequence number that was completed
	begun bool
}

// note keeps the stamp of packet index (0 or 1) of a pair. It returns false for one that was noted already, or is older
// than what is remembered.
func (p *pairs) note(sequence uint32, index uint8, at units.Time) bool {
	g := &p.ring[sequence%ringSize]
	if g.sequence != sequence || !g.have[0] && !g.have[1] {
		if (g.have[0] || g.have[1]) && int32(sequence-g.sequence) < 0 {
			return false
		}
		*g = gap{sequence: sequence}
	}
	if g.have[index] {
		return false
	}
	g.at[index], g.have[index] = at, true
	if g.complete() && (!p.begun || int32(sequence-p.last) > 0) {
		p.last, p.begun = sequence, true
	}
	return true
}

// find returns a pair that is complete and has not been used, or nil.
func (p *pairs) find(sequence uint32) *gap {
	g := &p.ring[sequence%ringSize]
	if g.sequence != sequence || !g.complete() || g.used {
		return nil
	}
	return g
}

// recent appends the complete pairs among the n newest, skipping the first few; at most room of them.
func (p *pairs) recent(to []told, skip, room int) []told {
	if !p.begun {
		return to
	}
	for back := uint32(0); back < ringSize && len(to) < room; back++ {
		sequence := p.last - back
		g := &p.ring[sequence%ringSize]
		if g.sequence != sequence || !g.complete() {
			continue
		}
		apart := g.at[1] - g.at[0]
		if apart > maxApart || apart < -maxApart {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		to = append(to, told{sequence: sequence, at: g.at[0], apart: apart})
	}
	return to
}

// forget drops everything, as after a step of the clock.
func (p *pairs) forget() { *p = pairs{} }

// pure is the filter of coded probes: a pair whose gap is the same at both ends has met no queue, or one that was the
// same for both.
func pure(sent, received [2]units.Time, epsilon units.Time) bool {
	change := received[1] - received[0] - (sent[1] - sent[0])
	return change < epsilon && change > -epsilon
}
