package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/cc/pc4"
	"weft/transport/path"
	"weft/units"
)

// A scheme is what a kind of transport puts into the endpoint.
type scheme struct {
	ect        bool // packets are ECN-capable
	controller func(l cc.Link) cc.Controller
	receiver   func(line units.Bandwidth) cc.Receiver
	chooser    func() path.Chooser
}

// newScheme is where every transport is named.
func newScheme(s *Spec) (scheme, error) {
	switch s.Kind {
	case "pc4":
		return pc4Scheme(s)
	default:
		return scheme{}, fmt.Errorf("transport: connection %d: unknown kind %q", s.ID, s.Kind)
	}
}

func pc4Scheme(s *Spec) (scheme, error) {
	if err := s.PC4.Check(); err != nil {
		return scheme{}, fmt.Errorf("transport: connection %d: %w", s.ID, err)
	}
	p, planned, mode := s.PC4, s.Initial, s.Collective
	return scheme{
		controller: func(l cc.Link) cc.Controller { return pc4.NewSender(p, l, planned) },
		receiver:   func(line units.Bandwidth) cc.Receiver { return pc4.NewReceiver(p, mode, line) },
		chooser:    func() path.Chooser { return path.ECMP{} },
	}, nil
}
