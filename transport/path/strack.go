package path

import "weft/units"

// STrack sprays over paths and avoids those whose packets were marked (STrack, Algorithm 3). It
// keeps one bit per path, whatever the number of packets in flight.
//
// The paper prints the bit inverted: lines 5 and 8 set it for packets without a mark, whereas line
// 20 skips paths whose bit is set and the text skips marked ones. Here a set bit means marked.
type STrack struct {
	marked [maxPaths / 64]uint64 `state:"value"` // bitmap of the paths whose last feedback was marked
	packet units.Bytes           `state:"fixed"` // size of a full packet on the wire
	window units.Bytes           `state:"value"` // current window
	limit  int                   `state:"fixed"` // max_paths
	rr     int                   `state:"value"` // the path chosen last
	next   int                   `state:"value"` // next_path_id: a path that just returned no mark, -1 if none
	fresh  bool                  `state:"fixed"` // lines 12 to 14 do not apply: no packet takes next
}

const (
	maxPaths = 256
	minPaths = 8 // line 18
)

// NewSTrack returns a chooser over at most limit paths, 1 to 256. packet is the size of a full
// packet on the wire, and window the initial window. As printed, the packet after an unmarked
// acknowledgement takes its path, and round robin continues from there (line 13), so that a flow
// cycles over the paths of its first window. With fresh each packet takes the next unmarked path.
func NewSTrack(limit int, packet, window units.Bytes, fresh bool) *STrack {
	// Line 12 compares with "> 0" and so never reuses path 0. Here -1 means none.
	return &STrack{packet: packet, window: window, limit: limit, next: -1, fresh: fresh}
}

// OnFeedback is UPDATE_ECN_BITMAP.
func (s *STrack) OnFeedback(_ units.Time, f Feedback) {
	s.window = f.Window
	p := int(f.Path)
	if p >= s.limit {
		return // not one of these paths
	}
	if f.Marked {
		s.next = -1
		s.marked[p>>6] |= 1 << (p & 63)
	} else {
		s.next = p
		s.marked[p>>6] &^= 1 << (p & 63)
	}
}

// Choose is CHOOSE_PATH. Bits are cleared by being skipped, not by time: each packet clears the
// first set bit that it meets, which also ends the search after at most one round.
func (s *STrack) Choose(units.Time) uint16 {
	if !s.fresh && s.next >= 0 {
		s.rr, s.next = s.next, -1 // line 13: round robin continues from there
		return uint16(s.rr)
	}
	paths := s.paths()
	cleared := false
	for range paths + 1 {
		s.rr = (s.rr + 1) % paths
		bit := uint64(1) << (s.rr & 63)
		if s.marked[s.rr>>6]&bit == 0 {
			break
		}
		if !cleared {
			s.marked[s.rr>>6] &^= bit
			cleared = true
		}
	}
	return uint16(s.rr)
}

// paths returns the number of paths to use: twice the window in packets. With more, a bit would be
// outdated before its path is used again (section 3.1).
func (s *STrack) paths() int {
	return min(max(int(min(2*s.window/s.packet, maxPaths)), minPaths), s.limit)
}

// Marked reports whether path p would be skipped.
func (s *STrack) Marked(p int) bool { return s.marked[p>>6]&(1<<(p&63)) != 0 }
