package lab

import (
	clocks "weft/clocksync/node"
	"weft/clocksync/ptp"
	"weft/units"
)

// Bounds of the parameters of protocols.
const (
	maxSyncInterval = 1000 * units.Second
	maxStep         = 1000 * units.Second
	leastKI         = 0.000001 // without the integral an error of the frequency stays an error of the time
	mostBoundary    = 1 << 14
)

var (
	delayFilters    = choice{built: []string{"median", "mean", "least"}}
	servos          = choice{built: []string{"pi", "linreg"}}
	delayMechanisms = choice{built: []string{"end-to-end", "peer"}}
	boundaries      = choice{built: []string{"off", "edge"}}
)

// ptp reads clocks.ptp, of a lab whose switches may be peer-to-peer transparent clocks. Its defaults are those of package ptp.
func (s *section) ptp(peerToPeer bool) (clocks.PTPParams, Boundary) {
	defer s.close()
	var p clocks.PTPParams
	from := "ours: PTP's second, as short as a lab"
	p.Interval, _ = quantity(s.field("interval").or("1ms", from), units.ParseTime, units.Microsecond, maxSyncInterval)
	p.Announce = s.field("announce").or("auto", "linuxptp: two sync intervals").autoTime(maxSyncInterval)
	delay, usual := s.field("delay"), "end-to-end"
	source := "IEEE 1588-2019, default profile"
	if peerToPeer {
		usual, source = "peer", "clocks.transparent: peer"
	}
	delay = delay.or(usual, source)
	mechanism, ok := delay.enum(delayMechanisms)
	if p.PeerDelay = mechanism == "peer"; peerToPeer && ok && !p.PeerDelay {
		delay.problem("peer-to-peer transparent clocks pass no Delay_Req on; expected peer, or clocks.transparent: true")
	}
	p.Filter, _ = s.field("filter").or("median", "linuxptp: delay_filter").enum(delayFilters)
	p.Length = s.field("filter_length").or("10", "linuxptp: delay_filter_length").integer(1, 1000)
	p.Servo, _ = s.field("servo").or("pi", "linuxptp: clock_servo").enum(servos)
	p.P, _ = s.field("kp").or("0.2", "ours: docs/clocks.md").decimal(0.0001, 2)
	ki := s.field("ki").or("0.02", "ours: docs/clocks.md")
	p.I, _ = ki.decimal(leastKI, 4)
	if p.Servo == "pi" && 2*p.P+p.I >= 4 {
		ki.problem("a loop with kp %v is not stable; expected less than %v, 4 - 2 kp", p.P, max(0, 4-2*p.P))
	}
	p.Servers = s.field("servers").or("1", "ours").integer(1, ptp.MostServers)
	if f := s.field("agree"); p.Servers > 1 {
		p.Agree, _ = quantity(f.or("100ns", "ours: docs/adr/0078"), units.ParseTime, units.Picosecond, units.Second)
	} else if f.n != nil {
		f.problem("servers agree where there are several: ptp.servers from 2 on")
	}
	boundary := s.field("boundary").or("off", "ours")
	b := boundary.boundary()
	if b.Some() && p.Servers > 1 {
		boundary.problem("boundary clocks follow one reference; expected off with ptp.servers, or one server")
	}
	if f := s.field("backups"); p.Servers > 1 {
		if p.Backups = -1; f.n != nil {
			f.problem("several servers have no backups: they are each other's")
		}
	} else if b.Some() {
		if p.Backups = -1; f.n != nil && f.integer(0, 16) > 0 {
			f.problem("boundary clocks have no backups: each goes on for those behind it; expected 0")
		}
	} else if p.Backups = f.or("1", "ours").integer(0, 16); p.Backups == 0 {
		p.Backups = -1
	}
	p.FirstStep, _ = quantity(s.field("first_step").or("1us", "ours: linuxptp's 20 us, for lab time"), units.ParseTime, units.Nanosecond, maxStep)
	p.Step = unless(s.field("step").or("10us", "ours, for lab time"), "off", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, units.Nanosecond, maxStep)
	})
	if p.Step == 0 {
		p.Step = -1
	}
	p.Bound = s.field("asymmetry").or("off", "ours").plusMinus(maxJitter)
	return p, b
}

// Boundary says which hosts are boundary clocks.
type Boundary struct {
	Edge  bool     // the first host behind every switch but the reference's
	Hosts []string // by name; each follows the nearest of the reference and those before it
}

// Some tells whether any host is to be one.
func (b *Boundary) Some() bool { return b.Edge || len(b.Hosts) > 0 }

// boundary reads off, edge or a list of hosts. Who is a host is for the topology to say.
func (f field) boundary() Boundary {
	var b Boundary
	if f.n == nil {
		return b
	}
	if f.n.kind == scalar {
		word, _ := f.enum(boundaries)
		b.Edge = word == "edge"
		return b
	}
	for _, item := range f.items(mostBoundary) {
		if name, ok := item.enumLike("the name of a host"); ok {
			b.Hosts = append(b.Hosts, name)
		}
	}
	return b
}

// autoTime reads a time, or auto, which is 0.
func (f field) autoTime(most units.Time) units.Time {
	return unless(f, "auto", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, units.Nanosecond, most)
	})
}

// huygens reads clocks.huygens. Its defaults are those of package huygens.
func (s *section) huygens() clocks.HuygensParams {
	defer s.close()
	var p clocks.HuygensParams
	p.Degree = s.field("degree").or("10", "Huygens: 10 to 20").integer(1, 1000)
	p.Window = unless(s.field("window").or("auto", "ours: a third of the run, at most 20 ms: Huygens' 2 s, as short as a lab"), "auto", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, 10*units.Microsecond, 100*units.Second)
	})
	p.Pairs = unless(s.field("pairs").or("auto", "ours: 25 per ms, at least 32"), "auto", func(f field) (int, bool) { return f.integer(1, 1<<16), true })
	p.Spacing = s.field("spacing").or("auto", "ours: 200 ns, or three times filter").autoTime(units.Millisecond)
	p.Epsilon = s.field("filter").or("auto", "ours: 50 ns, or four times jitter").autoTime(units.Millisecond)
	p.Share, _ = s.field("share").or("10%", "ours").share(0.001, 1)
	p.Prior = s.field("prior").or("50ppb", "ours").ratio("±", "", maxSkew, "50ppb")
	p.Coordinators = s.field("coordinators").or("2", "ours: the reference and one in its place").integer(1, 2)
	p.Step = unless(s.field("step").or("10us", "ours"), "off", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, units.Nanosecond, maxStep)
	})
	if p.Step == 0 {
		p.Step = -1
	}
	p.Bound = s.field("asymmetry").or("off", "ours").plusMinus(maxJitter)
	return p
}
