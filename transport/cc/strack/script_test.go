package strack_test

import (
	"math"
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/strack"
	"weft/units"
)

const (
	us   = units.Microsecond
	gbps = units.Gbps
	base = 8 * us
)

// path is a path of the paper's evaluation (section 4.2): a network base RTT of 8 us, packets of
// 4000 bytes so that numbers are round: 100 of them are the bandwidth-delay product at 400 Gb/s.
func path(line units.Bandwidth) cc.Link {
	return cc.Link{Line: line, MTU: 4000, Packet: 4000, Baseline: base / 2, BaseRTT: base, NetRTT: base, Hops: 4}
}

// script drives a sender and compares. Time passes only by wait. It begins long after the window
// and its clocks were set up.
type script struct {
	t   *testing.T
	s   *strack.Sender
	now units.Time
}

func newScript(t *testing.T, p strack.Params, line units.Bandwidth) *script {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return &script{t: t, s: strack.NewSender(p, path(line))}
}

// steady are the defaults without what is added for fairness, which would blur the rest.
func steady() strack.Params {
	p := params.Defaults[strack.Params]()
	p.Eta, p.MaxCWND = 0, 1
	return p
}

func (c *script) wait(d units.Time) { c.now += d }

// ack acknowledges packets, the newest of which was queued for delay.
func (c *script) ack(packets int, delay units.Time, marked bool) {
	c.s.OnAck(c.now, cc.Ack{
		Size: 4000 * units.Bytes(packets), Packets: packets, SentAt: c.now - base - delay, RTT: base + delay, Marked: marked,
	})
}

// shrink reduces the window to a number of packets, with an average delay far above the target.
func (c *script) shrink(packets float64) {
	c.t.Helper()
	for c.s.CWND() > packets {
		before := c.s.CWND()
		c.wait(base + 1)
		c.ack(0, 20*us, true)
		if c.s.CWND() == before && c.s.Average() > base {
			c.t.Fatalf("stuck at %v packets", before)
		}
	}
}

// calm brings the average down without moving the window: marked packets below the target.
func (c *script) calm() {
	for range 100 {
		c.ack(0, 0, true)
	}
}

func (c *script) wantCWND(want float64) {
	c.t.Helper()
	if got := c.s.CWND(); math.Abs(got-want) > 1e-9*want {
		c.t.Errorf("at %v: cwnd is %.6f packets, want %.6f", c.now, got, want)
	}
}

// near compares with what a table prints.
func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s is %.4f, want %.4f", what, got, want)
	}
}
