package transport

import (
	"fmt"
	"math"

	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/strack"
	"weft/transport/cc/swift"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// A scheme is what a kind of transport puts into the endpoint.
type scheme struct {
	ect        bool // packets are ECN-capable
	telemetry  bool // packets leave room for what switches write
	controller func(l cc.Link) cc.Controller
	receiver   func(line units.Bandwidth) cc.Receiver
	chooser    func(l cc.Link, seed uint64, window units.Bytes) path.Chooser

	selective bool       // losses are recovered from by selective repeat
	either    bool       // go-back-N and selective repeat both do
	windowed  bool       // packets overtake each other by as much as the window
	paths     int        // source ports from the first on; 0: one
	rtoMin    units.Time // floor of the retransmission timeout, unless so many RTTs of the network are more
	rtoRTTs   units.Time
	span      func(l cc.Link) uint64 // most packets from the first that is missing to the last sent; selective repeat
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
	case "strack":
		sch, err = strackScheme(s), s.STrack.Check()
	case "spray":
		sch, err = sprayScheme(s), checkSpray(s.STrack)
	default:
		err = fmt.Errorf("unknown kind %q", s.Kind)
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
	if sch.rtoMin == 0 {
		sch.rtoMin = DefaultRTOMin
	}
	return nil
}

func pc4Scheme(s *Spec) scheme {
	p, planned, mode := s.PC4, s.Initial, s.Collective
	return scheme{
		controller: func(l cc.Link) cc.Controller { return pc4.NewSender(p, l, planned) },
		receiver:   func(line units.Bandwidth) cc.Receiver { return pc4.NewReceiver(p, mode, line) },
		chooser:    onePath,
	}
}

// roceScheme is RoCEv2: DCQCN over go-back-N, or over selective repeat.
func roceScheme(s *Spec) scheme {
	p := s.DCQCN
	return scheme{
		ect:        true,
		controller: func(l cc.Link) cc.Controller { return dcqcn.NewSender(p, l) },
		receiver:   func(units.Bandwidth) cc.Receiver { return dcqcn.NewNotifier(p) },
		chooser:    onePath,
		either:     true,
		span:       func(cc.Link) uint64 { return maxSpan }, // a rate has no window
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

// strackScheme is STrack: a window over adaptive paths.
func strackScheme(s *Spec) scheme {
	p := s.STrack
	sch := sprayScheme(s)
	sch.chooser = func(l cc.Link, _ uint64, window units.Bytes) path.Chooser {
		return path.NewSTrack(p.Paths, l.Packet, window)
	}
	return sch
}

// sprayScheme is STrack's window and recovery over oblivious paths.
func sprayScheme(s *Spec) scheme {
	p, id := s.STrack, s.ID
	return scheme{
		ect:        true,
		controller: func(l cc.Link) cc.Controller { return strack.NewSender(p, l) },
		receiver:   meter,
		chooser: func(_ cc.Link, seed uint64, _ units.Bytes) path.Chooser {
			return path.NewSpray(p.Paths, seed^uint64(id+1)*0x9e3779b97f4a7c15)
		},
		selective: true, windowed: true, paths: p.Paths, rtoMin: DefaultSTrackRTOMin, rtoRTTs: 8,
		span: func(l cc.Link) uint64 { return spanWindows*uint64(strack.NewSender(p, l).MaxWindow()) + wire.SackBits },
	}
}

// spanWindows is how many windows of packets may follow one that is missing. A loss shows after one window (section 3.3.2), and
// is repaired in another.
const spanWindows = 4

// checkSpray holds paths to a power of two: they are an index, XORed.
func checkSpray(p strack.Params) error {
	if p.Paths&(p.Paths-1) != 0 {
		return fmt.Errorf("strack: %d paths are no power of two", p.Paths)
	}
	return p.Check()
}

func onePath(cc.Link, uint64, units.Bytes) path.Chooser { return path.ECMP{} }

func meter(units.Bandwidth) cc.Receiver { return oneWay{} }

// oneWay is the receiver of schemes that ask nothing of theirs: it measures, for whoever watches.
type oneWay struct{}

func (oneWay) OnData(_ units.Time, d cc.Data) cc.Feedback {
	return cc.Feedback{OneWay: d.At - d.SentAt - d.Baseline}
}
