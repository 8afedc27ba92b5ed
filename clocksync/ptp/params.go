package ptp

import (
	"errors"
	"fmt"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/params"
	"weft/units"
)

// Params are the parameters of PTP that a lab sets.
type Params struct {
	// Interval is the interval of Sync, sent or expected, and the mean interval of Delay_Req or
	// Pdelay_Req.
	Interval units.Time
	// AnnounceInterval is the interval of Announce as a master; 0: twice Interval.
	AnnounceInterval units.Time
	// PeerDelay selects the peer delay mechanism instead of the end-to-end one.
	PeerDelay bool
	// Filter and FilterSize select the filter of measured delays.
	Filter     servo.FilterKind
	FilterSize int
	// Servo selects the servo.
	Servo ServoKind
	// Gains are those of PI in steady state.
	Gains servo.Gains
	// Servers is the number of nodes, from the reference on, that have a source of time each. If
	// there are several, the other nodes vote over them.
	Servers int
	// Agree is VoterConfig.Agree.
	Agree units.Time
	// Backups is the number of nodes after the reference that may replace it.
	Backups int
	// Limits bounds steps of the servo. Config sets its rates.
	Limits servo.Limits
	// AsymmetryBound is added to the published bound: half of the largest unknown difference of the
	// two directions.
	AsymmetryBound units.Time

	Boundary clocksync.Boundary `json:"-"` // of a lab; Setup.Place follows from it
	Bridged  bool               `json:"-"` // switches are peer-to-peer transparent clocks
}

// Keys implements params.Section. With the gains of PI, p99 between the hosts of the quickstart is
// 10, 11 and 14 ns with kp of 0.2, 0.1 and 0.03, so smaller ones gain little (docs/adr/0075).
func (p *Params) Keys() []params.Key {
	const most = 1000 * units.Second
	return []params.Key{
		params.New("interval", params.Time(&p.Interval, units.Microsecond, most),
			"Between Syncs, and between delay requests.").
			Default("1ms", "ours: PTP's 1 s, scaled to a lab"),
		params.New("announce", params.Time(&p.AnnounceInterval, units.Nanosecond, most).Or("auto", 0),
			"Between Announces.").
			Default("auto", "linuxptp: two sync intervals"),
		params.New("delay", params.Choice(&p.PeerDelay, "end-to-end", "peer"),
			"Path delay mechanism. peer: per link with transparent: peer, else between host and master.").
			Following(func() (text, source string) {
				if p.Bridged {
					return "peer", "clocks.transparent: peer"
				}
				return "", ""
			}).Default("end-to-end", "IEEE 1588-2019, default profile"),
		params.New("filter", params.Option(&p.Filter, "median", "mean", "least"), "Of path delays.").
			Default("median", "linuxptp: delay_filter"),
		params.New("filter_length", params.Integer(&p.FilterSize, 1, 1000), "Samples in the filter.").
			Default("10", "linuxptp: delay_filter_length"),
		params.New("servo", params.Option(&p.Servo, "pi", "linreg"), "Proportional-integral, or linear regression.").
			Default("pi", "linuxptp: clock_servo"),
		params.New("kp", params.Decimal(&p.Gains.P, 0.0001, 2), "Proportional gain.").
			Default("0.2", "ours: docs/clocks.md"),
		// Without the integral an error of the frequency stays an error of the time.
		params.New("ki", params.Decimal(&p.Gains.I, 0.000001, 4), "Integral gain; 2 kp + ki < 4.").
			Default("0.02", "ours: docs/clocks.md"),
		params.New("servers", params.Integer(&p.Servers, 1, MaxServers),
			"Hosts, from the reference on, with a time source of their own; with several, hosts follow the majority.").
			Default("1", "ours"),
		// The default is what the transports here cannot resolve (PC4 paper, section III-B).
		params.New("agree", params.Time(&p.Agree, units.Picosecond, units.Second), "Servers this close agree.").
			Default("100ns", "ours: docs/adr/0078").
			Only(func() (bool, string) {
				if p.Servers == 0 {
					return false, "" // reported
				}
				return p.Servers > 1, "applies to several servers; expected ptp.servers of at least 2"
			}),
		params.New("boundary", params.Choice(&p.Boundary.Edge, "off", "edge"),
			"Hosts that are boundary clocks, each following the nearest one before it; "+
				"edge: the first host of every switch but the reference's.").
			OrHosts(&p.Boundary.Hosts).Default("off", "ours"),
		params.New("backups", params.Integer(&p.Backups, 0, 16), "Hosts after the reference that may replace it.").
			Following(func() (text, source string) {
				if p.Boundary.Some() {
					return "", ""
				}
				return "1", "ours"
			}).OrNone().
			Only(func() (bool, string) {
				return p.Servers < 2, "several servers have no backups: they are each other's"
			}),
		params.New("first_step", params.Time(&p.Limits.FirstStep, units.Nanosecond, most),
			"Initial offsets above this are stepped.").
			Default("1us", "ours: linuxptp's 20 us, for lab time"),
		params.New("step", params.Time(&p.Limits.Step, units.Nanosecond, most).Or("off", 0),
			"Later offsets above this are stepped.").
			Default("10us", "ours, for lab time"),
		params.New("asymmetry", params.Deviation(&p.AsymmetryBound, units.Millisecond),
			"Half the largest difference between the two directions; widens the stated bound.").Default("off", "ours"),
	}
}

