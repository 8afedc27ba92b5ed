package node

import (
	"fmt"
	"slices"

	"weft/clocksync"
	"weft/clocksync/huygens"
	"weft/clocksync/servo"
	"weft/internal/plural"
	"weft/params"
	"weft/units"
)

// kinds registers every kind of synchronization: the facts about it, and its functions.
var kinds = []kind{
	{name: Perfect, facts: Facts{Perfect: true}},
	{name: None},
	{
		name: PTP, facts: Facts{Title: "PTP", MaxRate: servo.DefaultLimits().MaxRate, Bridged: clocksync.EventPort,
			Pace: "interval", Lighter: "a longer clocks.ptp.interval"},
		ports: []uint16{clocksync.EventPort, clocksync.GeneralPort},
		build: func(c *Config) (clocksync.Protocol, error) { return c.PTP.Clock(c.Setup) },
		check: func(c *Config) error { return c.PTP.Check(c.Setup) },
		rate:  func(c *Config) float64 { return c.PTP.Rate(c.Setup) },
		alone: func(c *Config) units.Time { return 100 * c.PTP.Interval },

		section: func(p *Protocols, peer bool) params.Section {
			p.PTP.Bridged = peer
			return &p.PTP
		},
		serves:   func(p *Protocols, s clocksync.Setup) bool { return p.PTP.Serves(s) },
		followed: func(p *Protocols, s clocksync.Setup) bool { return p.PTP.Followed(s) },
		boundary: func(p *Protocols) clocksync.Boundary { return p.PTP.Boundary },
		link:     func(p *Protocols) units.Time { return p.PTP.Interval },
		pace:     func(p *Protocols) units.Time { return p.PTP.Interval },
	},
	{
		name: Huygens, facts: Facts{Title: "Huygens", WarmUp: huygens.WarmUp, Pace: "window",
			Lighter: "fewer clocks.huygens.pairs or neighbours (degree), or a longer window"},
		ports: []uint16{clocksync.ProbePort},
		build: func(c *Config) (clocksync.Protocol, error) {
			return huygens.New(c.Setup, c.Huygens.Config(c.Setup))
		},
		check: func(c *Config) error { h := c.Huygens.Config(c.Setup); return h.Check(c.Setup) },
		rate:  func(c *Config) float64 { h := c.Huygens.Config(c.Setup); return h.Rate(c.Setup.Nodes) },
		probes: func(c *Config) units.Bandwidth {
			h := c.Huygens.Config(c.Setup)
			return units.Bandwidth(8 * float64(SizeOf(huygens.ProbeSize)) * h.Probes(c.Setup.Nodes))
		},
		alone: func(c *Config) units.Time { h := c.Huygens.Config(c.Setup); return 10 * h.Window },

		section: func(p *Protocols, _ bool) params.Section { return &p.Huygens },
		pace:    func(p *Protocols) units.Time { return p.Huygens.Window },
		fit:     func(p *Protocols, length, rtt units.Time) units.Time { return p.Huygens.Fit(length, rtt) },
		chosen: func(p *Protocols) []Chosen {
			return []Chosen{{"window", p.Huygens.Window, "the length of the run"},
				{"pairs", p.Huygens.Pairs, "the window"}}
		},
	},
}

// kind is a registered kind of synchronization.
type kind struct {
	name  Sync
	facts Facts
	ports []uint16 // UDP ports that its messages come to

	// Functions that are nil have the meaning after the semicolon.
	build   func(*Config) (clocksync.Protocol, error)    // makes a node's protocol; none
	check   func(*Config) error                          // checks its parameters; there are none
	rate    func(*Config) float64                        // approximate messages per second of a node; few
	probes  func(*Config) units.Bandwidth                // rate of probes on a node's link, per direction; little
	section func(_ *Protocols, peer bool) params.Section // its keys; none. peer is as in Protocols.Keys

	// fit is Protocols.Fit, and chosen returns its choices; nothing is chosen.
	fit    func(p *Protocols, length, rtt units.Time) (warm units.Time)
	chosen func(*Protocols) []Chosen

	serves   func(*Protocols, clocksync.Setup) bool // Protocols.Serves; false
	followed func(*Protocols, clocksync.Setup) bool // Protocols.Followed; true
	boundary func(*Protocols) clocksync.Boundary    // Protocols.Boundary; none
	link     func(*Protocols) units.Time            // Protocols.LinkInterval; 0
	pace     func(*Protocols) units.Time            // Protocols.Pace; 0

	alone func(*Config) units.Time // Config.Alone; defaultAlone
}

// Facts are the properties of a kind of synchronization that the rest of Weft needs, so that no
// other package compares names.
type Facts struct {
	Title   string  // its name in a sentence
	Perfect bool    // clocks are right: there is nothing to measure, and nothing fails
	Talks   bool    // nodes send messages
	WarmUp  string  // default wait of a workload for synchronized clocks; "": none
	Pace    string  // key with the interval of its measurements; "": none
	MaxRate float64 // largest difference of frequencies that it corrects, relative; 0: any
	Lighter string  // change of its parameters that sends fewer messages; "": none
	Bridged uint16  // UDP port of messages that peer-to-peer transparent clocks change; 0: none
}

