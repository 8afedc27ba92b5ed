package node

import (
	"fmt"

	"weft/clocksync"
	"weft/clocksync/huygens"
	"weft/clocksync/servo"
	"weft/params"
	"weft/units"
)

// kinds is where everything that can keep clocks together is registered: what others need to know about it, and its parts.
var kinds = []kind{
	{name: Perfect, facts: Facts{Perfect: true}},
	{name: None},
	{
		name: PTP, facts: Facts{Title: "PTP", MaxRate: servo.DefaultLimits().MaxRate, Bridged: clocksync.EventPort, Pace: "interval"},
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
		boundary: func(p *Protocols) clocksync.Boundary { return p.PTP.Boundary },
		link:     func(p *Protocols) units.Time { return p.PTP.Interval },
	},
	{
		name: Huygens, facts: Facts{Title: "Huygens", WarmUp: huygens.WarmUp, Pace: "window"},
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
		fit:     func(p *Protocols, length, rtt units.Time) units.Time { return p.Huygens.Fit(length, rtt) },
		chosen: func(p *Protocols) []Chosen {
			return []Chosen{{"window", p.Huygens.Window, "the length of the run"}, {"pairs", p.Huygens.Pairs, "the window"}}
		},
	},
}

// kind is a registered kind of synchronization.
type kind struct {
	name  Sync
	facts Facts
	ports []uint16 // UDP ports that its messages come to

	build   func(*Config) (clocksync.Protocol, error)    // nil: nothing keeps clocks together
	check   func(*Config) error                          // of its parameters; nil: it has none
	rate    func(*Config) float64                        // messages per second that a node sends, about; nil: few
	probes  func(*Config) units.Bandwidth                // what they take of a node's link, each way; nil: little
	section func(_ *Protocols, peer bool) params.Section // its keys, where switches are peer-to-peer transparent clocks or not; nil: it has none

	fit    func(p *Protocols, length, rtt units.Time) (warm units.Time) // see Protocols.Fit; nil: nothing follows from the run
	chosen func(*Protocols) []Chosen                                    // what fit chooses

	serves   func(*Protocols, clocksync.Setup) bool // see Protocols.Serves; nil: no node does
	boundary func(*Protocols) clocksync.Boundary    // see Protocols.Boundary; nil: none
	link     func(*Protocols) units.Time            // see Protocols.LinkInterval; nil: switches take no part

	alone func(*Config) units.Time // how long it takes to show what it does; nil: usualAlone
}

// Facts are what the rest of Weft needs to know about a kind of synchronization, so that nothing else compares names.
type Facts struct {
	Title   string  // as it is written in a sentence
	Perfect bool    // clocks are right; there is nothing to measure and nothing that fails
	Talks   bool    // nodes send messages: a protocol keeps clocks together
	WarmUp  string  // how long a workload waits for it where a lab leaves that open; "": it does not
	Pace    string  // its key whose smaller value makes it measure more often; "": none
	MaxRate float64 // the greatest difference of frequencies that it corrects; 0: any
	Bridged uint16  // UDP port of messages that peer-to-peer transparent clocks take part in; 0: none
}

// Kinds lists everything that can keep clocks together.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = string(kinds[i].name)
	}
	return names
}

// of returns a kind; perfect clocks where there is no name.
func of(s Sync) (*kind, error) {
	for i := range kinds {
		if kinds[i].name == s || s == "" {
			return &kinds[i], nil
		}
	}
	return nil, fmt.Errorf("no protocol is called %q", s)
}

// FactsOf returns the facts of a kind; none for an unknown name.
func FactsOf(s Sync) Facts {
	k, err := of(s)
	if err != nil {
		return Facts{}
	}
	f := k.facts
	f.Talks = k.build != nil
	return f
}

// Ports are the UDP ports that messages of a kind of synchronization come to.
func Ports(s Sync) []uint16 {
	k, err := of(s)
	if err != nil {
		return nil
	}
	return k.ports
}

// Chosen is a parameter that follows from a run where a lab leaves it open.
type Chosen struct {
	Key   string
	Value any
	From  string // what it follows from
}

// Fit chooses what a lab leaves open of the parameters of s, for a run of the given length (0: unknown) in a network with the given
// base RTT. It returns how long a workload waits for clocks that are kept so; 0: it need not, or the lab chose for itself.
func (p *Protocols) Fit(s Sync, length, rtt units.Time) (warm units.Time) {
	if k, err := of(s); err == nil && k.fit != nil {
		return k.fit(p, length, rtt)
	}
	return 0
}

// Chosen lists the parameters of s that Fit chooses.
func (p *Protocols) Chosen(s Sync) []Chosen {
	if k, err := of(s); err == nil && k.chosen != nil {
		return k.chosen(p)
	}
	return nil
}

// Serves reports whether a node is one of several servers under s, each with a source of time of its own.
func (p *Protocols) Serves(s Sync, node clocksync.Setup) bool {
	k, err := of(s)
	return err == nil && k.serves != nil && k.serves(p, node)
}

// Boundary returns the boundary clocks under s, which its key boundary names.
func (p *Protocols) Boundary(s Sync) (b clocksync.Boundary) {
	if k, err := of(s); err == nil && k.boundary != nil {
		b = k.boundary(p)
	}
	return b
}

// LinkInterval is the interval at which peer-to-peer transparent clocks measure links under s; 0 without.
func (p *Protocols) LinkInterval(s Sync) units.Time {
	if k, err := of(s); err == nil && k.link != nil {
		return k.link(p)
	}
	return 0
}

// WarmUps says how long a workload waits for clocks, where a lab leaves that open.
func WarmUps() string {
	text := ""
	for i := range kinds {
		if w := kinds[i].facts.WarmUp; w != "" {
			text += w + ", "
		}
	}
	return text + "else none"
}

// protocol returns the node's side of what keeps its clock; nil where nothing does.
func (c *Config) protocol() (clocksync.Protocol, error) {
	k, err := of(c.Sync)
	if err != nil || k.build == nil {
		return nil, err
	}
	return k.build(c)
}

// CheckParams returns every parameter that the protocol cannot work with at a node of so many, joined.
func (c *Config) CheckParams() error {
	if k, err := of(c.Sync); err == nil && k.check != nil {
		return k.check(c)
	}
	return nil
}

// Rate is how many messages per second of true time a node sends, about.
func (c *Config) Rate() float64 {
	if k, err := of(c.Sync); err == nil && k.rate != nil && c.Setup.Nodes > 1 {
		return k.rate(c)
	}
	return 0
}

// Probes is what probes take of a node's link, each way; 0 without.
func (c *Config) Probes() units.Bandwidth {
	if k, err := of(c.Sync); err == nil && k.probes != nil {
		return k.probes(c)
	}
	return 0
}

// usualAlone is how long clocks are watched that nothing keeps together.
const usualAlone = 100 * units.Millisecond

// Alone is how long clocks are measured without a workload unless somebody says.
func (c *Config) Alone() units.Time {
	if k, err := of(c.Sync); err == nil && k.alone != nil {
		return k.alone(c)
	}
	return usualAlone
}
