package path

import "weft/units"

// Repath keeps a connection on one path until it is asked to take another one (CCM, section 6.4: adaptive routing at
// the source host).
type Repath struct {
	paths uint16
	path  uint16
}

// NewRepath returns a chooser over so many paths.
func NewRepath(paths int) *Repath { return &Repath{paths: uint16(paths)} }

// Choose returns the present path.
func (r *Repath) Choose(units.Time) uint16 { return r.path }

// OnFeedback does nothing.
func (*Repath) OnFeedback(units.Time, Feedback) {}

// Next goes on to the next path. It is the only one again after the last.
func (r *Repath) Next() { r.path = (r.path + 1) % r.paths }
