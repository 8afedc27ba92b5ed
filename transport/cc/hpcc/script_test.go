package hpcc_test

import (
	"math"
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/hpcc"
	"weft/units"
)

const (
	us   = units.Microsecond
	gbps = units.Gbps
	bdp  = 62500 // of path
)

// path has a base RTT of 5 us at 100 Gb/s.
func path() cc.Link {
	return cc.Link{Line: 100 * gbps, MTU: 1000, Packet: 1000, Baseline: 2500 * units.Nanosecond, BaseRTT: 5 * us, Hops: 2}
}

// script drives a sender across one port, whose telemetry it makes up. Time passes only by ack.
type script struct {
	t    *testing.T
	s    *hpcc.Sender
	p    hpcc.Params
	hop  cc.Hop
	left units.Bytes // in flight, told with acknowledgements
}

// fixed are parameters with a W_AI of 100 bytes and no least rate.
func fixed() hpcc.Params {
	p := params.Defaults[hpcc.Params]()
	p.WAI, p.Flows, p.MinRate = 100, 0, params.Rate{}
	return p
}

func newScript(t *testing.T, p hpcc.Params) *script {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return &script{t: t, s: hpcc.NewSender(p, path()), p: p, hop: cc.Hop{Rate: 100 * gbps}, left: bdp}
}

// ack acknowledges size bytes. Their telemetry is from a time after the last one: since then the
// port has sent sent bytes, and now queued bytes wait.
func (c *script) ack(size units.Bytes, after units.Time, sent, queued units.Bytes) {
	c.hop.At += after
	c.hop.Sent += sent
	c.hop.Queued = queued
	c.tell(size, c.hop)
}

func (c *script) tell(size units.Bytes, hops ...cc.Hop) {
	c.s.OnAck(0, cc.Ack{Size: size, Packets: 1, InFlight: c.left, RTT: 5 * us, INT: hops})
}

func (c *script) wantWindow(want float64) {
	c.t.Helper()
	if got := float64(c.s.Window()); math.Abs(got-want) > 1 {
		c.t.Errorf("window of %.0f bytes, want %.1f", got, want)
	}
}

func (c *script) wantU(want float64) {
	c.t.Helper()
	if got := c.s.Utilization(); math.Abs(got-want) > 1e-6 {
		c.t.Errorf("U is %.6f, want %.6f", got, want)
	}
}