// AnyRate reports whether the kind corrects clocks however far their frequencies differ.
func (f Facts) AnyRate() bool { return f.Talks && f.MaxRate == 0 }

// Kinds returns the names of all kinds of synchronization.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = string(kinds[i].name)
	}
	return names
}

// With returns the names of the kinds whose facts pass a test, for messages: "none, ptp or
// huygens".
func With(is func(Facts) bool) string {
	return plural.Or(slices.DeleteFunc(Kinds(), func(name string) bool { return !is(FactsOf(Sync(name))) }))
}

// of returns a kind; an empty name means perfect clocks.
func of(s Sync) (*kind, error) {
	for i := range kinds {
		if kinds[i].name == s || s == "" {
			return &kinds[i], nil
		}
	}
	return nil, fmt.Errorf("unknown kind of synchronization %q", s)
}

// FactsOf returns the facts of a kind; the zero value for an unknown name.
func FactsOf(s Sync) Facts {
	k, err := of(s)
	if err != nil {
		return Facts{}
	}
	f := k.facts
	f.Talks = k.build != nil
	return f
}

// Ports returns the UDP ports of a kind's messages.
func Ports(s Sync) []uint16 {
	k, err := of(s)
	if err != nil {
		return nil
	}
	return k.ports
}

// Chosen is a parameter that the lab leaves open and Fit chooses.
type Chosen struct {
	Key   string
	Value any
	From  string // what the choice depends on
}

// Fit chooses the open parameters of s, for a run of the given length (0: unknown) in a network
// with the given base RTT. It returns how long a workload must wait for clocks with chosen
// parameters; 0: it need not, or the lab sets the parameters.
func (p *Protocols) Fit(s Sync, length, rtt units.Time) (warm units.Time) {
	if k, err := of(s); err == nil && k.fit != nil {
		return k.fit(p, length, rtt)
	}
	return 0
}

// Chosen returns the parameters of s that Fit chooses.
func (p *Protocols) Chosen(s Sync) []Chosen {
	if k, err := of(s); err == nil && k.chosen != nil {
		return k.chosen(p)
	}
	return nil
}

// Serves reports whether a node is one of several servers under s, each with its own source of
// time.
func (p *Protocols) Serves(s Sync, node clocksync.Setup) bool {
	k, err := of(s)
	return err == nil && k.serves != nil && k.serves(p, node)
}

// Followed reports whether other nodes may follow the time that a node sends.
func (p *Protocols) Followed(s Sync, node clocksync.Setup) bool {
	k, err := of(s)
	return err != nil || k.followed == nil || k.followed(p, node)
}

// Boundary returns the boundary clocks under s, from the key boundary.
func (p *Protocols) Boundary(s Sync) (b clocksync.Boundary) {
	if k, err := of(s); err == nil && k.boundary != nil {
		b = k.boundary(p)
	}
	return b
}

// LinkInterval returns the interval at which peer-to-peer transparent clocks measure links under s;
// 0 if switches take no part.
func (p *Protocols) LinkInterval(s Sync) units.Time {
	if k, err := of(s); err == nil && k.link != nil {
		return k.link(p)
	}
	return 0
}

// Pace returns the interval at which s corrects clocks, that of the key Facts.Pace; 0 if it never
// does.
func (p *Protocols) Pace(s Sync) units.Time {
	if k, err := of(s); err == nil && k.pace != nil {
		return k.pace(p)
	}
	return 0
}

// WarmUps describes the default wait of a workload for clocks, for the reference of the lab file.
func WarmUps() string {
	text := ""
	for i := range kinds {
		if w := kinds[i].facts.WarmUp; w != "" {
			text += w + ", "
		}
	}
	return text + "else none"
}

// protocol returns a new protocol for the node; nil if Sync has none.
func (c *Config) protocol() (clocksync.Protocol, error) {
	k, err := of(c.Sync)
	if err != nil || k.build == nil {
		return nil, err
	}
	return k.build(c)
}

// CheckParams returns all errors of the protocol's parameters for this node, joined.
func (c *Config) CheckParams() error {
	if k, err := of(c.Sync); err == nil && k.check != nil {
		return k.check(c)
	}
	return nil
}

// Rate returns about how many messages the node sends per second of true time.
func (c *Config) Rate() float64 {
	if k, err := of(c.Sync); err == nil && k.rate != nil && c.Setup.Nodes > 1 {
		return k.rate(c)
	}
	return 0
}

// Probes returns the rate of probes on the node's link, in each direction; 0 without probes.
func (c *Config) Probes() units.Bandwidth {
	if k, err := of(c.Sync); err == nil && k.probes != nil {
		return k.probes(c)
	}
	return 0
}

// defaultAlone is the value of Config.Alone without a protocol. Ours.
const defaultAlone = 100 * units.Millisecond

// Alone returns the default duration of a run without a workload: long enough to show what Sync
// does.
func (c *Config) Alone() units.Time {
	if k, err := of(c.Sync); err == nil && k.alone != nil {
		return k.alone(c)
	}
	return defaultAlone
}
