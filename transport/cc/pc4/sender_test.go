package pc4_test

import (
	"testing"

	"weft/transport/cc"
	"weft/transport/cc/pc4"
	"weft/units"
)

// Lines 4-7: "if ack.base_rate ≠ base_recorded then base_recorded ← ack.base_rate; tx_rate ←
// ack.base_rate".
func TestNewBaseRateIsTakenAtOnce(t *testing.T) {
	c := newScript(t, simple(), 100*gbps)
	c.ack(50*gbps, 3*us) // whatever the delay
	c.wantRate(50 * gbps)
	c.ack(25*gbps, 0) // and however soon after the last
	c.wantRate(25 * gbps)
}

// Lines 7 and 9: "t_last_adjust ← now"; "if now - t_last_adjust ≥ adjust_interval".
func TestRateRestsForAnInterval(t *testing.T) {
	c := newScript(t, simple(), 0)
	c.wait(10 * us)
	c.ack(10*gbps, 0)
	c.wait(5*us - 1)
	c.ack(10*gbps, 0)
	c.wantRate(10 * gbps)
	c.wait(1)
	c.ack(10*gbps, 0)
	c.wantRate(12 * gbps)
	c.wait(4 * us)
	c.ack(10*gbps, 0)
	c.wantRate(12 * gbps)
}

// settled returns a sender at its base rate of 10 Gb/s whose next ACK adjusts the rate.
func settled(t *testing.T, p pc4.Params) *script {
	c := newScript(t, p, 0)
	c.ack(10*gbps, 0)
	c.wait(5 * us)
	return c
}

// Lines 21-22: "if ack.one_way_delay = 0 then tx_rate ← tx_rate + hai".
func TestNoDelayAddsHAI(t *testing.T) {
	c := settled(t, simple())
	c.ack(10*gbps, 0)
	c.wantRate(12 * gbps)
}

// Lines 23-24: "else if 0 < ack.one_way_delay < target_qtime then tx_rate ← tx_rate + ai".
func TestDelayBelowTargetAddsAI(t *testing.T) {
	c := settled(t, simple())
	c.ack(10*gbps, us-1)
	c.wantRate(11 * gbps)
}

// Lines 25-27: "tx_rate · max(1 - max_mdf, 1 - β · (delay - target) / (delay + baseline))".
func TestDelayAtOrAboveTargetMultiplies(t *testing.T) {
	c := settled(t, simple())
	c.ack(10*gbps, us) // at the target: the factor is 1
	c.wantRate(10 * gbps)
	c.wait(5 * us)
	c.ack(10*gbps, 3*us) // 1 - 0.8·2/5 = 0.68
	c.wantRate(6800 * units.Mbps)
	c.wait(5 * us)
	c.ack(10*gbps, 1000*us) // β alone would leave 0.2; max_mdf leaves half
	c.wantRate(3400 * units.Mbps)
}

// Line 12: "cwnd ← tx_rate · rtt", in packets (section III-C: "less than one packet").
func TestWindowIsRateTimesRTT(t *testing.T) {
	c := newScript(t, simple(), 0)
	c.ack(10*gbps, 0) // 10 to 1: 5000 bytes
	c.wantCWND(1.2207)
	if got := c.s.Window(); got != 5000 {
		t.Errorf("window of %d bytes, want 5000", got)
	}
	c.ack(20*units.Mbps, 0) // 5000 to 1: 10 bytes
	c.wantCWND(0.0024414)
}

// Lines 13-14: "if cwnd < 1 then pacing_delay ← rtt/cwnd": 4 us / 0.00244 packets = 1.638 ms per
// packet.
func TestWindowBelowOnePacketIsPaced(t *testing.T) {
	c := newScript(t, simple(), 0)
	c.ack(20*units.Mbps, 0)
	if got, want := c.s.PacingRate().TransmitTime(4096), 1638400*units.Nanosecond; got != want {
		t.Errorf("a packet each %d ps, want %d", got, want)
	}
}

