package node

import (
	"cmp"
	"slices"

	"weft/clocksync"
	"weft/clocksync/ptp"
	"weft/clocksync/servo"
	"weft/params"
	"weft/units"
)

// PTPParams are the parameters of PTP that a lab may set. What is 0 or empty is as ptp.Default has it.
type PTPParams struct {
	Interval  units.Time     // between two Syncs, and two Delay_Reqs
	Announce  units.Time     // between two Announces; 0: twice Interval
	PeerDelay bool           // the peer delay mechanism
	Filter    string         // of the path delay: median, mean, least
	Length    int            // how many delays it is over
	Servo     string         // pi, linreg
	P, I      float64        // gains of pi, both per sample; P 0: 0.2 and 0.02
	Servers   int            // nodes from the reference on that have a source of time each; above 1 the others vote over them
	Agree     units.Time     // how far apart servers are that do not contradict each other; 0: ptp.DefaultAgree
	Backups   int            // nodes after the reference that may take its place; -1: none, 0: ptp.DefaultBackups
	FirstStep units.Time     // an offset above this is stepped over at first
	Step      units.Time     // and above this later; negative: never
	Bound     units.Time     // half of the most by which the two ways of a path may differ
	Bridge    clocksync.Node // the switch that the node is attached to, if it is a peer-to-peer transparent clock: see ptp.Config; with PeerDelay
	Place     *Place         `json:",omitempty"` // in a tree of boundary clocks; nil: everybody follows the reference

	Boundary Boundary `json:"-"` // of a lab, which Place follows from
	Bridged  bool     `json:"-"` // of a lab: its switches are peer-to-peer transparent clocks
}

// Boundary says which hosts are boundary clocks.
type Boundary struct {
	Edge  bool     // the first host behind every switch but the reference's
	Hosts []string // by name; each follows the nearest of the reference and those before it
}

// Some tells whether any host is to be one.
func (b *Boundary) Some() bool { return b.Edge || len(b.Hosts) > 0 }

// Keys implements params.Section.
func (p *PTPParams) Keys() []params.Key {
	const most = 1000 * units.Second
	return []params.Key{
		params.New("interval", params.Time(&p.Interval, units.Microsecond, most), "Between Syncs, and between delay requests.").
			Default("1ms", "ours: PTP's second, as short as a lab"),
		params.New("announce", params.Time(&p.Announce, units.Nanosecond, most).Or("auto", 0), "Between Announces.").
			Default("auto", "linuxptp: two sync intervals"),
		params.New("delay", params.Choice(&p.PeerDelay, "end-to-end", "peer"),
			"Path delay mechanism. peer: per link with transparent: peer, else between host and master.").
			Following(func() (text, source string) {
				if p.Bridged {
					return "peer", "clocks.transparent: peer"
				}
				return "", ""
			}).Default("end-to-end", "IEEE 1588-2019, default profile"),
		params.New("filter", params.Word(&p.Filter, "median", "mean", "least"), "Of path delays.").Default("median", "linuxptp: delay_filter"),
		params.New("filter_length", params.Integer(&p.Length, 1, 1000), "Samples in the filter.").Default("10", "linuxptp: delay_filter_length"),
		params.New("servo", params.Word(&p.Servo, "pi", "linreg"), "Proportional-integral, or linear regression.").Default("pi", "linuxptp: clock_servo"),
		params.New("kp", params.Decimal(&p.P, 0.0001, 2), "Proportional gain.").Default("0.2", "ours: docs/clocks.md"),
		// Without the integral an error of the frequency stays an error of the time.
		params.New("ki", params.Decimal(&p.I, 0.000001, 4), "Integral gain; 2 kp + ki < 4.").Default("0.02", "ours: docs/clocks.md"),
		params.New("servers", params.Integer(&p.Servers, 1, ptp.MostServers),
			"Hosts, from the reference on, with a time source of their own; with several, the majority is believed.").Default("1", "ours"),
		params.New("agree", params.Time(&p.Agree, units.Picosecond, units.Second), "Servers this close agree.").
			Default("100ns", "ours: docs/adr/0078").
			Only(func() (bool, string) {
				if p.Servers == 0 {
					return false, "" // reported
				}
				return p.Servers > 1, "servers agree where there are several: ptp.servers from 2 on"
			}),
		params.New("boundary", params.Choice(&p.Boundary.Edge, "off", "edge"),
			"Hosts that are boundary clocks, each following the nearest one before it; edge: the first host of every switch but the reference's.").
			OrHosts(&p.Boundary.Hosts).Default("off", "ours"),
		params.New("backups", orNone{params.Integer(&p.Backups, 0, 16), &p.Backups}, "Hosts after the reference that may replace it.").
			Following(func() (text, source string) {
				if p.Boundary.Some() {
					return "", ""
				}
				return "1", "ours"
			}).OrNone().
			Only(func() (bool, string) {
				return p.Servers < 2, "several servers have no backups: they are each other's"
			}),
		params.New("first_step", params.Time(&p.FirstStep, units.Nanosecond, most), "Initial offsets above this are stepped.").
			Default("1us", "ours: linuxptp's 20 us, for lab time"),
		params.New("step", params.Time(&p.Step, units.Nanosecond, most).Or("off", -1), "Later offsets above this are stepped.").
			Default("10us", "ours, for lab time"),
		params.New("asymmetry", params.Deviation(&p.Bound, units.Millisecond), "Half the largest difference between the two directions; widens the stated bound.").
			Default("off", "ours"),
	}
}

