package path

import "weft/units"

// Repath keeps a connection on one path until a switch asks for another one (CCM, section 6.4:
// adaptive routing at the source host).
type Repath struct {
	paths uint16
	path  uint16
}

// NewRepath returns a chooser over a number of paths.
func NewRepath(paths int) *Repath { return &Repath{paths: uint16(paths)} }

// Choose returns the current path.
func (r *Repath) Choose(units.Time) uint16 { return r.path }

// OnFeedback does nothing.
func (*Repath) OnFeedback(units.Time, Feedback) {}

// Next changes to the next path, cyclically.
func (r *Repath) Next() { r.path = (r.path + 1) % r.paths }
