package transport

import (
	"fmt"
	"math"

	"weft/transport/cc"
	"weft/transport/path"
	"weft/units"
)

// A scheme has all that distinguishes a transport in the endpoint.
type scheme struct {
	ect        bool // packets are ECN-capable
	tagged     bool // data packets have a coordination tag
	telemetry  bool // data packets leave room for telemetry
	controller func(l cc.Link) cc.Controller
	receiver   func(line units.Bandwidth) cc.Receiver
	chooser    func(l cc.Link, seed uint64, window units.Bytes) path.Chooser

	selective bool                   // recovery is selective repeat
	either    bool                   // both go-back-N and selective repeat are supported
	windowed  bool                   // reordering of up to a window is no sign of a loss
	trims     bool                   // switches may trim data packets, and losses are not inferred; see trimmed.go
	credit    *creditScheme          // nil: no credits
	paths     int                    // number of source ports; 0: one
	spaced    bool                   // a retransmission timeout is at least twice the time between paced packets
	span      func(l cc.Link) uint64 // selective repeat: max. packets from the first missing to the last sent
}

// newScheme returns the scheme of a connection.
func newScheme(s *Spec) (scheme, error) {
	var sch scheme
	k, err := kindOf(s.Kind)
	if err == nil {
		sch, err = k.scheme(s)
	}
	if err == nil {
		err = sch.recover(s.Recovery, s.Kind)
	}
	if last := int(s.SrcPort) + sch.paths - 1; err == nil && last > math.MaxUint16 {
		err = fmt.Errorf("%d paths from source port %d end beyond the last port, %d", sch.paths, s.SrcPort,
			math.MaxUint16)
	}
	if err != nil {
		return scheme{}, fmt.Errorf("transport: connection %d: %w", s.ID, err)
	}
	return sch, nil
}

// recover sets the requested recovery; empty keeps the default.
func (sch *scheme) recover(recovery, kind string) error {
	selective := sch.selective
	switch recovery {
	case "":
	case GoBackN:
		selective = false
	case SelectiveRepeat:
		selective = true
	default:
		return fmt.Errorf("unknown recovery %q", recovery)
	}
	if selective != sch.selective && !sch.either {
		return fmt.Errorf("%s does not work with %s", kind, recovery)
	}
	sch.selective = selective
	return nil
}
