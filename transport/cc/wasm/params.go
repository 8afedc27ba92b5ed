package wasm

import (
	"fmt"

	"weft/internal/clip"
	"weft/params"
	"weft/transport/cc"
	"weft/units"
)

// Params are the parameters of a congestion control that is a module, and the choices of the
// endpoint around it.
type Params struct {
	Module string  // its hash; Load must have returned it in this process
	Values []Value // of its parameters, in its order

	Window   params.Size // maximum window; 0: none
	ECN      bool        // packets are ECN-capable
	INT      bool        // switches write telemetry into packets
	CNP      bool        // receivers answer marks by notifications
	Interval units.Time  // minimum between two notifications of a connection; 0: one per mark
	Paths    int         // source ports of the connection
	Adaptive bool        // paths are chosen as STrack does, and not in turn
}

// Value is the value of a parameter: a number in its base unit (ps, bytes, b/s), or a rate, which
// may be in proportion to the line and so becomes a number per connection.
type Value struct {
	Number float64     // of all kinds but rate; flags are 0 or 1, choices the position of the word
	Rate   params.Rate `json:",omitzero"` // of kind rate
}

// on returns the value for a line.
func (v Value) on(line units.Bandwidth) float64 {
	if v.Rate.Rate != 0 {
		return float64(v.Rate.At(line))
	}
	return v.Number
}

// SourcePorts returns the number of source ports of the connection.
func (p Params) SourcePorts() int { return max(p.Paths, 1) }

// Telemetry reports whether switches write telemetry into packets.
func (p Params) Telemetry() bool { return p.INT }

// Limit returns the maximum window on path l.
func (p Params) Limit(l cc.Link) units.Bytes {
	if p.Window == (params.Size{}) {
		return unlimited
	}
	return max(p.Window.On(l.Line, l.Line.BytesIn(l.BaseRTT)), 1)
}

// Check returns an error that names the first parameter out of range, or nil. Nodes check what the
// orchestrator sends by the ranges of the same module.
func (p Params) Check() error {
	m, ok := Loaded(p.Module)
	switch {
	case !ok:
		return errNotLoaded(p.Module)
	case len(p.Values) != len(m.Params):
		return fmt.Errorf("module %s: %d values for %d parameters", m.Name, len(p.Values), len(m.Params))
	case p.Paths < 0 || p.Paths > 256 || p.Interval < 0:
		return fmt.Errorf("module %s: %d paths, or notifications every %v, are out of range", m.Name, p.Paths,
			p.Interval)
	}
	s := m.Section()
	s.set(p.Values)
	return params.Check("module "+m.Name, s)
}

// errNotLoaded returns the error of a module that this process did not load.
func errNotLoaded(hash string) error {
	return fmt.Errorf("the module with hash %.12s is not here", clip.Text(hash))
}
