package huygens

import "weft/units"

// gap is one coded pair: the stamps of its two packets at one end.
type gap struct {
	sequence uint32
	at       [2]units.Time // stamps of the two packets
	have     [2]bool       // the stamp is known
	used     bool          // its points were taken for the fit
	gapKnown bool          // the other end has reported its gap there
}

// complete reports whether both stamps are known.
func (g *gap) complete() bool { return g.have[0] && g.have[1] }

// ringSize is the number of pairs that are remembered in each direction: enough for those in flight
// and those that are reported back.
const ringSize = 64

// pairs are the last pairs of one direction at one end.
type pairs struct {
	ring  [ringSize]gap
	last  uint32 // highest sequence number of a complete pair
	begun bool   // last is valid
}

// note records the stamp of packet index (0 or 1) of a pair. It returns false for a duplicate, and
// for a pair that is too old.
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

// find returns a complete pair that has not been used, or nil.
func (p *pairs) find(sequence uint32) *gap {
	g := &p.ring[sequence%ringSize]
	if g.sequence != sequence || !g.complete() || g.used {
		return nil
	}
	return g
}

// recent appends the newest complete pairs, newest first and without the first skip of them, until
// the slice has most elements.
func (p *pairs) recent(to []reportedPair, skip, most int) []reportedPair {
	if !p.begun {
		return to
	}
	for back := uint32(0); back < ringSize && len(to) < most; back++ {
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
		to = append(to, reportedPair{sequence: sequence, at: g.at[0], apart: apart})
	}
	return to
}

// forget drops all pairs, as after a step of the clock.
func (p *pairs) forget() { *p = pairs{} }

// pure is the filter of coded probes (Huygens, section 3): a pair whose gap is the same at both
// ends met no queue, or the same one twice.
func pure(sent, received [2]units.Time, epsilon units.Time) bool {
	change := received[1] - received[0] - (sent[1] - sent[0])
	return change < epsilon && change > -epsilon
}
