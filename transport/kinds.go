package transport

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync/atomic"

	"weft/internal/splitmix"
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

// kinds is where every transport is registered, a line each: its name, what it is, what a lab says of its connections, and what it puts
// into the endpoint. A window or a rate alone, over one path and go-back-N, is plain; telemetry asks switches for what they write into
// packets, marked lets them mark packets (ECN), coordinated has them take part, marking is how they mark unless a lab says so. netRTT is the
// base RTT of the whole network. needs, lossless and around say under which conditions the transport does what its
// authors describe.
var kinds = []kind{
	register("pc4", "PC4.", of[pc4.Params], pc4Scheme).needs(SyncedClocks, "its receivers steer by one-way delays"),
	register("roce", "RoCEv2 with DCQCN.", roceSection, roceScheme).marked().marking(markingOfPreset).
		needs(Marks, "DCQCN slows down by marks alone").lossless(),
	register("swift", "Swift.", of[swift.Params], plain(swift.NewSender)),
	register("hpcc", "HPCC.", of[hpcc.Params], plain(hpcc.NewSender)).telemetry().lossless(),
	register("strack", "STrack and spray.", strackSection, strackScheme).selective().marked().netRTT().needs(Marks, "its window and its choice of paths follow marks"),
	register("spray", "", spraySection, sprayScheme).as("strack").selective().marked().netRTT().needs(Marks, "its window follows marks").unless(oddPaths),
	register("ccm", "CCM, in hosts and all switches.", ccmSection, ccmScheme).selective().marked().coordinated().around(innerOf, insideOfCCM),
}

// kind is a transport that a Spec can name.
type kind struct {
	name   string
	about  string
	in     string // the section of a lab that has its parameters
	own    func() Section
	scheme func(*Spec) (scheme, error)
	decode func(data []byte) (cc.Params, error)
	facts  Facts
	marks  func(written func(key string) (text string, ok bool)) Marking // nil: it has no values of its own
	wants  []Need                                                        // but for those that follow from its recovery

	inner  func(cc.Params) (kind string, p cc.Params)                   // nil: it holds no other
	inside func(written func(key string) (text string, ok bool)) string // names it
}

// register names a transport whose parameters are P.
func register[P cc.Params](name, about string, section func() Section, build func(*Spec, P) scheme) kind {
	good := new(atomic.Pointer[P]) // the parameters that were checked last: most connections of a network have the same
	return kind{
		name: name, about: about, in: name, own: section,
		scheme: func(s *Spec) (scheme, error) {
			p, ok := s.CC.(P)
			if !ok {
				return scheme{}, fmt.Errorf("%s has parameters %T, not %T", name, s.CC, p)
			}
			if last := good.Load(); last == nil || !reflect.DeepEqual(*last, p) {
				if err := p.Check(); err != nil {
					return scheme{}, err
				}
				good.Store(&p)
			}
			return build(s, p), nil
		},
		decode: func(data []byte) (cc.Params, error) {
			var p P
			err := json.Unmarshal(data, &p)
			return p, err
		},
	}
}

// as has a transport's parameters in the section of another.
func (k kind) as(other string) kind {
	k.in = other
	return k
}

func (k kind) telemetry() kind {
	build := k.scheme
	k.facts.Telemetry = true
	k.scheme = func(s *Spec) (scheme, error) {
		sch, err := build(s)
		sch.telemetry = true
		return sch, err
	}
	return k
}

// selective has losses repaired by selective repeat, unless a connection asks for go-back-N.
func (k kind) selective() kind {
	build := k.scheme
	k.facts.Selective = true
	k.scheme = func(s *Spec) (scheme, error) {
		sch, err := build(s)
		sch.selective = true
		return sch, err
	}
	return k
}

// marked has packets that switches may mark.
func (k kind) marked() kind {
	build := k.scheme
	k.scheme = func(s *Spec) (scheme, error) {
		sch, err := build(s)
		sch.ect = true
		return sch, err
	}
	return k
}

// coordinated has packets with a tag for the switches that take part.
func (k kind) coordinated() kind {
	build := k.scheme
	k.facts.Coordinated = true
	k.scheme = func(s *Spec) (scheme, error) {
		sch, err := build(s)
		sch.tagged = true
		return sch, err
	}
	return k
}

// netRTT has the base RTT of the whole network.
func (k kind) netRTT() kind {
	k.facts.NetRTT = true
	return k
}

// unless adds a check of the whole connection.
func (k kind) unless(wrong func(*Spec) error) kind {
	build := k.scheme
	k.scheme = func(s *Spec) (scheme, error) {
		if err := wrong(s); err != nil {
			return scheme{}, err
		}
		return build(s)
	}
	return k
}

