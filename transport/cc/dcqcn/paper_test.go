package dcqcn_test

import (
	"testing"

	"weft/transport/cc"
	"weft/transport/cc/dcqcn"
	"weft/units"
)

// "α init 1": the first notification halves the rate, and fast recovery goes halfway back to the
// old rate each time.
func TestFastRecovery(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	c.wantRate(100)
	c.cnp()
	c.wantRate(50)
	c.wantTarget(100)
	for _, want := range []float64{75, 87.5, 93.75, 96.875, 98.4375} {
		c.wait(55 * us)
		c.wantRate(want)
	}
}

// SIGCOMM 2015, section 3.2: "if the RP gets no feedback for K time units, it updates α = (1-g)α":
// 55 us in the paper.
func TestAlphaDecays(t *testing.T) {
	p := set(t, "paper")
	c := newScript(t, p)
	c.cnp()
	c.wait(units.Millisecond) // 18 intervals
	c.wantAlpha(0.93197)
}

// The cut takes the old α; Params.AlphaFirst takes the new one, as the authors' simulator does.
func TestCutBeforeAlphaRises(t *testing.T) {
	p := set(t, "paper")
	c := newScript(t, p)
	c.cnp()
	c.wait(110 * us) // α = (255/256)² = 0.992203; rate 87.5
	c.wantRate(87.5)
	c.cnp()
	c.wantRate(87.5 * (1 - 0.992202758789/2))
	c.wantAlpha(0.992233)

	p.AlphaFirst = true
	c = newScript(t, p)
	c.cnp()
	c.wantRate(50)
	c.wait(110 * us)
	c.cnp()
	c.wantRate(87.5 * (1 - 0.992233216763/2))
}

// A notification restarts the α timer: an interval that it cuts short does not count.
func TestNotificationRestartsTheAlphaTimer(t *testing.T) {
	p := set(t, "paper")
	p.G = 0.5
	c := newScript(t, p)
	c.cnp() // α stays 1
	c.wait(54 * us)
	c.cnp()
	c.wait(54 * us)
	c.wantAlpha(1)
	c.wait(us)
	c.wantAlpha(0.5)
	c.cnp()
	c.wantAlpha(0.75)
}

// A notification restarts the RP timer and both stages.
func TestNotificationRestartsRecovery(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	c.cnp()
	c.wait(54 * us)
	c.cnp() // 50 to 25, target 50
	c.wantRate(25)
	c.wantTarget(50)
	c.wait(54 * us)
	c.wantRate(25)
	c.wait(us)
	c.wantRate(37.5)
}

// "TR, T, BR, BC = 0" with a cut: what was sent before it does not count towards the next byte
// stage.
func TestACutRestartsTheByteCounter(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	c.cnp()
	c.send(6 * units.MB)
	c.cnp() // 50 to 25, target 50
	c.send(10*units.MB - 1)
	c.wantRate(25)
	c.send(1)
	c.wantRate(37.5)
}

// "max(T, BC) < F: fast recovery"; then "Rt += Rai" each time.
func TestAdditiveIncreaseByTimeAlone(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	c.s.At(0, 50*gbps, 50*gbps)
	c.wait(4 * 55 * us) // stages 1 to 4
	c.wantTarget(50)
	c.wait(55 * us)
	c.wantTarget(50.04)
	c.wantRate(50.02)
	c.wait(55 * us)
	c.wantTarget(50.08)
	c.wantRate(50.05)
}

// "every B bytes sent: BC++; increase()", and a remainder counts towards the next.
func TestBytesCountStages(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	c.cnp()
	c.send(10*units.MB - 1)
	c.wantRate(50)
	c.send(2)
	c.wantRate(75)
	c.send(10*units.MB - 2)
	c.wantRate(75)
	c.send(1)
	c.wantRate(87.5)
	c.send(20 * units.MB)
	c.wantRate(96.875)
}

// Before a cut and at the line there is nothing to recover: bytes count for nothing.
func TestBytesAtTheLineCountForNothing(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	c.send(95 * units.MB)
	c.cnp()
	c.send(5 * units.MB)
	c.wantRate(50)
}

// "min(T, BC) >= F: i = min(T,BC)-F+1; Rt += i*Rhai".
func TestHyperIncrease(t *testing.T) {
	p := set(t, "paper")
	c := newScript(t, p)
	c.s.At(0, 10*gbps, 10*gbps)
	c.send(50 * units.MB) // five byte stages: the fifth adds RAI
	c.wantTarget(10.04)
	c.wait(4 * 55 * us) // min is below F still: RAI each
	c.wantTarget(10.20)
	c.wait(55 * us) // both five: i = 1
	c.wantTarget(10.40)
	c.wait(55 * us) // time 6, bytes 5: i = 1
	c.wantTarget(10.60)
	c.send(10 * units.MB) // both six: i = 2
	c.wantTarget(11.00)
}

