package agent

import (
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// maxWindows is the largest number of window changes that a node keeps, at 48 bytes each.
const maxWindows = 1 << 20

// observer records measurements of packets. It is the transport's Observer.
type observer struct {
	rtt     *stats.Dist
	oneWay  *stats.Dist
	keep    bool // keep window changes
	windows []Window
	steps   []Step
	last    map[transport.ConnID]units.Bytes // windows that have changed since the last frame; nil: no frames
}

func (o *observer) Acked(_ units.Time, _ transport.ConnID, a transport.Acked) {
	o.rtt.Record(a.RTT)
}

// Arrived records the queueing delay of a packet that has arrived.
func (o *observer) Arrived(_ units.Time, _ transport.ConnID, oneWay units.Time) {
	o.oneWay.Record(oneWay)
}

// Limited records a change of a congestion window, a rate or a credit.
func (o *observer) Limited(now units.Time, c transport.ConnID, l transport.Limits) {
	if o.last != nil {
		o.last[c] = l.Window
	}
	if o.keep && len(o.windows) < maxWindows {
		o.windows = append(o.windows, Window{At: now, Conn: c, Limits: l})
	}
}

// maxSteps is the largest number of coordination steps that a node keeps.
const maxSteps = 10_000

// Coordinated records the actions of the node's connections for coordinated congestion management.
func (o *observer) Coordinated(now units.Time, c transport.ConnID, cc, moved bool) {
	if len(o.steps) < maxSteps {
		o.steps = append(o.steps, Step{At: now, Conn: c, CC: cc, Moved: moved})
	}
}