// Lines 15-16: "else pacing_delay ← 0". docs/adr/0010: from four packets on.
func TestLargeWindowIsNotPaced(t *testing.T) {
	c := newScript(t, simple(), 0)
	c.ack(33*gbps, 0) // 4.03 packets
	c.wantPacing(0)
	c.ack(32*gbps, 0) // 3.9 packets
	c.wantPacing(32 * gbps)

	literal := simple()
	literal.PacedBelow = 1
	c = newScript(t, literal, 0)
	c.ack(32*gbps, 0)
	c.wantPacing(0)
	c.ack(8*gbps, 0) // 0.98 packets
	c.wantPacing(8 * gbps)
}

// docs/adr/0010: the rtt of pacing_delay includes the queueing delay of the last packet, up to the
// target and up to one base RTT, and below one packet only that fraction of it.
func TestPacingSlowsDownWithTheQueueUpToTheTarget(t *testing.T) {
	c := newScript(t, simple(), 0)
	c.ack(10*gbps, us/2)
	c.wantPacing(8888888889) // 10 · 4/(4+0.5)
	c.ack(10*gbps, 7*us)
	c.wantPacing(8 * gbps) // 10 · 4/(4+1)
	c.wantRate(10 * gbps)
	c.ack(4096*units.Mbps, 7*us)
	c.wantCWND(0.5)
	c.wantPacing(3640888889) // 4.096 · 4/(4+0.5)

	deep := simple()
	deep.TargetQtime = 80 * us
	c = newScript(t, deep, 0)
	c.ack(10*gbps, 50*us)
	c.wantPacing(5 * gbps) // 10 · 4/(4+4)
}

// Section III-C: "a lower bound of 0.0001 packets".
func TestWindowStaysAboveItsLowerBound(t *testing.T) {
	c := newScript(t, simple(), 0)
	for range 100 {
		c.timeout()
	}
	c.wantCWND(0.0001)
	if c.s.Window() < 1 || c.s.PacingRate() < 1 {
		t.Errorf("window %d, pacing %d", c.s.Window(), c.s.PacingRate())
	}
}

// Our choice: the rate stops at the line rate. The paper has no upper limit.
func TestRateStopsAtTheLine(t *testing.T) {
	c := newScript(t, simple(), 0)
	c.ack(99*gbps, 0)
	for range 10 {
		c.wait(5 * us)
		c.ack(99*gbps, 0)
	}
	c.wantRate(100 * gbps)
}

// Lines 17-19: "cwnd ← cwnd · (1 - max_mdf); base_recorded ← 0". Section III-D: "this reduction
// continues until an ACK carrying base rate ... is received, and then the cwnd can be adjusted".
func TestTimeoutHalvesUntilAnAckBringsTheBaseRateBack(t *testing.T) {
	c := settled(t, simple())
	c.ack(10*gbps, 0)
	c.timeout()
	c.wantRate(6 * gbps)
	c.wantCWND(0.73242)
	c.timeout()
	c.wantRate(3 * gbps)
	c.ack(10*gbps, 0) // the same base rate as before is new again
	c.wantRate(10 * gbps)
}

// Without base rates base_recorded stays 0, so the next ACK must not undo the cut.
func TestTimeoutWithoutBaseRateLasts(t *testing.T) {
	c := newScript(t, simple(), 0)
	c.timeout()
	c.ack(0, us/2)
	c.wantRate(50 * gbps)
}

// Our choice: a gap does not change the rate. Go-back-N handles it, and PC4 has no rule for it.
func TestGapLeavesTheRateAlone(t *testing.T) {
	c := settled(t, simple())
	c.s.OnLoss(c.now, cc.Loss{Kind: cc.Gap, Size: 40960})
	c.wantRate(10 * gbps)
}

// Our reading of "d = 0": not above what the clocks can resolve (section II-A: "synchronization to
// within 100 nanoseconds"). Clock errors may even make a delay negative.
func TestDelayWithinClockErrorIsZero(t *testing.T) {
	for _, d := range []units.Time{-3 * us, -1, 0, 100 * units.Nanosecond} {
		c := settled(t, simple())
		c.ack(10*gbps, d)
		c.wantRate(12 * gbps)
	}
	c := settled(t, simple())
	c.ack(10*gbps, 100*units.Nanosecond+1)
	c.wantRate(11 * gbps)
}

