package pc4_test

import (
	"math"
	"testing"

	"weft/transport/cc"
	"weft/transport/cc/pc4"
	"weft/units"
)

const (
	us   = units.Microsecond
	gbps = units.Gbps
)

// idlePath returns a path with a base RTT of 4 us at 100 Gb/s and packets of 4096 bytes, headers
// included: the round numbers of the paper's section IV.
func idlePath() cc.Link {
	return cc.Link{Line: 100 * gbps, MTU: 4096, Packet: 4096, Baseline: 2 * us, BaseRTT: 4 * us, Hops: 2}
}

// script drives a sender and checks its state. Time passes only in wait.
type script struct {
	t   *testing.T
	s   *pc4.Sender
	now units.Time
}

func newScript(t *testing.T, p pc4.Params, planned units.Bandwidth) *script {
	return &script{t: t, s: pc4.NewSender(p, idlePath(), planned)}
}

// simple returns parameters with round numbers: target 1 us, β 0.8 as in Swift, increases of 10 %
// and 20 % of the base rate, and an interval of 5 us.
func simple() pc4.Params {
	p := pc4.Defaults()
	p.TargetQtime, p.AdjustInterval, p.AI, p.HAI, p.Beta, p.MaxMDF = us, 1.25, 0.1, 0.2, 0.8, 0.5
	return p
}

func (c *script) wait(d units.Time) { c.now += d }

func (c *script) ack(base units.Bandwidth, oneWay units.Time) {
	c.s.OnAck(c.now, cc.Ack{Size: 4096, Packets: 1, RTT: 4*us + max(oneWay, 0), OneWay: oneWay, BaseRate: base})
}

func (c *script) timeout() { c.s.OnLoss(c.now, cc.Loss{Kind: cc.Timeout, Try: 1}) }

func (c *script) wantRate(want units.Bandwidth) {
	c.t.Helper()
	if got := c.s.Rate(); got < want-1 || got > want+1 {
		c.t.Errorf("at %d us: tx_rate is %d b/s, want %d", c.now/us, got, want)
	}
}

func (c *script) wantCWND(want float64) {
	c.t.Helper()
	if got := c.s.CWND(); math.Abs(got/want-1) > 1e-3 {
		c.t.Errorf("at %d us: cwnd is %.5f packets, want %.5f", c.now/us, got, want)
	}
}

func (c *script) wantPacing(want units.Bandwidth) {
	c.t.Helper()
	if got := c.s.PacingRate(); got < want-1 || got > want+1 {
		c.t.Errorf("at %d us: paced at %d b/s, want %d", c.now/us, got, want)
	}
}
