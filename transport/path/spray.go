package path

import (
	"weft/internal/splitmix"
	"weft/units"
)

// Spray uses all paths in turn, regardless of feedback (oblivious spraying). The path is the index
// of the packet, XORed with a mask that is drawn for each cycle. So every cycle uses every path
// once, and no two connections stay in step.
type Spray struct {
	state uint64
	paths uint16 // a power of two
	index uint16
	mask  uint16
}

// NewSpray returns a chooser over a number of paths, a power of two up to 256. seed determines the
// order.
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
