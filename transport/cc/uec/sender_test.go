package uec_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/cctest"
	"weft/transport/cc/uec"
	"weft/units"
)

const (
	us     = units.Microsecond
	net    = 12 * us // the reference network: all scaling factors but that of the target are 1
	target = 9 * us  // 0.75 of it
	packet = 4000
	most   = 1.5 * 150_000 // the maximum window
)

// script drives a sender on the reference network, with packets of 4,000 bytes of which all is
// payload, so that numbers are round.
type script struct {
	*uec.Sender
	now units.Time
}

func newScript(t *testing.T, change func(*uec.Params)) *script {
	t.Helper()
	p := params.Defaults[uec.Params]()
	if change != nil {
		change(&p)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	l := cc.Link{Line: 100 * units.Gbps, MTU: packet, Packet: packet, Baseline: net / 2, BaseRTT: net, NetRTT: net}
	s := &script{Sender: uec.NewSender(p, l)}
	s.OnStart(0)
	return s
}

// ack acknowledges packets with a delay, after a time.
func (s *script) ack(after units.Time, packets int, delay units.Time, marked bool) {
	s.now += after
	s.OnAck(s.now, cc.Ack{Size: units.Bytes(packets * packet), Packets: packets, RTT: net + delay, Marked: marked, InFlight: 40_000})
}

func (s *script) trimmed(after units.Time, last bool) {
	s.now += after
	s.OnLoss(s.now, cc.Loss{Kind: cc.Trimmed, Size: packet, RTT: net, LastHop: last, InFlight: 40_000})
}

func (s *script) expect(t *testing.T, what string, want float64) {
	t.Helper()
	if got := s.CWND(); math.Abs(got-want) > 1 {
		t.Errorf("%s: a window of %.1f bytes, want %.1f", what, got, want)
	}
}

func small(cwnd int) func(*uec.Params) {
	return func(p *uec.Params) { p.CWND, p.Eta = cwnd, 0 }
}

// The window begins at 1.5 bandwidth-delay products, and a full packet must fit into what is left
// of it.
func TestStart(t *testing.T) {
	s := newScript(t, nil)
	s.expect(t, "start", most)
	if w := s.Window(); w != most-packet+1 {
		t.Errorf("a packet may leave below %d bytes in flight", w)
	}
	newScript(t, small(10)).expect(t, "ten packets", 40_000)
}

// Unmarked, below the target: over a window, alpha packets times what is missing to the target. The
// sum is applied after more than eight packets.
func TestProportionalIncrease(t *testing.T) {
	s := newScript(t, small(20)) // 80,000 bytes
	for range 8 {
		s.ack(us/10, 1, 3*us, false)
	}
	s.expect(t, "eight packets", 80_000)
	s.ack(us/10, 1, 3*us, false)
	// alpha = 4 packets * (9/12) / 9 us per ps of the missing 6 us: 4 * 0.75 * 6/9 = 2 packets a
	// window
	s.expect(t, "nine packets", 80_000+2*packet*9*packet/80_000.)
}

// Unmarked at or above the target: over a window, five packets.
func TestFairIncrease(t *testing.T) {
	s := newScript(t, small(20))
	for range 9 {
		s.ack(us/10, 1, target, false)
	}
	s.expect(t, "nine packets", 80_000+5*packet*9*packet/80_000.)
}

// Marked below the target: nothing.
func TestMarksAloneChangeNothing(t *testing.T) {
	s := newScript(t, small(20))
	for range 30 {
		s.ack(us/10, 1, target-1, true)
	}
	s.expect(t, "marks", 80_000)
}

// Marked at or above the target: a decrease once per round trip, by the average delay, and by a
// half at most.
func TestMultiplicativeDecrease(t *testing.T) {
	s := newScript(t, func(p *uec.Params) { p.CWND, p.Eta, p.EWMA = 20, 0, 1 })
	s.ack(us, 1, 2*target, true)
	s.expect(t, "twice the target", 80_000*(1-0.8/2))
	s.ack(net, 1, 2*target, true)
	s.expect(t, "too early", 48_000)
	s.ack(1, 1, 3*target, true)
	s.expect(t, "three times the target", 48_000*0.5)
}

// The average is slow, and a long delay without a mark counts as a quarter of the base RTT.
func TestAverage(t *testing.T) {
	s := newScript(t, nil)
	s.ack(us, 1, 8*us, true)
	if got, want := s.Average(), 8*us/80; got != want {
		t.Errorf("average %v, want %v", got, want)
	}
	s.ack(us, 1, 20*us, false)
	want := float64(8*us/80)*79/80 + float64(net/4)/80
	if got := float64(s.Average()); math.Abs(got-want) > 2 {
		t.Errorf("average %v, want %v", got, want)
	}
}

// The answer to a probe overtook the data, so that its delay counts for nothing.
func TestProbeOvertakesData(t *testing.T) {
	s := newScript(t, small(4))
	for range 9 {
		s.now += us / 100
		s.OnAck(s.now, cc.Ack{Size: packet, Packets: 1, RTT: net, Probe: true})
	}
	s.expect(t, "probes", 16_000)
	if s.Average() != 0 {
		t.Errorf("average %v", s.Average())
	}
}

// After a window without queueing the window grows by a quarter of what is acknowledged, until a
// delay ends that.
func TestFastIncrease(t *testing.T) {
	s := newScript(t, small(4)) // 16,000 bytes
	for range 5 {
		s.ack(us/100, 1, 0, false)
	}
	s.expect(t, "a window and a packet", 17_000)
	s.ack(us/100, 1, 0, false)
	s.expect(t, "one more", 18_000)
	s.ack(us/100, 1, 2*us, false)
	s.ack(us/100, 1, 0, false)
	s.expect(t, "after a delay", 18_000)
}

// Once per round trip of the network the window grows by eta.
func TestEta(t *testing.T) {
	s := newScript(t, func(p *uec.Params) { p.CWND, p.Alpha, p.Fast = 20, 0, 0 })
	s.ack(net, 1, us, false)
	s.expect(t, "a round trip", 80_000)
	s.ack(1, 1, us, false)
	s.expect(t, "more than a round trip", 80_000+0.15*packet)
	s.ack(us, 1, us, false)
	s.expect(t, "soon after", 80_000+0.15*packet)
}

// A trimmed packet shrinks the window by its size. When a period ends in which little arrived, the
// window becomes that much; marks that were in flight then say nothing new.
func TestQuickAdapt(t *testing.T) {
	s := newScript(t, nil)
	s.ack(us, 1, us, true) // begins a period
	s.expect(t, "start", most)
	s.trimmed(us, false)
	s.expect(t, "one trimmed", most-packet)
	s.ack(us, 2, us, true)
	s.trimmed(net+target, false)
	s.expect(t, "the period ends: two packets arrived", 2*packet)
	for range 9 {
		s.trimmed(us, false) // of 40,000 bytes that were in flight
	}
	s.expect(t, "old news", 2*packet)
	s.trimmed(us, false)
	s.expect(t, "new", packet)
}

// Much that arrived prevents quick adapt, whatever was trimmed.
func TestQuickAdaptGate(t *testing.T) {
	s := newScript(t, nil)
	s.ack(us, 1, us, true)
	s.ack(us, 8, us, true) // more than an eighth of the window
	s.trimmed(net+target, false)
	s.expect(t, "gate", most-packet)
}

// With RCCC, what is trimmed at the last switch is for the receiver to deal with. A timeout shrinks
// the window in any case.
func TestLosses(t *testing.T) {
	s := newScript(t, nil)
	s.OnLoss(0, cc.Loss{Kind: cc.Timeout, Size: packet})
	s.expect(t, "timeout", most-packet)
	p := params.Defaults[uec.Params]()
	p.CC, p.CreditRate, p.PerCredit = uec.Both, 0.99, 16*1024
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	both := &script{Sender: uec.NewSender(p, cc.Link{Line: 100 * units.Gbps, MTU: packet, Packet: packet, BaseRTT: net})}
	both.trimmed(us, true)
	both.expect(t, "trimmed at the last switch", most)
	both.trimmed(us, false)
	both.expect(t, "trimmed before", most-packet)
}

// A round trip below that of the network becomes the base, and bounds the window.
func TestShorterPath(t *testing.T) {
	s := newScript(t, nil)
	s.ack(us, 1, -6*us, false)
	s.expect(t, "half of the round trip", most/2)
}

// Whatever happens, the window is a number between a packet and its maximum, or what it began with.
func TestSenderStandsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := params.Defaults[uec.Params]()
		p.MaxCWND, p.EWMA = rapid.Float64Range(0.1, 100).Draw(t, "max"), rapid.Float64Range(0.001, 1).Draw(t, "ewma")
		p.Alpha, p.Fair = cc.Proportional(rapid.Float64Range(0, 100).Draw(t, "alpha")), rapid.Float64Range(0, 100).Draw(t, "fair")
		p.Eta, p.Fast = rapid.Float64Range(0, 10).Draw(t, "eta"), rapid.Float64Range(0, 10).Draw(t, "fast")
		p.Gamma, p.MaxMDF = rapid.Float64Range(0.01, 1).Draw(t, "gamma"), rapid.Float64Range(0.01, 0.99).Draw(t, "mdf")
		p.QAGate, p.QAHigh = rapid.IntRange(0, 30).Draw(t, "gate"), rapid.Float64Range(0, 10).Draw(t, "high")
		p.TargetRTT = rapid.Float64Range(0.001, 10).Draw(t, "target")
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		limits := cctest.Limits{MinWindow: 1, Also: func(c cc.Controller) string {
			s := c.(*uec.Sender)
			if w := s.CWND(); math.IsNaN(w) || w < 1 || w > s.MaxWindow()*(1+1e-9) && s.Average() > 0 {
				return fmt.Sprintf("window of %v bytes, at most %v", w, s.MaxWindow())
			}
			return ""
		}}
		cctest.Run(t, limits, func(_ *rapid.T, l cc.Link) cc.Controller {
			l.NetRTT = units.Time(rapid.Int64Range(0, int64(units.Millisecond)).Draw(t, "net"))
			return uec.NewSender(p, l)
		})
	})
}