// Algorithm 2 to the letter: a negative delay matches neither line 21 nor line 23, so lines 26-27
// multiply the rate by 1 - β · (delay - target) / (delay + baseline), which is above 1.
func TestNegativeDelayToTheLetter(t *testing.T) {
	p := simple()
	p.NegativeDelay = pc4.NegativeLiteral
	for _, e := range []struct {
		delay units.Time
		want  units.Bandwidth
	}{
		{-us, 26 * gbps},                      // 1 + 0.8·2/1
		{-2 * us, 100 * gbps},                 // the baseline is 2 us: a division by zero, up to the line rate
		{-4 * us, 5 * gbps},                   // 1 - 0.8·5/2 is below 1 - max_mdf
		{-100 * units.Nanosecond, 12 * gbps},  // within epsilon that is no delay: line 21
		{100*units.Nanosecond + 1, 11 * gbps}, // line 23
		{3 * us, 6800 * units.Mbps},           // lines 26-27
	} {
		c := settled(t, p)
		c.ack(10*gbps, e.delay)
		c.wantRate(e.want)
	}
}

// Section IV-C: "setting the target qtime to 0 ... even minimal queuing triggered a multiplicative
// decrease".
func TestTargetOfZero(t *testing.T) {
	p := simple()
	p.TargetQtime = 0
	c := settled(t, p)
	c.ack(10*gbps, us)
	c.wantRate(7333333333) // 1 - 0.8·1/3
	c.wait(5 * us)
	c.ack(10*gbps, 0)
	c.wantRate(9333333333)
}

// Section III-C: "We scale the target qtime threshold": by the baseline, and "with an O(1/N)
// reduction".
func TestScaledTarget(t *testing.T) {
	p := simple()
	p.TargetQtime = pc4.Scaled
	c := newScript(t, p, 0)
	c.ack(50*gbps, 0) // N = 2: 4·2 us / 2 = 4 us
	c.wait(5 * us)
	c.ack(50*gbps, 4*us-1)
	c.wantRate(55 * gbps)
	c.wait(5 * us)
	c.ack(50*gbps, 4*us)
	c.wantRate(55 * gbps)
	c.ack(units.Gbps, 0) // N = 100: no less than 1 us
	c.wait(5 * us)
	c.ack(units.Gbps, us-1)
	c.wantRate(1100 * units.Mbps)
	c.wait(5 * us)
	c.ack(units.Gbps, us)
	c.wantRate(1100 * units.Mbps)
}

// Without a base rate the scaled target is that of a single flow.
func TestScaledTargetWithoutBaseRate(t *testing.T) {
	p := simple()
	p.TargetQtime = pc4.Scaled
	c := newScript(t, p, 0)
	c.timeout()
	c.wait(5 * us)
	c.ack(0, 8*us) // 4·2 us / 1: at the target
	c.wantRate(50 * gbps)
}

// Our choice: the rate before the first ACK.
func TestInitialRate(t *testing.T) {
	for _, c := range []struct {
		initial string
		planned units.Bandwidth
		want    units.Bandwidth
	}{
		{pc4.AtBaseRate, 10 * gbps, 10 * gbps},
		{pc4.AtBaseRate, 0, 100 * gbps},
		{pc4.AtLine, 10 * gbps, 100 * gbps},
		{pc4.AtWindow, 10 * gbps, 20 * gbps}, // 10 kB in 4 us
	} {
		p := simple()
		p.Initial = c.initial
		if c.initial == pc4.AtWindow {
			p.InitialWindow = 10 * units.KB
		}
		newScript(t, p, c.planned).wantRate(c.want)
	}
}

// Our choice: a connection that was idle starts over, since its last base rate says nothing about
// the flows that send now.
func TestIdleConnectionStartsOver(t *testing.T) {
	c := newScript(t, simple(), 10*gbps)
	c.ack(100*gbps, 0) // the others have finished
	c.wantRate(100 * gbps)
	c.wait(units.Millisecond)
	c.s.OnStart(c.now)
	c.wantRate(10 * gbps)
	c.ack(100*gbps, 0)
	c.wantRate(100 * gbps)
}

