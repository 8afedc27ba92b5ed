package cctest_test

import (
	"math"
	"strings"
	"testing"

	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/units"
)

// plain is a controller whose answers the test sets, and which records its calls.
type plain struct {
	window units.Bytes
	rate   units.Bandwidth
	from   units.Time
	wake   units.Time
	woken  units.Time
	acks   []cc.Ack
	cnps   int
}

func (p *plain) OnStart(units.Time)           {}
func (p *plain) OnSent(units.Time, cc.Sent)   {}
func (p *plain) OnAck(_ units.Time, a cc.Ack) { p.acks = append(p.acks, a) }
func (p *plain) OnLoss(units.Time, cc.Loss)   {}
func (p *plain) OnCNP(units.Time)             { p.cnps++ }
func (p *plain) Window() units.Bytes          { return p.window }
func (p *plain) PacingRate() units.Bandwidth  { return p.rate }
func (p *plain) NotBefore() units.Time        { return p.from }
func (p *plain) Deadline() (units.Time, bool) { return p.wake, p.wake > p.woken }
func (p *plain) Advance(now units.Time)       { p.woken = now }

// everyOther answers every other packet with a notification.
type everyOther struct{ n int }

func (e *everyOther) OnData(units.Time, cc.Data) cc.Feedback {
	e.n++
	return cc.Feedback{CNP: e.n%2 == 0}
}

func bottleneck() cctest.Bottleneck {
	return cctest.Bottleneck{Line: 100 * units.Gbps, Delay: 2 * units.Microsecond, Packet: 1250, Seed: 1} // 100 ns a packet
}

// A packet alone takes the base RTT, and says so; two hosts at full windows share the line.
func TestBottleneckIsExact(t *testing.T) {
	b := bottleneck()
	a, c := &plain{window: 1}, &plain{window: 1 << 20}
	one := &cctest.Flow{Controller: a, Packets: 1}
	n := cctest.NewNet(b, one, &cctest.Flow{Controller: c, Start: units.Millisecond},
		&cctest.Flow{Controller: &plain{window: 1 << 20}, Start: units.Millisecond})
	n.Run(units.Millisecond)
	if got, want := a.acks[0].RTT, b.Link().BaseRTT; got != want || one.Done != want {
		t.Errorf("round trip %v, done at %v, want %v", got, one.Done, want)
	}
	n.Run(2 * units.Millisecond)
	if jain, used := n.Fairness(3 * units.Millisecond); math.Abs(used-1) > 1e-3 || jain > 0.67 || jain < 0.66 {
		t.Errorf("Jain %.4f of two and one that is done, %.2f %% of the line", jain, 100*used)
	}
	if n.MaxQueue < 1<<20 {
		t.Errorf("queue of up to %v below two windows", n.MaxQueue)
	}
}

// What a controller says of windows, rates, instants and timers holds.
func TestBottleneckObeysTheController(t *testing.T) {
	p := &plain{window: 2500, rate: units.Gbps, from: 50 * units.Microsecond, wake: 30 * units.Microsecond}
	f := &cctest.Flow{Controller: p, Receiver: &everyOther{}, Packets: 10}
	n := cctest.NewNet(bottleneck(), f)
	n.Run(50*units.Microsecond - 1)
	if f.Delivered > 0 || p.woken != p.wake {
		t.Errorf("%d packets before their time; woken at %v", f.Delivered, p.woken)
	}
	n.Run(units.Millisecond)
	if want := 50*units.Microsecond + 9*10*units.Microsecond + bottleneck().Link().BaseRTT; f.Done != want {
		t.Errorf("done at %v, want %v", f.Done, want)
	}
	if p.cnps != 5 {
		t.Errorf("%d notifications for 10 packets", p.cnps)
	}
}

// Telemetry and marks are those of the port as a packet leaves it.
func TestBottleneckMarksAndStamps(t *testing.T) {
	b := bottleneck()
	b.Mark = func(queued units.Bytes, draw float64) bool { return queued >= 1250 && draw < 1 }
	p, q := &plain{window: 5000}, &plain{window: 5000}
	n := cctest.NewNet(b, &cctest.Flow{Controller: p, Packets: 4}, &cctest.Flow{Controller: q, Packets: 4})
	text := n.Trace(20*units.Microsecond, 10*units.Microsecond)
	for i, a := range p.acks {
		h := a.INT[0]
		if h.Rate != b.Line || h.Sent != units.Bytes(2*i)*1250 || a.Marked != (h.Queued >= 1250) {
			t.Errorf("packet %d: %+v, marked %v", i, h, a.Marked)
		}
	}
	if len(p.acks) != 4 || !p.acks[3].Marked && !q.acks[3].Marked && !p.acks[1].Marked {
		t.Errorf("%d acknowledgements", len(p.acks))
	}
	if lines := strings.Count(text, "\n"); lines != 4 || !strings.Contains(text, "goodput Mb/s") || !strings.Contains(text, "5000") {
		t.Errorf("trace:\n%s", text)
	}
}
