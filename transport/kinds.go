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
	"weft/transport/cc/uec"
	"weft/transport/path"
	"weft/transport/wire"
	"weft/units"
)

// kinds registers every transport, a line each: its name, a title, its section in a lab, and its
// scheme for the endpoint. A plain transport is a window or a rate over one path. telemetry, marked
// and coordinated say what switches do with its packets, marking is its default for ECN, rated has
// its receivers send base rates, netRTT gives it the base RTT of the whole network, aims its target
// delay, starves that delay alone can shrink its window to nothing, bounded names the keys of its
// windows, helped what a controller tells it, and drawn its colour in charts. needs, lossless and
// around list the conditions under which the transport does what its authors describe. Conditions
// about numbers are those of its parameters (cc.Conditional) and of selective repeat (Misfits):
// docs/adr/0231.
var kinds = []kind{
	register("pc4", "PC4.", of[pc4.Params], pc4Scheme).drawn(1).rated().aims(pc4Target).starves().
		bounded("initial", "initial").
		helped("base_rate", pc4.Observed, pc4.Controller, pc4.Table).helped("initial", pc4.AtLine, pc4.AtBaseRate).
		needs(SyncedClocks, "its receivers set rates by one-way delays").
		needs(Announced, "its controller tells receivers how many flows come"),
	register("roce", "RoCEv2 with DCQCN.", section[RoCE], roceScheme).drawn(2).controlled("DCQCN").marked().
		marking(markingOfPreset).needs(Marks, "DCQCN reacts to marks alone").lossless(),
	register("swift", "Swift.", of[swift.Params], plain(swift.NewSender)).drawn(4).aims(swiftTarget).starves().
		bounded("max_window", "initial_window"),
	register("hpcc", "HPCC.", of[hpcc.Params], plain(hpcc.NewSender)).drawn(6).telemetry().bounded("t", "t").
		lossless().needs(OnePath, "it compares the telemetry of one packet with that of the packet before"),
	register("strack", "STrack and spray.", section[STrack], strackScheme).drawn(3).selective().marked().netRTT().
		aims(strackTarget).bounded("max_cwnd", "max_cwnd").
		needs(Marks, "its window and its choice of paths follow marks"),
	register("spray", "", spraySection, sprayScheme).drawn(8).as("strack").selective().marked().netRTT().
		aims(strackTarget).bounded("max_cwnd", "max_cwnd").unless(checkPathCount).
		needs(Marks, "its window follows marks"),
	register("ccm", "CCM, in hosts and all switches.", section[CCM], ccmScheme).drawn(7).selective().marked().
		coordinated().around(innerOf, insideOfCCM),
	register("uec", "Ultra Ethernet.", section[UEC], uecScheme).drawn(5).selective().marked().netRTT().trims().
		bounded("max_cwnd", "cwnd").
		needs(Marks, "its window and its choice of paths follow marks").
		needs(Trimming, "its receivers learn of losses by the headers of trimmed packets"),
	register("wasm", "A module of your own.", section[Wasm], wasmScheme).inModule().needs(Lossless, goBackN),
}

// kind is a registered transport.
type kind struct {
	name   string
	about  string         // title, for the reference of the lab file
	in     string         // name of the lab's section that has its parameters
	own    func() Section // makes that section
	scheme func(*Spec) (scheme, error)
	decode func(data []byte) (cc.Params, error) // reads its parameters from JSON
	facts  Facts
	wants  []Need // its conditions, without those of its recovery

	// marks returns its default for ECN marking; nil: it has none. written is as in MarkingOf.
	marks func(written func(key string) (text string, ok bool)) Marking

	// target returns the queueing delay that a connection aims at; nil: it does not steer by delay
	target func(s *Spec, p cc.Params, l cc.Link) units.Time
	hungry bool  // see starves
	bound  bound // the keys of its windows; none: it has no window, or one that follows a rate

	// inner returns the transport inside this one, by parameters, and inside its name, by the keys
	// that a lab sets; nil: there is none.
	inner  func(cc.Params) (kind string, p cc.Params)
	inside func(written func(key string) (text string, ok bool)) string
}

// register returns a transport whose parameters have type P.
func register[P cc.Params](name, about string, section func() Section, build func(*Spec, P) scheme) kind {
	good := new(atomic.Pointer[P]) // the parameters checked last: most connections of a lab share them
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

// as puts the parameters of a transport into the section of another.
func (k kind) as(other string) kind {
	k.in = other
	return k
}

// drawn chooses the colour of its lines in charts.
func (k kind) drawn(color int) kind {
	k.facts.Color = color
	return k
}

// with has set change the scheme of every connection.
func (k kind) with(set func(*scheme)) kind {
	build := k.scheme
	k.scheme = func(s *Spec) (scheme, error) {
		sch, err := build(s)
		set(&sch)
		return sch, err
	}
	return k
}

// telemetry has data packets leave room for what switches write.
func (k kind) telemetry() kind {
	k.facts.Telemetry = true
	return k.with(func(s *scheme) { s.telemetry = true })
}

// rated has acknowledgements carry a base rate.
func (k kind) rated() kind {
	k.facts.BaseRate = true
	return k
}

// selective makes selective repeat the default recovery.
func (k kind) selective() kind {
	k.facts.Selective = true
	return k.with(func(s *scheme) { s.selective = true })
}

// marked makes packets ECN-capable.
func (k kind) marked() kind { return k.with(func(s *scheme) { s.ect = true }) }

// coordinated puts a tag into data packets, for switches that take part.
func (k kind) coordinated() kind {
	k.facts.Coordinated = true
	return k.with(func(s *scheme) { s.tagged = true })
}

// netRTT uses the base RTT of the whole network for every connection.
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

// inModule says that the scheme is in a file beside the lab.
func (k kind) inModule() kind {
	k.facts.Module = true
	return k
}

// trims lets switches trim data packets.
func (k kind) trims() kind {
	k.facts.Trimmable = true
	return k.with(func(s *scheme) { s.trims = true })
}

// plain is a controller at the sender and nothing else.
func plain[P any, C cc.Controller](sender func(P, cc.Link) C) func(*Spec, P) scheme {
	return func(_ *Spec, p P) scheme {
		return scheme{
			controller: func(l cc.Link) cc.Controller { return sender(p, l) },
			receiver:   meter,
			chooser:    onePath,
			either:     true, windowed: true,
			span: widest,
		}
	}
}

// Kinds returns the names of all transports.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name
	}
	return names
}