// Our choice: the rtt of line 12 is the base RTT. With the measured RTT, which is an option, the
// sender always paces.
func TestMeasuredRTT(t *testing.T) {
	p := simple()
	p.RTT = pc4.MeasuredRTT
	c := newScript(t, p, 0)
	c.ack(10*gbps, 4*us) // RTT 8 us
	c.wantCWND(2.4414)
	c.wantPacing(10 * gbps)
	c.ack(80*gbps, 4*us)
	c.wantPacing(80 * gbps)

	c = newScript(t, simple(), 0)
	c.ack(10*gbps, 4*us)
	c.wantCWND(1.2207)
}

// docs/adr/0011: ai and hai are ratios of the base rate, so that all flows of a receiver together
// gain the same whatever their number. Without a base rate they are ratios of one packet per base
// RTT (8.192 Gb/s here).
func TestIncrementsAreSharesOfTheBaseRate(t *testing.T) {
	c := newScript(t, simple(), 0)
	c.ack(20*units.Mbps, 0)
	c.wait(5 * us)
	c.ack(20*units.Mbps, 0)
	c.wantRate(24 * units.Mbps)

	p := simple()
	p.Initial, p.InitialWindow = pc4.AtWindow, 5000
	c = newScript(t, p, 0)
	c.wait(5 * us)
	c.ack(0, us/2)
	c.wantRate(10*gbps + 819200*units.Kbps)
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	if err := pc4.Defaults().Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*pc4.Params){
		"target":   func(p *pc4.Params) { p.TargetQtime = -3 },
		"interval": func(p *pc4.Params) { p.AdjustInterval = 1 },
		"ai":       func(p *pc4.Params) { p.AI = -0.1 },
		"hai":      func(p *pc4.Params) { p.HAI = 2 },
		"beta":     func(p *pc4.Params) { p.Beta = 0 },
		"max_mdf":  func(p *pc4.Params) { p.MaxMDF = 1 },
		"paced":    func(p *pc4.Params) { p.PacedBelow = -1 },
		"epsilon":  func(p *pc4.Params) { p.Epsilon = -1 },
		"window":   func(p *pc4.Params) { p.Initial, p.InitialWindow = pc4.AtWindow, 0 },
		"source":   func(p *pc4.Params) { p.BaseRate = "guess" },
		"initial":  func(p *pc4.Params) { p.Initial = "slow" },
		"rtt":      func(p *pc4.Params) { p.RTT = "smoothed" },
	} {
		p := pc4.Defaults()
		change(&p)
		if p.Check() == nil {
			t.Errorf("%s: %+v passes", name, p)
		}
	}
}

// Section IV-B: "with and without the adjust rate feature enabled". Without it the rate is the base
// rate, whatever the delay.
func TestNeverAdjusted(t *testing.T) {
	p := simple()
	p.AdjustInterval = 0
	c := newScript(t, p, 0)
	c.ack(10*gbps, 0)
	c.wait(units.Second)
	c.ack(10*gbps, 0)
	c.ack(10*gbps, 100*us)
	c.wantRate(10 * gbps)
	c.ack(20*gbps, 0)
	c.wantRate(20 * gbps)
}

// A base rate is a share of the receiver's NIC. On a path with a slower link the rate stays at what
// that link carries, and increases are shares of it.
func TestSlowestLinkBoundsRates(t *testing.T) {
	l := idlePath()
	l.Slowest = 5 * gbps
	c := &script{t: t, s: pc4.NewSender(simple(), l, 25*gbps)}
	c.wantRate(5 * gbps)
	c.ack(25*gbps, 0)
	c.wantRate(5 * gbps)
	c.timeout()
	c.wantRate(2500 * units.Mbps)
	c.ack(25*gbps, 2*us)
	c.wait(5 * us)
	c.ack(25*gbps, 2*us) // 1 us above the target: 0.8/4 less
	c.wantRate(4 * gbps)
	c.wait(5 * us)
	c.ack(25*gbps, us-1)
	c.wantRate(4500 * units.Mbps)
}
