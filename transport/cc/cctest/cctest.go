// Package cctest tests congestion controllers. It is for tests only.
//
// Run draws a random path and a random sequence of the calls that a transport may make, with any
// values that a network may bring, and checks after each call what must hold for every controller:
// the window is at least a byte, the pacing rate is between 0 and the line rate, and a deadline
// that was served is not in the past. Limits adds what must hold for one controller.
//
// A Bottleneck shows what a controller does. It is the simplest network: hosts with a NIC each, one
// switch port that all packets share, and a receiver behind it.
//
//	host ── NIC ──┐
//	host ── NIC ──┼──► port ──► receiver
//	host ── NIC ──┘      queue, marks, telemetry
//
// A Net runs flows over a Bottleneck as a discrete-event simulation; Trace prints it step by step,
// and Fairness measures it. Start reading at Run, then Net.serve.
package cctest

import (
	"pgregory.net/rapid"

	"weft/transport/cc"
	"weft/units"
)

// Limits says what must hold after every call, beyond what Run checks for all controllers.
type Limits struct {
	MinWindow units.Bytes                // minimum window
	Also      func(cc.Controller) string // returns what is wrong, or ""; may be nil
}

// Run draws a path and a sequence of calls, makes a controller with newController and checks it
// after each call. The window must be at least MinWindow and at least a byte, the pacing rate
// between 0 and the line rate, and a deadline later than the call that served it. A panic fails the
// test with the sequence that led to it.
func Run(t *rapid.T, l Limits, newController func(*rapid.T, cc.Link) cc.Controller) {
	link := DrawLink(t)
	d := &drive{t: t, link: link, c: newController(t, link)}
	d.check(l, "start")
	for range rapid.IntRange(1, 200).Draw(t, "operations") {
		d.check(l, d.step())
	}
}

// DrawLink draws a path, from slow and long to fast and short.
func DrawLink(t *rapid.T) cc.Link {
	mtu := units.Bytes(rapid.Int64Range(64, 9000).Draw(t, "mtu"))
	base := units.Time(rapid.Int64Range(int64(100*units.Nanosecond), int64(10*units.Millisecond)).Draw(t, "baseline"))
	return cc.Link{
		Line: units.Bandwidth(rapid.Int64Range(1_000_000, 1_600_000_000_000).Draw(t, "line")), MTU: mtu, Packet: mtu +
			102,
		Baseline: base, BaseRTT: base + units.Time(rapid.Int64Range(int64(base/2), int64(2*base)).
				Draw(t, "back")), Hops: 2,
	}
}

// drive calls a controller with random values.
type drive struct {
	t        *rapid.T
	link     cc.Link
	c        cc.Controller
	now      units.Time
	inFlight units.Bytes
}

// step makes one random call and returns its name.
func (d *drive) step() string {
	d.now += units.Time(rapid.Int64Range(0, int64(20*units.Microsecond)).Draw(d.t, "wait"))
	op := rapid.SampledFrom([]string{"start", "sent", "ack", "ack", "ack", "gap", "timeout", "advance", "long wait",
		"cnp"}).Draw(d.t, "op")
	switch op {
	case "start":
		d.inFlight = 0
		d.c.OnStart(d.now)
	case "sent":
		d.inFlight += d.link.Packet
		d.c.OnSent(d.now, cc.Sent{Size: d.link.Packet, InFlight: d.inFlight, Resent: rapid.Bool().Draw(d.t, "resent")})
	case "ack":
		d.ack()
	case "gap":
		d.lose(cc.Gap)
	case "timeout":
		d.lose(cc.Timeout)
	case "advance":
		d.advance()
	case "cnp":
		if c, ok := d.c.(cc.Notified); ok {
			c.OnCNP(d.now)
		}
	case "long wait":
		d.now += units.Time(rapid.Int64Range(0, int64(units.Second)).Draw(d.t, "long"))
	}
	return op
}

func (d *drive) ack() {
	acked := units.Bytes(rapid.Int64Range(0, int64(d.inFlight)).Draw(d.t, "acked"))
	d.inFlight -= acked
	rtt := units.Time(rapid.Int64Range(1, int64(100*units.Millisecond)).Draw(d.t, "rtt"))
	d.c.OnAck(d.now, cc.Ack{
		Size: acked, Packets: int(acked / d.link.Packet), InFlight: d.inFlight, SentAt: d.now - rtt, RTT: rtt,
		OneWay: units.Time(rapid.Int64Range(int64(-units.Millisecond), int64(100*units.Millisecond)).
			Draw(d.t, "one way")),
		BaseRate: units.Bandwidth(rapid.Int64Range(0, 2*int64(d.link.Line)).Draw(d.t, "base rate")),
		Marked:   rapid.Bool().Draw(d.t, "marked"), Path: rapid.Uint16().Draw(d.t, "path"),
		INT: d.telemetry(), AppLimited: rapid.Bool().Draw(d.t, "app limited"),
	})
}

// telemetry draws in-band telemetry: any values, old or new, or none.
func (d *drive) telemetry() []cc.Hop {
	hops := make([]cc.Hop, rapid.IntRange(0, 2).Draw(d.t, "hops"))
	for i := range hops {
		hops[i] = cc.Hop{
			At:     d.now - units.Time(rapid.Int64Range(0, int64(units.Millisecond)).Draw(d.t, "age")),
			Sent:   units.Bytes(rapid.Int64Range(0, 1<<50).Draw(d.t, "sent")),
			Queued: units.Bytes(rapid.Int64Range(0, 1<<40).Draw(d.t, "queued")),
			Rate:   d.link.Line * units.Bandwidth(rapid.Int64Range(1, 2).Draw(d.t, "times the line")),
		}
	}
	return hops
}

func (d *drive) lose(k cc.LossKind) {
	l := cc.Loss{Kind: k, Size: d.inFlight}
	if k == cc.Timeout {
		l.Try = rapid.IntRange(1, 10).Draw(d.t, "try")
	}
	d.inFlight = 0
	d.c.OnLoss(d.now, l)
}

func (d *drive) advance() {
	c, ok := d.c.(cc.Timed)
	if !ok {
		return
	}
	at, ok := c.Deadline()
	if !ok {
		return
	}
	d.now = max(d.now, at)
	c.Advance(d.now)
	if at, ok := c.Deadline(); ok && at <= d.now {
		d.t.Fatalf("deadline %d ps is not after %d ps, when it was served", at, d.now)
	}
}

func (d *drive) check(l Limits, after string) {
	if w := d.c.Window(); w < max(l.MinWindow, 1) {
		d.t.Fatalf("after %s: window of %d bytes, at least %d", after, w, max(l.MinWindow, 1))
	}
	if r := d.c.PacingRate(); r < 0 || r > d.link.Line {
		d.t.Fatalf("after %s: pacing at %d b/s on a line of %d", after, r, d.link.Line)
	}
	if l.Also == nil {
		return
	}
	if wrong := l.Also(d.c); wrong != "" {
		d.t.Fatalf("after %s: %s", after, wrong)
	}
}
