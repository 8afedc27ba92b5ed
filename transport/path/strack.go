package path

import "weft/units"

// STrack sprays over paths and avoids those whose packets were marked (STrack, Algorithm 3). It
// keeps one bit per path, whatever the number of packets in flight.
//
// The paper prints the bit inverted: lines 5 and 8 set it for packets without a mark, whereas line
// 20 skips paths whose bit is set and the text skips marked ones. Here a set bit means marked.
type STrack struct {
	marked    [maxPaths / 64]uint64 // bitmap of the paths whose last feedback was marked
	packet    units.Bytes           // size of a full packet on the wire
	window    units.Bytes           // current window
	forget    units.Time            `state:"span"` // as in Adaptive, as the other fields of its names
	forgets   units.Time            // when all marks are forgotten; units.LongAgo: not yet known, or never
	perPacket float32
	limit     uint16 // max_paths
	rr        uint16 // the path chosen last
	next      int16  // next_path_id: a path that just returned no mark, -1 if none
	reuse     bool
	clearAll  bool
}

// Adaptive has what the paper leaves open about adaptive paths. Ambiguities have the numbers of
// docs/strack.md.
type Adaptive struct {
	Paths int // max_paths: 1 to 256
	// Reuse sends the packet after an unmarked acknowledgement on its path, from where round robin
	// continues, as lines 12 to 14 print it: a flow cycles over the paths of its first window.
	// Without it, each packet takes the next unmarked path (ambiguity 3).
	Reuse bool
	// ClearAll clears the bit of each path that is skipped; without it, of the first one alone, as
	// line 21 says (ambiguity 4).
	ClearAll bool
	// PerPacket is the number of paths for each packet of the window, at least 8; 0: Paths,
	// whatever the window (line 17, ambiguity 5).
	PerPacket float64
	// Forget is the time after which all marks are forgotten, as the paper's introduction has it;
	// 0: never, as in Algorithm 3 (ambiguity 6).
	Forget units.Time
}

const (
	maxPaths = 256
	minPaths = 8 // line 18
)

// NewSTrack returns a chooser. packet is the size of a full packet on the wire, and window the
// initial window.
func NewSTrack(c Adaptive, packet, window units.Bytes) *STrack {
	// Line 12 compares with "> 0" and so never reuses path 0. Here -1 means none.
	return &STrack{packet: packet, window: window, next: -1, limit: uint16(c.Paths), reuse: c.Reuse,
		clearAll: c.ClearAll, perPacket: float32(c.PerPacket), forget: c.Forget, forgets: units.LongAgo}
}

// Rest implements cc.Resting. There is nothing to forget.
func (s *STrack) Rest(units.Time) {}

// OnFeedback is UPDATE_ECN_BITMAP.
func (s *STrack) OnFeedback(_ units.Time, f Feedback) {
	s.window = f.Window
	p := f.Path
	if p >= s.limit {
		return // not one of these paths
	}
	if f.Marked {
		s.next = -1
		s.marked[p>>6] |= 1 << (p & 63)
	} else {
		s.next = int16(p)
		s.marked[p>>6] &^= 1 << (p & 63)
	}
}

// Choose is CHOOSE_PATH. Each packet clears the first set bit that it meets, which also ends the
// search after at most one round.
func (s *STrack) Choose(now units.Time) uint16 {
	if s.forget > 0 && now >= s.forgets {
		clear(s.marked[:])
		s.forgets = now + s.forget
	}
	if s.reuse && s.next >= 0 {
		s.rr, s.next = uint16(s.next), -1 // line 13: round robin continues from there
		return s.rr
	}
	paths := s.paths()
	cleared := false
	for range paths + 1 {
		s.rr = (s.rr + 1) % paths
		bit := uint64(1) << (s.rr & 63)
		if s.marked[s.rr>>6]&bit == 0 {
			break
		}
		if !cleared || s.clearAll {
			s.marked[s.rr>>6] &^= bit
			cleared = true
		}
	}
	return s.rr
}

// paths returns the number of paths to use. With more than twice the window in packets, a bit would
// be outdated before its path is used again (section 3.1).
func (s *STrack) paths() uint16 {
	if s.perPacket == 0 {
		return s.limit
	}
	window := float64(s.perPacket) * float64(s.window) / float64(s.packet)
	return min(max(uint16(min(window, maxPaths)), minPaths), s.limit)
}

// Marked reports whether path p would be skipped.
func (s *STrack) Marked(p int) bool { return s.marked[p>>6]&(1<<(p&63)) != 0 }
