package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/swift"
	"weft/transport/path"
	"weft/units"
)

// A scheme is what a kind of transport puts into the endpoint.
type scheme struct {
	ect        bool // packets are ECN-capable
	telemetry  bool // packets leave room for what switches write
	controller func(l cc.Link) cc.Controller
	receiver   func(line units.Bandwidth) cc.Receiver
	chooser    func() path.Chooser
}

// newScheme is where every transport is named.
func newScheme(s *Spec) (scheme, error) {
	var sch scheme
	var err error
	switch s.Kind {
	case "pc4":
		sch, err = pc4Scheme(s), s.PC4.Check()
	case "roce":
		sch, err = roceScheme(s), s.DCQCN.Check()
	case "swift":
		sch, err = swiftScheme(s), s.Swift.Check()
	case "hpcc":
		sch, err = hpccScheme(s), s.HPCC.Check()
	default:
		err = fmt.Errorf("unknown kind %q", s.Kind)
	}
	if err != nil {
		return scheme{}, fmt.Errorf("transport: connection %d: %w", s.ID, err)
	}
	return sch, nil
}

func pc4Scheme(s *Spec) scheme {
	p, planned, mode := s.PC4, s.Initial, s.Collective
	return scheme{
		controller: func(l cc.Link) cc.Controller { return pc4.NewSender(p, l, planned) },
		receiver:   func(line units.Bandwidth) cc.Receiver { return pc4.NewReceiver(p, mode, line) },
		chooser:    onePath,
	}
}

// roceScheme is RoCEv2: DCQCN over go-back-N.
func roceScheme(s *Spec) scheme {
	p := s.DCQCN
	return scheme{
		ect:        true,
		controller: func(l cc.Link) cc.Controller { return dcqcn.NewSender(p, l) },
		receiver:   func(units.Bandwidth) cc.Receiver { return dcqcn.NewNotifier(p) },
		chooser:    onePath,
	}
}

func swiftScheme(s *Spec) scheme {
	p := s.Swift
	return scheme{
		controller: func(l cc.Link) cc.Controller { return swift.NewSender(p, l) },
		receiver:   meter,
		chooser:    onePath,
	}
}

func hpccScheme(s *Spec) scheme {
	p := s.HPCC
	return scheme{
		telemetry:  true,
		controller: func(l cc.Link) cc.Controller { return hpcc.NewSender(p, l) },
		receiver:   meter,
		chooser:    onePath,
	}
}

func onePath() path.Chooser { return path.ECMP{} }

func meter(units.Bandwidth) cc.Receiver { return oneWay{} }

// oneWay is the receiver of schemes that ask nothing of theirs: it measures, for whoever watches.
type oneWay struct{}

func (oneWay) OnData(_ units.Time, d cc.Data) cc.Feedback {
	return cc.Feedback{OneWay: d.At - d.SentAt - d.Baseline}
}
