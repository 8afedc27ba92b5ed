package swift_test

import (
	"math"
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/swift"
	"weft/units"
)

const (
	us   = units.Microsecond
	gbps = units.Gbps
)

// path has packets of 1000 bytes and a bandwidth-delay product of 50 of them.
func path() cc.Link {
	return cc.Link{Line: 100 * gbps, MTU: 1000, Packet: 1000, Baseline: 2 * us, BaseRTT: 4 * us, Hops: 2}
}

// simple are parameters with round numbers: without flow scaling the target of two hops is 12 us.
func simple() swift.Params {
	p := params.Defaults[swift.Params]()
	p.FSRange = 0
	return p
}

// script drives a sender and compares. Time passes only by wait.
type script struct {
	t   *testing.T
	s   *swift.Sender
	now units.Time
}

func newScript(t *testing.T, p swift.Params, packets float64) *script {
	t.Helper()
	p.InitialWindow = units.Bytes(math.Round(packets * 1000))
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return &script{t: t, s: swift.NewSender(p, path())}
}

func (c *script) wait(d units.Time) { c.now += d }

func (c *script) ack(rtt units.Time) { c.ackLeaving(rtt, 0) }

func (c *script) ackLeaving(rtt units.Time, inFlight units.Bytes) {
	c.s.OnAck(c.now, cc.Ack{Size: 1000, Packets: 1, InFlight: inFlight, SentAt: c.now - rtt, RTT: rtt})
}

func (c *script) timeout(try int) { c.s.OnLoss(c.now, cc.Loss{Kind: cc.Timeout, Try: try}) }
func (c *script) gap()            { c.s.OnLoss(c.now, cc.Loss{Kind: cc.Gap}) }

func (c *script) wantCWND(want float64) {
	c.t.Helper()
	if got := c.s.CWND(); math.Abs(got-want) > 1e-9*want {
		c.t.Errorf("at %v: cwnd is %.6f packets, want %.6f", c.now, got, want)
	}
}

// wantGap compares the time from one packet to the next.
func (c *script) wantGap(want units.Time) {
	c.t.Helper()
	got := units.Time(0)
	if r := c.s.PacingRate(); r > 0 {
		got = r.TransmitTime(1000)
	}
	if d := got - want; d < -units.Nanosecond || d > units.Nanosecond {
		c.t.Errorf("at %v: packets %v apart, want %v", c.now, got, want)
	}
}