// SectionOf returns a new section of the named transport, the section's path in a lab below
// transport, and the transport's title. The section is nil for an unknown name.
func SectionOf(name string) (s Section, path, about string) {
	k, err := kindOf(name)
	if err != nil {
		return nil, name, ""
	}
	return k.own(), k.in, k.about
}

// kindOf returns a registered transport, or an error for an unknown name.
func kindOf(name string) (*kind, error) {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i], nil
		}
	}
	return nil, fmt.Errorf("unknown kind %q", name)
}

// Pathed is implemented by parameters of transports with several paths per connection, each a
// source port.
type Pathed interface{ SourcePorts() int }

// Paths returns the number of source ports of the connection's sender, from SrcPort.
func (s *Spec) Paths() int { return PathsOf(s.CC) }

// PathsOf returns the number of source ports of a connection with these parameters.
func PathsOf(p cc.Params) int {
	if p, ok := p.(Pathed); ok {
		return p.SourcePorts()
	}
	return 1
}

// UnmarshalJSON implements json.Unmarshaler. Kind decides the type of CC.
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

// pc4Scheme is PC4: rates from the receiver, and timeouts that allow for pacing.
func pc4Scheme(s *Spec, p pc4.Params) scheme {
	planned, mode := s.Initial, s.Collective
	return scheme{
		controller: func(l cc.Link) cc.Controller { return pc4.NewSender(p, l, planned) },
		receiver:   func(line units.Bandwidth) cc.Receiver { return pc4.NewReceiver(p, mode, line, planned) },
		chooser:    onePath,
		spaced:     true,
		either:     true, windowed: true,
		span: widest,
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
		span:       widest,
	}
}

// strackScheme is STrack: a window over adaptive paths.
func strackScheme(s *Spec, p strack.Params) scheme {
	sch := sprayScheme(s, p)
	sch.chooser = func(l cc.Link, _ uint64, window units.Bytes) path.Chooser {
		return path.NewSTrack(adaptive(p, l), l.Packet, window)
	}
	return sch
}

// adaptive returns how parameters choose among paths.
func adaptive(p strack.Params, l cc.Link) path.Adaptive {
	return path.Adaptive{Paths: p.Paths, Reuse: !p.FreshPaths, ClearAll: p.ClearAll, PerPacket: p.PathsPerPacket,
		Forget: units.Time(p.ForgetAfter * float64(l.NetBaseRTT()))}
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

// uecScheme is Ultra Ethernet: a window, credits or both, over paths of its choice.
func uecScheme(s *Spec, p uec.Params) scheme {
	id := s.ID
	sch := scheme{
		controller: func(l cc.Link) cc.Controller {
			if p.Windowed() {
				return uec.NewSender(p, l)
			}
			return uec.Unlimited{}
		},
		receiver: meter,
		chooser: func(_ cc.Link, seed uint64, _ units.Bytes) path.Chooser {
			seed ^= uint64(id+1) * splitmix.Gamma
			switch p.Paths {
			case uec.REPS:
				return path.NewREPS(p.Entropies, seed)
			case uec.Bitmap:
				return path.NewBitmap(p.Entropies, seed)
			case uec.Oblivious:
				return path.NewSpray(p.Entropies, seed)
			case uec.Mixed:
				return path.NewMixed(p.Entropies, seed)
			}
			return path.ECMP{}
		},
		windowed: true, paths: p.SourcePorts(),
		span: func(cc.Link) uint64 { return maxSpan / 2 }, // uet-htsim, uec.h: uecMaxInFlightPkts
	}
	if p.Credited() {
		sch.credit = &creditScheme{most: p.MaxCWND, each: p.PerCredit, rate: p.CreditRate, windowed: p.Windowed()}
	}
	return sch
}

// spanWindows is the number of windows that may follow a missing packet. A loss shows after one
// window (STrack, section 3.3.2), and its repair takes another; the rest is our margin.
const spanWindows = 4

// checkPathCount returns an error unless the number of paths is a power of two: spray XORs an
// index.
func checkPathCount(s *Spec) error {
	if n := s.Paths(); n&(n-1) != 0 {
		return fmt.Errorf("strack: %d paths are not a power of two", n)
	}
	return nil
}

// widest is the span of transports whose windows, if they have any, are far below it.
func widest(cc.Link) uint64 { return maxSpan }

// onePath returns the chooser of transports with one path.
func onePath(cc.Link, uint64, units.Bytes) path.Chooser { return path.ECMP{} }

func meter(units.Bandwidth) cc.Receiver { return oneWay{} }

// oneWay is the receiver of transports without one. It measures one-way delays for the records.
type oneWay struct{}

func (oneWay) OnData(_ units.Time, d cc.Data) cc.Feedback {
	return cc.Feedback{OneWay: d.At - d.SentAt - d.Baseline}
}
