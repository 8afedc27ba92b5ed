// Package path chooses which of a connection's paths a packet takes. A path is a number from 0 that the
// endpoint adds to the UDP source port, the entropy that switches hash; the receiver echoes it, so that a
// choice can learn from how its packets fared. It does no I/O.
package path

import "weft/units"

// A Chooser picks the path of each packet of one connection.
type Chooser interface {
	Choose(now units.Time) uint16
	OnFeedback(now units.Time, f Feedback)
}

// Feedback is what became of a packet.
type Feedback struct {
	Path   uint16
	Marked bool        // congestion experienced on the way
	Lost   bool        // given up as lost
	Window units.Bytes // of the connection at present: how many paths are worth keeping (STrack, Alg. 3)
}

// ECMP keeps a connection on one path: one source port, so that every switch hashes it alike.
type ECMP struct{}

// Choose returns path 0.
func (ECMP) Choose(units.Time) uint16 { return 0 }

// OnFeedback does nothing: there is no other path to go to.
func (ECMP) OnFeedback(units.Time, Feedback) {}
