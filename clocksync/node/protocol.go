package node

import (
	"cmp"
	"fmt"
	"slices"

	"weft/clocksync"
	"weft/clocksync/huygens"
	"weft/clocksync/ptp"
	"weft/clocksync/servo"
	"weft/units"
)

// Ports are the UDP ports that messages of a kind of synchronization come to.
func Ports(s Sync) []uint16 {
	switch s {
	case PTP:
		return []uint16{clocksync.EventPort, clocksync.GeneralPort}
	case Huygens:
		return []uint16{clocksync.ProbePort}
	}
	return nil
}

// protocol returns the node's side of what keeps its clock; nil where nothing does.
func (c *Config) protocol() (clocksync.Protocol, error) {
	switch c.Sync {
	case Perfect, None, "":
		return nil, nil
	case PTP:
		return c.PTP.clock(c.Setup)
	case Huygens:
		return huygens.New(c.Setup, c.Huygens.config(c.Setup))
	}
	return nil, fmt.Errorf("no protocol is called %q", c.Sync)
}

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

// HuygensParams are the parameters of Huygens that a lab may set. What is 0 is as huygens.Default has it.
type HuygensParams struct {
	Degree       int        // neighbours of each node in the mesh
	Window       units.Time // after which the mesh is solved
	Pairs        int        // coded probes per window, edge and direction
	Spacing      units.Time // of the two packets of a pair
	Epsilon      units.Time // change of a pair's gap from which on it is impure
	Share        float64    // of the points that a fit rests on
	Prior        float64    // how far a slope may lie from what the last windows say
	Coordinators int        // nodes that solve, from the reference on
	Step         units.Time // a change above this is a step; negative: none is
	Bound        units.Time // half of the most by which the two ways of a path may differ
}

// config is the configuration of a node's agent.
func (p *HuygensParams) config(s clocksync.Setup) huygens.Config {
	cfg := huygens.Default(s)
	cfg.Degree = cmp.Or(p.Degree, cfg.Degree)
	cfg.Window = cmp.Or(p.Window, cfg.Window)
	cfg.Pairs = cmp.Or(p.Pairs, cfg.Pairs)
	if p.Epsilon > 0 {
		cfg.Epsilon = p.Epsilon
		cfg.Spacing = max(cfg.Spacing, 3*p.Epsilon)
	}
	cfg.Spacing = cmp.Or(p.Spacing, cfg.Spacing)
	cfg.Share = cmp.Or(p.Share, cfg.Share)
	cfg.FewShare = min(cfg.FewShare, cfg.Share)
	cfg.SlopeTrust = cmp.Or(p.Prior, cfg.SlopeTrust)
	cfg.Coordinators = cmp.Or(p.Coordinators, cfg.Coordinators)
	switch {
	case p.Step > 0:
		cfg.StepLimit = p.Step
	case p.Step < 0:
		cfg.StepLimit = 0
	}
	cfg.AsymmetryBound = p.Bound
	return cfg
}

// CheckParams reports parameters that the protocol cannot work with at a node of so many.
func (c *Config) CheckParams() error {
	switch c.Sync {
	case PTP:
		if n := c.PTP.Servers; n > 1 && n >= c.Setup.Nodes {
			return fmt.Errorf("%d servers of time among %d nodes leave none to follow them", n, c.Setup.Nodes)
		}
		cfg := c.PTP.config(c.Setup)
		return cfg.Check(c.Setup)
	case Huygens:
		cfg := c.Huygens.config(c.Setup)
		return cfg.Check(c.Setup)
	}
	return nil
}

// Rate is how many messages per second of true time a node sends, about.
func (c *Config) Rate() float64 {
	if c.Setup.Nodes < 2 {
		return 0
	}
	switch c.Sync {
	case Huygens:
		h := c.Huygens.config(c.Setup)
		return 2 * float64(h.Pairs*min(h.Degree, c.Setup.Nodes-1)) / h.Window.Seconds()
	case PTP:
	default:
		return 0
	}
	interval := cmp.Or(c.PTP.Interval, units.Millisecond).Seconds()
	if c.PTP.Bridge != 0 {
		return (3 + 2*float64(c.followers())) / interval // Pdelay_Req, Pdelay_Resp and its Follow_Up; Sync and Follow_Up
	}
	if n := c.PTP.Servers; n > 1 {
		if c.PTP.Server(c.Setup) < 0 {
			return float64(n) / interval
		}
		return 3 * float64(c.Setup.Nodes-n) / interval
	}
	if p := c.PTP.Place; p != nil {
		return (1 + 3*float64(len(p.Followers))) / interval
	}
	if c.Setup.Self == c.Setup.Reference {
		return 3 * float64(c.Setup.Nodes-1) / interval // Sync, Follow_Up, Delay_Resp
	}
	return 1 / interval
}

// Probes is what Huygens' probes take of a node's link, each way; 0 without.
func (c *Config) Probes() units.Bandwidth {
	if c.Sync != Huygens {
		return 0
	}
	h := c.Huygens.config(c.Setup)
	edges := min(max(h.Degree, 2), c.Setup.Nodes-1)
	return units.Bandwidth(8 * float64(SizeOf(huygens.ProbeSize)) * float64(2*h.Pairs*edges) / h.Window.Seconds())
}

// followers is how many nodes ask this one for the time.
func (c *Config) followers() int {
	p := &c.PTP
	switch {
	case p.Place != nil:
		return len(p.Place.Followers)
	case p.Servers > 1 && p.Server(c.Setup) >= 0:
		return c.Setup.Nodes - p.Servers
	case p.Servers <= 1 && c.Setup.Self == c.Setup.Reference:
		return c.Setup.Nodes - 1
	}
	return 0
}
