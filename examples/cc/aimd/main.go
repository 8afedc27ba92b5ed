// Command aimd is a module for teaching: a packet more for each round trip, and a share less for a
// mark or a loss, as TCP does (Chiu and Jain, 1989).
package main

import "weft/sdk/cc"

// controller is the state of a connection.
type controller struct {
	increase float64 // packets
	decrease float64 // share
	packet   float64 // bytes
	window   float64 // bytes
	cut      cc.Time // when the window was last cut
	rtt      cc.Time // last measured round trip
}

var _ = cc.Serve(cc.Module{
	Name: "aimd", About: "Additive increase, multiplicative decrease.", ECN: true,
	Params: []cc.Param{
		{Name: "increase", Kind: cc.Number, Min: 0.001, Max: 1000, Default: "1", About: "Packets added per RTT."},
		{Name: "decrease", Kind: cc.Share, Min: 0.01, Max: 0.99, Default: "0.5",
			About: "Share taken by a mark or loss."},
	},
}, &controller{})

func main() {}

// Init begins with the bandwidth-delay product of the path.
func (c *controller) Init(l *cc.Link, p *cc.Values) {
	c.increase, c.decrease = p[0], p[1]
	c.packet, c.rtt, c.cut = float64(l.Packet), l.BaseRTT, -l.BaseRTT
	c.window = max(l.Line*l.BaseRTT.Seconds()/8, c.packet)
}

// Ack adds a share of a packet, or cuts if the packet was marked.
func (c *controller) Ack(now cc.Time, a *cc.Ack) {
	c.rtt = a.RTT
	if a.Flags.Has(cc.Marked) {
		c.shrink(now)
		return
	}
	c.window += c.increase * c.packet * float64(a.Size) / c.window
}

// Loss cuts.
func (c *controller) Loss(now cc.Time, _ *cc.Loss) { c.shrink(now) }

// shrink cuts the window at most once per round trip: only then does the last cut show.
func (c *controller) shrink(now cc.Time) {
	if now-c.cut < c.rtt {
		return
	}
	c.window, c.cut = max(c.window*(1-c.decrease), c.packet), now
}

// Window returns the window in bytes.
func (c *controller) Window() float64 { return c.window }
