package fabric

import "weft/units"

// Held returns the number of packets that this partition has let in and has not let out again:
// their sum over all partitions is 0 if no packet is in the network.
func (n *Network) Held() int64 {
	c := &n.total
	return c.Injected + c.Duplicated - c.Delivered - c.Dropped - c.Lost - c.Cut
}

// Totals returns the counters of this partition, which the caller may read and move: see
// state.Repeat.
func (n *Network) Totals() *Counters { return &n.total }

// Silent returns since when nothing has been on any link, if no packet is in the network, and the
// longest propagation delay. ok is false if a pause is in force or under way, or a port is down.
func (n *Network) Silent() (since, delay units.Time, ok bool) {
	if len(*n.downs) > 0 {
		return 0, 0, false
	}
	for i := range n.ports {
		o := &n.ports[i]
		since, delay = max(since, o.freeAt+o.delay), max(delay, o.delay)
		if o.held != 0 || n.pfc != nil && !n.pfc.frames[i].empty() {
			return 0, 0, false
		}
	}
	return since, delay, true
}