// orNone is a number of backups, of which 0 is -1.
type orNone struct {
	params.Of[int]
	to *int
}

// Set implements params.Value.
func (n orNone) Set(text string, quoted bool) (string, error) {
	shown, err := n.Of.Set(text, quoted)
	if err == nil && *n.to == 0 {
		*n.to = -1
	}
	return shown, err
}

// Rules refuses what contradicts itself.
func (p *PTPParams) Rules(r params.Rules) {
	if p.Bridged && r.Good("delay") && !p.PeerDelay {
		r.Refuse("delay", "peer-to-peer transparent clocks pass no Delay_Req on; expected peer, or clocks.transparent: true")
	}
	if r.Good("kp") && p.Servo == "pi" && 2*p.P+p.I >= 4 {
		r.Refuse("ki", "a loop with kp %v is not stable; expected less than %v, 4 - 2 kp", p.P, max(0, 4-2*p.P))
	}
	if p.Boundary.Some() && p.Servers > 1 {
		r.Refuse("boundary", "boundary clocks follow one reference; expected off with ptp.servers, or one server")
	}
	if p.Boundary.Some() && p.Servers < 2 && p.Backups > 0 {
		r.Refuse("backups", "boundary clocks have no backups: each goes on for those behind it; expected 0")
	}
}

// Place is where a node is in a tree of boundary clocks. Who has both a master and followers is one. There are no backups.
type Place struct {
	Master    clocksync.Node   // whom it asks for the time; itself: the reference
	Followers []clocksync.Node // who ask it
}

// ports are those of the clock of node self: one toward its master, one toward all who follow it.
func (p *Place) ports(self clocksync.Node) (ports [][]clocksync.Node) {
	if p.Master != self {
		ports = append(ports, []clocksync.Node{p.Master})
	}
	if len(p.Followers) > 0 {
		ports = append(ports, p.Followers)
	}
	return ports
}

// usualGains are those of PI unless a lab has its own, once it is out of gear (docs/adr/0075): between the hosts of the
// quickstart p99 is 10, 11 and 14 ns with P of 0.2, 0.1 and 0.03, so that little is to be had below.
var usualGains = servo.Gains{P: 0.2, I: 0.02}