// Rules implements params.Ruled.
func (p *Params) Rules(r params.Rules) {
	if p.Bridged && r.Good("delay") && !p.PeerDelay {
		r.Refuse("delay", "peer-to-peer transparent clocks do not forward Delay_Req; "+
			"expected peer, or clocks.transparent: true")
	}
	if g := p.Gains; r.Good("kp", "servo") && p.Servo == PI && 2*g.P+g.I >= 4 {
		r.Refuse("ki", "a loop with kp %v is not stable; expected less than %v, 4 - 2 kp", g.P, max(0, 4-2*g.P))
	}
	if p.Boundary.Some() && p.Servers > 1 {
		r.Refuse("boundary", "boundary clocks follow one reference; expected off with ptp.servers, or one server")
	}
	if p.Boundary.Some() && p.Servers < 2 && p.Backups > 0 {
		r.Refuse("backups", "boundary clocks have no backups: each continues to serve its followers; expected 0")
	}
}

// Config returns the configuration of a node's clock. The reference is the best master. The next
// Backups nodes, cyclically, may replace it in that order. All others are slaves of the best of
// them. A node with a place in a tree of boundary clocks has a port toward its master and one
// toward its followers instead.
func (p Params) Config(s clocksync.Setup) Config {
	n := clocksync.Node(s.Nodes)
	backups := max(0, min(p.Backups, s.Nodes-1))
	rank := int((s.Self - s.Reference + n) % max(n, 1))
	var peers []clocksync.Node
	for k := range n {
		peer := (s.Reference + k) % n
		if peer != s.Self && (rank <= backups || int(k) <= backups) {
			peers = append(peers, peer)
		}
	}
	if p.AnnounceInterval == 0 {
		p.AnnounceInterval = 2 * p.Interval
	}
	p.Limits.MaxRate = servo.DefaultLimits().MaxRate
	cfg := Config{
		Params: p, Bridge: s.Bridge,
		Ports:     [][]clocksync.Node{peers},
		SlaveOnly: rank > backups,
		DataSet: DataSet{
			Priority1: DefaultPriority, Class: DefaultClass, Accuracy: accuracyUnknown, Variance: varianceUnknown,
			Priority2: uint8(min(rank, 255)),
		},
		AnnounceTimeout: 3, SyncTimeout: 8,
		Gear:      true,
		StepAlarm: units.Nanosecond,
	}
	cfg.DataSet.Priority1 += uint8(min(rank, 255-DefaultPriority))
	cfg.LimitRate(s.Skew)
	if s.Place != nil {
		cfg.Ports, cfg.SlaveOnly = s.Place.Ports(s.Self), len(s.Place.Followers) == 0
	}
	return cfg
}

// Check returns all errors of the parameters and the configuration of a node, joined, or nil.
func (p *Params) Check(s clocksync.Setup) error {
	var err error
	if n := p.Servers; n > 1 && n >= s.Nodes {
		err = fmt.Errorf("%d servers of time among %d nodes leave none to follow them", n, s.Nodes)
	}
	cfg := p.Config(s)
	return errors.Join(err, cfg.Check(s))
}
