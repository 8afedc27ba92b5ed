package transport

import (
	"fmt"
	"math"

	"weft/transport/cc"
	"weft/transport/path"
	"weft/units"
)

// A scheme is what a kind of transport puts into the endpoint.
type scheme struct {
	ect        bool // packets are ECN-capable
	tagged     bool // packets have a coordination tag
	telemetry  bool // packets leave room for what switches write
	controller func(l cc.Link) cc.Controller
	receiver   func(line units.Bandwidth) cc.Receiver
	chooser    func(l cc.Link, seed uint64, window units.Bytes) path.Chooser

	selective bool                   // losses are recovered from by selective repeat
	either    bool                   // go-back-N and selective repeat both do
	windowed  bool                   // packets overtake each other by as much as the window
	paths     int                    // source ports from the first on; 0: one
	spaced    bool                   // a retransmission timeout is at least twice the time between paced packets
	span      func(l cc.Link) uint64 // most packets from the first that is missing to the last sent; selective repeat
}

// newScheme makes the scheme of a connection.
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
		err = fmt.Errorf("%d paths from source port %d on end beyond the last port", sch.paths, s.SrcPort)
	}
	if err != nil {
		return scheme{}, fmt.Errorf("transport: connection %d: %w", s.ID, err)
	}
	return sch, nil
}

// recover takes the kind of recovery that a connection asks for.
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