// uet-htsim compares with min > F, and so comes to hyper increase a stage late.
func TestHyperIncreaseIsNotAStageLate(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	c.s.At(0, 10*gbps, 10*gbps)
	c.send(50 * units.MB)
	c.wait(5 * 55 * us)
	if got := c.s.Target(); got == 10240*units.Mbps {
		t.Errorf("target %v: the stage at which both counters reach F added RAI, not RHAI", got)
	}
	c.wantTarget(10.40)
}

// uet-htsim keeps α in a static variable: one connection's congestion would cut every other's rate.
func TestConnectionsDoNotShareAlpha(t *testing.T) {
	p := set(t, "paper")
	p.InitialAlpha = 0.5
	a, b := newScript(t, p), newScript(t, p)
	for range 100 {
		a.cnp()
	}
	b.wantAlpha(0.5)
	b.cnp()
	b.wantRate(75)
}

// uet-htsim never moves the instant of the last decay, so that α collapses once an interval is
// over.
func TestAlphaDecaysOncePerInterval(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	c.cnp()
	c.wait(55 * us)
	for range 100 {
		c.s.Alpha(c.now)
		c.wait(us / 100)
	}
	c.wantAlpha(255.0 / 256)
}

// Ours: the target stops at the line. In the authors' simulator it does not, and a rate that stood
// at the line for long would not recover but jump.
func TestTargetStopsAtTheLine(t *testing.T) {
	p := set(t, "paper")
	p.Clamp = dcqcn.ClampAfterBytes // keeps a target that only time has raised
	p.G = 1.0 / (1 << 40)           // α stays 1
	c := newScript(t, p)
	c.cnp()
	c.wait(units.Second)
	c.wantTarget(100)
	c.wantRate(100)
	c.cnp()
	c.wait(55 * us)
	c.wantRate(75)
}

// Section 1.5 of the resolutions: when a cut brings the target down.
func TestClamp(t *testing.T) {
	for _, x := range []struct {
		clamp       string
		after       func(*script)
		name        string
		wantTarget  float64
		wantRateMax float64
	}{
		{dcqcn.ClampAlways, func(*script) {}, "nothing", 50, 25},
		{dcqcn.ClampAfterIncrease, func(*script) {}, "nothing", 100, 25},
		{dcqcn.ClampAfterBytes, func(*script) {}, "nothing", 100, 25},
		{dcqcn.ClampAfterIncrease, func(c *script) { c.wait(55 * us) }, "a timer", 75, 37.7},
		{dcqcn.ClampAfterBytes, func(c *script) { c.wait(55 * us) }, "a timer", 100, 37.7},
		{dcqcn.ClampAfterIncrease, func(c *script) { c.send(10 * units.MB) }, "bytes", 75, 37.7},
		{dcqcn.ClampAfterBytes, func(c *script) { c.send(10 * units.MB) }, "bytes", 75, 37.7},
	} {
		p := set(t, "paper")
		p.Clamp = x.clamp
		c := newScript(t, p)
		c.cnp()
		x.after(c)
		c.cnp()
		if got := float64(c.s.Target()) / 1e9; got != x.wantTarget {
			t.Errorf("%s, %s between two cuts: target %v Gb/s, want %v", x.clamp, x.name, got, x.wantTarget)
		}
		if got := float64(c.s.PacingRate()) / 1e9; got > x.wantRateMax {
			t.Errorf("%s, %s between two cuts: rate %v Gb/s, want at most %v", x.clamp, x.name, got, x.wantRateMax)
		}
	}
}

func TestRateStaysAboveItsLeast(t *testing.T) {
	c := newScript(t, set(t, "paper"))
	for range 1000 {
		c.cnp()
	}
	c.wantRate(0.1)

	p := set(t, "paper")
	p.MinRate.Rate = 200 * gbps // above the line: the line
	c = newScript(t, p)
	c.cnp()
	c.wantRate(100)
}

// An idle connection must not keep its host awake: recovery ends at the line.
func TestNoTimerAtTheLine(t *testing.T) {
	for _, name := range []string{"paper", "nvidia"} {
		c := newScript(t, set(t, name))
		if at, ok := c.s.Deadline(); ok {
			t.Errorf("%s: timer armed for %v before any notification", name, at)
		}
		c.cnp()
		c.wait(units.Second)
		if at, ok := c.s.Deadline(); ok {
			t.Errorf("%s: timer armed for %v at the line", name, at)
		}
		c.wantRate(100)
	}
}

// A window would hide pauses from the fabric (HPCC, issue 14); acknowledgements and losses say
// nothing to DCQCN.
func TestOnlyNotificationsMoveTheRate(t *testing.T) {
	c := newScript(t, set(t, "nvidia"))
	c.s.OnStart(0)
	c.s.OnAck(us, cc.Ack{Size: 1000, Packets: 1, RTT: units.Second, Marked: true})
	c.s.OnLoss(us, cc.Loss{Kind: cc.Timeout, Try: 3})
	c.s.OnLoss(us, cc.Loss{Kind: cc.Gap})
	c.wantRate(100)
	if w := c.s.Window(); w < 1<<62 {
		t.Errorf("window of %d bytes", w)
	}
}