// config is the configuration of a node's clock.
func (p *PTPParams) config(s clocksync.Setup) ptp.Config {
	backups := cmp.Or(p.Backups, ptp.DefaultBackups)
	cfg := ptp.Default(s, backups)
	if p.Interval > 0 {
		cfg.SyncInterval, cfg.DelayInterval, cfg.AnnounceInterval = p.Interval, p.Interval, 2*p.Interval
	}
	if p.Announce > 0 {
		cfg.AnnounceInterval = p.Announce
	}
	cfg.PeerDelay, cfg.Bridge = p.PeerDelay, p.Bridge
	switch p.Filter {
	case "mean":
		cfg.Filter = servo.Mean
	case "least":
		cfg.Filter = servo.Least
	}
	cfg.FilterSize = cmp.Or(p.Length, cfg.FilterSize)
	if p.Servo == "linreg" {
		cfg.Servo = ptp.LinReg
	}
	cfg.Gains = usualGains
	if p.P > 0 {
		cfg.Gains = servo.Gains{P: p.P, I: p.I}
	}
	if p.FirstStep > 0 {
		cfg.Limits.FirstStep = p.FirstStep
	}
	switch {
	case p.Step > 0:
		cfg.Limits.Step = p.Step
	case p.Step < 0:
		cfg.Limits.Step = 0
	}
	cfg.AsymmetryBound = p.Bound
	cfg.LimitRate(s.Skew)
	if p.Place != nil {
		cfg.Ports, cfg.SlaveOnly = p.Place.ports(s.Self), len(p.Place.Followers) == 0
	}
	return cfg
}

// Server says which server of time a node is, from 0, or -1.
func (p *PTPParams) Server(s clocksync.Setup) int {
	rank := (int(s.Self) - int(s.Reference) + s.Nodes) % s.Nodes
	if rank >= p.Servers {
		return -1
	}
	return rank
}

// clock makes a node's clock: an ordinary one, or with several servers one of them or a voter over them.
func (p *PTPParams) clock(s clocksync.Setup) (clocksync.Protocol, error) {
	if p.Servers < 2 {
		return ptp.New(s, p.config(s))
	}
	if rank := p.Server(s); rank >= 0 {
		own, cfg := p.domain(s, rank)
		return ptp.New(own, cfg)
	}
	setups, servers := make([]clocksync.Setup, p.Servers), make([]ptp.Config, p.Servers)
	for i := range servers {
		setups[i], servers[i] = p.domain(s, i)
	}
	return ptp.NewVoter(setups, ptp.VoterConfig{Servers: servers, Agree: cmp.Or(p.Agree, ptp.DefaultAgree)})
}

// domain is what a node is in the domain of a server: the server, with everybody but the other servers, or a slave of it.
func (p *PTPParams) domain(s clocksync.Setup, rank int) (clocksync.Setup, ptp.Config) {
	server := func(i int) clocksync.Node { return clocksync.Node((int(s.Reference) + i) % s.Nodes) }
	all := s.Reference
	s.Reference = server(rank)
	s.Seed += uint64(rank) << 32 // so that a node does not ask all servers at one instant
	one := *p
	one.Backups = -1
	cfg := one.config(s)
	cfg.Domain = uint8(rank)
	cfg.Ports[0] = slices.DeleteFunc(cfg.Ports[0], func(n clocksync.Node) bool {
		return s.Self == s.Reference && (int(n)-int(all)+s.Nodes)%s.Nodes < p.Servers
	})
	return s, cfg
}

// rate is how many messages per second a node sends, about.
func (p *PTPParams) rate(s clocksync.Setup) float64 {
	interval := cmp.Or(p.Interval, units.Millisecond).Seconds()
	if p.Bridge != 0 {
		return (3 + 2*float64(p.followers(s))) / interval // Pdelay_Req, Pdelay_Resp and its Follow_Up; Sync and Follow_Up
	}
	if n := p.Servers; n > 1 {
		if p.Server(s) < 0 {
			return float64(n) / interval
		}
		return 3 * float64(s.Nodes-n) / interval
	}
	if p.Place != nil {
		return (1 + 3*float64(len(p.Place.Followers))) / interval
	}
	if s.Self == s.Reference {
		return 3 * float64(s.Nodes-1) / interval // Sync, Follow_Up, Delay_Resp
	}
	return 1 / interval
}

// followers is how many nodes ask this one for the time.
func (p *PTPParams) followers(s clocksync.Setup) int {
	switch {
	case p.Place != nil:
		return len(p.Place.Followers)
	case p.Servers > 1 && p.Server(s) >= 0:
		return s.Nodes - p.Servers
	case p.Servers <= 1 && s.Self == s.Reference:
		return s.Nodes - 1
	}
	return 0
}
