package ptp

import (
	"weft/clocksync"
	"weft/units"
)

// Bridges are the switches of a network as peer-to-peer transparent clocks, by the number of the
// switch. Engines put their messages into packets. Calls for different switches may come at the
// same time.
type Bridges []*Bridge

// NewBridges returns a bridge that has started for each switch, given the number of links of each
// and the node that switch 0 is.
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

// Hear gives switch s a message for it, which came by one of its links and waited in queues for
// some time. The bridge counts what it refuses.
func (b Bridges) Hear(now units.Time, s, link int, port uint16, message []byte, queued units.Time) {
	if port == clocksync.EventPort {
		clocksync.AddResidence(message, queued)
	}
	_ = b[s].Receive(now, link, message)
}

// Deadline returns when switch s wants Advance; false: never.
func (b Bridges) Deadline(s int) (units.Time, bool) { return b[s].Deadline() }

// Advance has switch s do what is due at now.
func (b Bridges) Advance(now units.Time, s int) { b[s].Advance(now) }

// Counters returns what all switches did.
func (b Bridges) Counters() (c clocksync.Counters) {
	for _, one := range b {
		c.Add(one.Counters())
	}
	return c
}
