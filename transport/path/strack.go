package path

import "weft/units"

// STrack sprays over paths and steers around those whose packets come back marked (STrack, Algorithm 3). It keeps one bit
// per path, however many packets are on their way.
//
// The paper prints the bit the wrong way round: lines 5 and 8 set it on packets that were not marked, while line 20 skips
// paths whose bit is set and its text skips marked ones. Here a bit that is set means marked.
type STrack struct {
	marked [maxPaths / 64]uint64 // bitmap
	packet units.Bytes
	window units.Bytes
	limit  int // max_paths
	rr     int
	next   int // next_path_id: the path of a packet that just came back without a mark; -1: none
}

const (
	maxPaths = 256
	minPaths = 8 // line 18
)

// NewSTrack returns a chooser over up to limit paths, 1 to 256. packet is a full packet on the wire and window what the connection
// starts with.
func NewSTrack(limit int, packet, window units.Bytes) *STrack {
	return &STrack{packet: packet, window: window, limit: limit, next: -1} // path 0 is as good as any: "> 0" in line 12 would never reuse it
}

// OnFeedback is UPDATE_ECN_BITMAP.
func (s *STrack) OnFeedback(_ units.Time, f Feedback) {
	s.window = f.Window
	p := int(f.Path)
	if p >= s.limit {
		return // none of ours
	}
	if f.Marked {
		s.next = -1
		s.marked[p>>6] |= 1 << (p & 63)
	} else {
		s.next = p
		s.marked[p>>6] &^= 1 << (p & 63)
	}
}

// Choose is CHOOSE_PATH. Bits fade by being skipped, not by time: each packet clears the first that it meets, which also
// ends the search after one turn at most.
func (s *STrack) Choose(units.Time) uint16 {
	if s.next >= 0 {
		s.rr, s.next = s.next, -1 // line 13: the round goes on from there
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

// paths is how many are worth knowing: twice the window in packets, since with fewer packets in flight
// what a bit says would be old before the round comes back to it (section 3.1).
func (s *STrack) paths() int {
	return min(max(int(min(2*s.window/s.packet, maxPaths)), minPaths), s.limit)
}

// Marked reports whether a path would be skipped.
func (s *STrack) Marked(p int) bool { return s.marked[p>>6]&(1<<(p&63)) != 0 }
