package dcqcn_test

import (
	"math"
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/units"
)

const (
	us   = units.Microsecond
	gbps = units.Gbps
)

// path is a path of 100 Gb/s.
func path() cc.Link {
	return cc.Link{Line: 100 * gbps, MTU: 1000, Packet: 1000, Baseline: 2 * us, BaseRTT: 4 * us, Hops: 2}
}

func rate(r units.Bandwidth) params.Rate { return params.Rate{Rate: r} }

// set returns parameters by the names of a lab's presets, as they are at 100 Gb/s.
func set(t *testing.T, name string) dcqcn.Params {
	t.Helper()
	paper, nvidia := dcqcn.Params{
		Mode: dcqcn.Paper, Clamp: dcqcn.ClampAlways, CNPInterval: 50 * us, G: 1.0 / 256, InitialAlpha: 1, AlphaInterval: 55 * us,
		MinRate: rate(100 * units.Mbps), RPTimer: 55 * us, ByteCounter: 10 * units.MB, F: 5, RAI: rate(40 * units.Mbps), RHAI: rate(200 * units.Mbps),
	}, params.Defaults[dcqcn.Params]()
	mellanox := nvidia
	mellanox.CNPInterval, mellanox.G, mellanox.InitialAlpha, mellanox.MinRate = 0, 1.0/256, 1, rate(units.Gbps)
	mellanox.RAI, mellanox.RHAI = rate(20*units.Mbps), rate(200*units.Mbps)
	doc := mellanox
	doc.RPTimer, doc.RAI, doc.RHAI, doc.MinRate = 900*us, rate(50*units.Mbps), rate(100*units.Mbps), rate(100*units.Mbps)
	conweave := mellanox
	conweave.RAI, conweave.RHAI, conweave.MinRate = rate(40*units.Mbps), rate(100*units.Mbps), rate(100*units.Mbps)
	p, ok := map[string]dcqcn.Params{
		"paper": paper, "nvidia": nvidia, "mellanox": mellanox, "alibaba-doc": doc, "simai": doc, "conweave": conweave,
	}[name]
	if !ok {
		t.Fatalf("no set %q", name)
	}
	return p
}

// marking is how the switch of these tests marks.
type marking struct {
	Kmin, Kmax units.Bytes
	Pmax       float64
}

// script drives a sender and compares. Time passes only by wait, which serves every deadline on its
// way.
type script struct {
	t   *testing.T
	s   *dcqcn.Sender
	now units.Time
}

func newScript(t *testing.T, p dcqcn.Params) *script {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return &script{t: t, s: dcqcn.NewSender(p, path())}
}

func (c *script) wait(d units.Time) {
	end := c.now + d
	for {
		at, ok := c.s.Deadline()
		if !ok || at > end {
			break
		}
		c.now = at
		c.s.Advance(at)
	}
	c.now = end
}

func (c *script) cnp() { c.s.OnCNP(c.now) }

func (c *script) send(b units.Bytes) { c.s.OnSent(c.now, cc.Sent{Size: b, InFlight: b}) }

func (c *script) wantRate(want float64) {
	c.t.Helper()
	if got := float64(c.s.PacingRate()) / 1e9; math.Abs(got-want) > 1e-6 {
		c.t.Errorf("at %v: rate is %.6f Gb/s, want %.6f", c.now, got, want)
	}
}

func (c *script) wantTarget(want float64) {
	c.t.Helper()
	if got := float64(c.s.Target()) / 1e9; math.Abs(got-want) > 1e-6 {
		c.t.Errorf("at %v: target is %.6f Gb/s, want %.6f", c.now, got, want)
	}
}

func (c *script) wantAlpha(want float64) {
	c.t.Helper()
	if got := c.s.Alpha(c.now); math.Abs(got-want) > 5e-6 {
		c.t.Errorf("at %v: alpha is %.6f, want %.6f", c.now, got, want)
	}
}
