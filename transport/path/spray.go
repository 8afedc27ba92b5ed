package path

import (
	"weft/internal/splitmix"
	"weft/units"
)

// Spray takes all paths in turn whatever comes back: the index of the packet, XORed with a mask that is drawn anew for
// each cycle, so that every cycle uses every path once and no two connections stay in step (oblivious spraying).
type Spray struct {
	state uint64
	paths uint16 // a power of two
	index uint16
	mask  uint16
}

// NewSpray returns a chooser over so many paths, a power of two up to 256. seed decides its order.
func NewSpray(paths int, seed uint64) *Spray {
	return &Spray{state: seed, paths: uint16(paths)}
}

// Choose returns the next path.
func (s *Spray) Choose(units.Time) uint16 {
	if s.index == 0 {
		s.mask = uint16(splitmix.Next(&s.state)) & (s.paths - 1)
	}
	p := s.index ^ s.mask
	s.index = (s.index + 1) & (s.paths - 1)
	return p
}

// OnFeedback does nothing.
func (s *Spray) OnFeedback(units.Time, Feedback) {}
