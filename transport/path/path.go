// Package path chooses the path of each packet of a connection.
//
// A path is a number from 0 that the endpoint adds to the UDP source port. Switches hash the source
// port (ECMP), so different numbers usually take different links. The receiver echoes the number,
// so that a Chooser learns how its packets fared.
//
//	ECMP     always path 0
//	Repath   the next path when a switch asks for one (CCM)
//	PLB      the next path after several congested rounds
//	Spray    all paths in turn, whatever comes back
//	STrack   all paths in turn, but not those that returned a mark
//	Bitmap   likewise, and longer after trimmed packets (UEC)
//	REPS     paths that returned without a mark once more, and others at random (UEC)
//	Mixed    paths that returned without a mark once more, otherwise as Bitmap (UEC)
//
// In come feedback (Feedback) and the time, out comes a path number. Choosers do no I/O and read no
// clock. Start reading at Chooser.
package path

import "weft/units"

// A Chooser picks the path of each packet of one connection.
type Chooser interface {
	// Choose returns the path of the next packet.
	Choose(now units.Time) uint16
	// OnFeedback is called when a packet is acknowledged or lost.
	OnFeedback(now units.Time, f Feedback)
}

// Feedback describes the fate of a packet.
type Feedback struct {
	Path   uint16
	Marked bool        // it was ECN-marked
	Lost   bool        // it was given up as lost; Path is then unknown if the connection has many
	Cut    bool        // a switch before the last one trimmed it (UEC)
	Window units.Bytes // current window of the connection, which limits the paths of STrack
}

// ECMP keeps a connection on one path: one source port, which every switch always hashes the same
// way.
type ECMP struct{}

// Choose returns path 0.
func (ECMP) Choose(units.Time) uint16 { return 0 }

// OnFeedback does nothing: there is no other path.
func (ECMP) OnFeedback(units.Time, Feedback) {}