// plain is a controller at the sender and nothing else.
func plain[P any, C cc.Controller](sender func(P, cc.Link) C) func(*Spec, P) scheme {
	return func(_ *Spec, p P) scheme {
		return scheme{
			controller: func(l cc.Link) cc.Controller { return sender(p, l) },
			receiver:   meter,
			chooser:    onePath,
		}
	}
}

// Kinds lists the names of all transports.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name
	}
	return names
}

// Named returns the section of a transport of a name, its path in a lab below transport, and what the transport is.
func Named(name string) (s Section, path, about string) {
	k, err := kindOf(name)
	if err != nil {
		return nil, name, ""
	}
	return k.own(), k.in, k.about
}

func kindOf(name string) (*kind, error) {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i], nil
		}
	}
	return nil, fmt.Errorf("unknown kind %q", name)
}

// Pathed are parameters of a transport whose connections have several paths, each a source port.
type Pathed interface{ SourcePorts() int }

// Paths is how many source ports the connection's sender uses, from SrcPort on.
func (s *Spec) Paths() int { return PathsOf(s.CC) }

// PathsOf is how many source ports a connection with these parameters uses.
func PathsOf(p cc.Params) int {
	if p, ok := p.(Pathed); ok {
		return p.SourcePorts()
	}
	return 1
}

// UnmarshalJSON reads what json.Marshal writes of a Spec.
func (s *Spec) UnmarshalJSON(data []byte) error {
	type bare Spec
	in := struct {
		*bare
		CC json.RawMessage
	}{bare: (*bare)(s)}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	k, err := kindOf(s.Kind)
	if err == nil {
		s.CC, err = k.decode(in.CC)
	}
	if err != nil {
		return fmt.Errorf("transport: connection %d: %w", s.ID, err)
	}
	return nil
}

func pc4Scheme(s *Spec, p pc4.Params) scheme {
	planned, mode := s.Initial, s.Collective
	return scheme{
		controller: func(l cc.Link) cc.Controller { return pc4.NewSender(p, l, planned) },
		receiver:   func(line units.Bandwidth) cc.Receiver { return pc4.NewReceiver(p, mode, line, planned) },
		chooser:    onePath,
		spaced:     true,
	}
}

// roceScheme is RoCEv2: DCQCN over go-back-N, or over selective repeat.
func roceScheme(_ *Spec, p dcqcn.Params) scheme {
	chooser := onePath
	if p.Repath > 0 {
		chooser = func(l cc.Link, _ uint64, _ units.Bytes) path.Chooser {
			return path.NewPLB(dcqcn.RepathPorts, p.Repath, l.BaseRTT)
		}
	}
	return scheme{
		controller: func(l cc.Link) cc.Controller { return dcqcn.NewSender(p, l) },
		receiver:   func(units.Bandwidth) cc.Receiver { return dcqcn.NewNotifier(p) },
		chooser:    chooser,
		either:     true,
		paths:      p.SourcePorts(),
		span:       func(cc.Link) uint64 { return maxSpan }, // a rate has no window
	}
}

// strackScheme is STrack: a window over adaptive paths.
func strackScheme(s *Spec, p strack.Params) scheme {
	sch := sprayScheme(s, p)
	sch.chooser = func(l cc.Link, _ uint64, window units.Bytes) path.Chooser {
		return path.NewSTrack(p.Paths, l.Packet, window)
	}
	return sch
}

// sprayScheme is STrack's window and recovery over oblivious paths.
func sprayScheme(s *Spec, p strack.Params) scheme {
	id := s.ID
	return scheme{
		controller: func(l cc.Link) cc.Controller { return strack.NewSender(p, l) },
		receiver:   meter,
		chooser: func(_ cc.Link, seed uint64, _ units.Bytes) path.Chooser {
			return path.NewSpray(p.Paths, seed^uint64(id+1)*splitmix.Gamma)
		},
		windowed: true, paths: p.Paths,
		span: func(l cc.Link) uint64 { return spanWindows*uint64(strack.NewSender(p, l).MaxWindow()) + wire.SackBits },
	}
}

// spanWindows is how many windows of packets may follow one that is missing. A loss shows after one window (section 3.3.2), and
// is repaired in another.
const spanWindows = 4

// oddPaths holds paths that are taken in turn to a power of two: they are an index, XORed.
func oddPaths(s *Spec) error {
	if n := s.Paths(); n&(n-1) != 0 {
		return fmt.Errorf("strack: %d paths are no power of two", n)
	}
	return nil
}

func onePath(cc.Link, uint64, units.Bytes) path.Chooser { return path.ECMP{} }

func meter(units.Bandwidth) cc.Receiver { return oneWay{} }

// oneWay is the receiver of schemes that ask nothing of theirs: it measures, for whoever watches.
type oneWay struct{}

func (oneWay) OnData(_ units.Time, d cc.Data) cc.Feedback {
	return cc.Feedback{OneWay: d.At - d.SentAt - d.Baseline}
}
