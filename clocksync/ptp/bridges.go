package ptp

import (
	"weft/clocksync"
	"weft/units"
)

// Bridges are the switches of a network as peer-to-peer transparent clocks, by the number of the
// switch. Engines put their messages into packets. Calls for different switches may come at the
// same time.
type Bridges []*Bridge

// NewBridges returns a started bridge for each switch. Switch s has links[s] links and the identity
// of node first + s. interval is that of Pdelay_Reqs, by lab time.
func NewBridges(first clocksync.Node, links []int, interval units.Time) (Bridges, error) {
	all := make(Bridges, len(links))
	for s := range links {
		b, err := NewBridge(IdentityOf(first+clocksync.Node(s)), links[s], interval)
		if err != nil {
			return nil, err
		}
		b.Start(0)
		all[s] = b
	}
	return all, nil
}

// Hear passes switch s a message for it, which came by the given link and waited in queues for the
// time queued. That is added to the correctionField of event messages. The bridge counts what it
// refuses.
func (b Bridges) Hear(now units.Time, s, link int, port uint16, message []byte, queued units.Time) {
	if port == clocksync.EventPort {
		clocksync.AddResidence(message, queued)
	}
	_ = b[s].Receive(now, link, message)
}

// Deadline returns when Advance must be called for switch s. It returns false if nothing is due.
func (b Bridges) Deadline(s int) (units.Time, bool) { return b[s].Deadline() }

// Advance handles what is due at switch s.
func (b Bridges) Advance(now units.Time, s int) { b[s].Advance(now) }

// Counters returns the sums of the counters of all switches.
func (b Bridges) Counters() (c clocksync.Counters) {
	for _, one := range b {
		c.Add(one.Counters())
	}
	return c
}
