package strack_test

import (
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/strack"
	"weft/units"
)

// Fig. 7, scenario 1: "the acked packet is not ECN marked and its RTT is below the target RTT": the
// window is left alone at its maximum, else it grows "proportionally based on how far the RTT is
// from the target RTT".
func TestScenario1GrowsInProportion(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	c.wantCWND(100)
	c.ack(1, 0, false)
	c.wantCWND(100)
	c.shrink(40)
	w := c.s.CWND()
	c.ack(1, 0, false)
	full := c.s.CWND() - w
	w = c.s.CWND()
	c.ack(1, 6*us, false)
	quarter := c.s.CWND() - w
	near(t, "gain at a quarter of the target", quarter/full, 0.25, 0.01)
	w = c.s.CWND()
	c.ack(1, 8*us, false) // at the target, not below
	if c.s.CWND() > w {
		t.Error("grows at the target")
	}
}

// Fig. 7, scenario 2: marked, RTT below the target: "STrack chooses to switch path while keeping
// the congestion window intact". (The path: package path.)
func TestScenario2KeepsTheWindow(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	c.shrink(40)
	w := c.s.CWND()
	for range 50 {
		c.wait(base + 1)
		c.ack(1, 4*us, true)
	}
	c.wantCWND(w)
}

// Fig. 7, scenario 3: marked, RTT above the target: "STrack cuts window multiplicatively".
func TestScenario3CutsTheWindow(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	for range 200 { // the average comes to 16 us; the clock stands still, so that one decrease is all
		c.ack(1, 16*us, true)
	}
	w := c.s.CWND()
	c.wait(base + 1)
	c.ack(1, 16*us, true)
	near(t, "factor", c.s.CWND()/w, 0.6, 1e-6) // 1 - 0.8·(16-8)/16
}

// The factor is never below a half: at an average of 40 us it would be 0.36.
func TestDecreaseIsAtMostAHalf(t *testing.T) {
	p := steady()
	p.High = 10
	c := newScript(t, p, 400*gbps)
	for range 200 {
		c.ack(1, 40*us, true)
	}
	w := c.s.CWND()
	c.wait(base + 1)
	c.ack(1, 40*us, true)
	near(t, "factor", c.s.CWND()/w, 0.5, 1e-9)
}

// Fig. 7, scenario 4: "a packet that has experienced long queueing delay will not be ECN marked as
// no queue built up behind it. ... STrack actually starts increasing the window additively to avoid
// starving the link."
func TestScenario4GrowsAgain(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	c.shrink(40)
	w := c.s.CWND()
	c.wait(base + 1)
	c.ack(1, 25*us, false)
	c.wantCWND(w + 5*400.0/150/w)
}

// In heavy incast the window becomes what was achieved in one base RTT + target (Algorithm 4, lines
// 11-13).
func TestHeavyIncastTakesWhatWasAchieved(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	c.ack(4, 30*us, true)
	c.wait(16*us + 1)
	c.ack(2, 30*us, true) // closes the count: 6 packets, below 100/8
	if b, ok := c.s.Achieved(); !ok || b != 6*4000 {
		t.Fatalf("achieved %v, %v", b, ok)
	}
	c.wait(base + 1)
	c.ack(1, 30*us, true)
	c.wantCWND(6)
}

// As long as an eighth of the maximum or more gets through, the cut is by delay.
func TestAchievedAboveAnEighthIsCutByDelay(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	for range 50 {
		c.ack(1, 30*us, true)
	}
	c.wait(16*us + 1)
	c.ack(0, 30*us, true) // 50 packets achieved
	w := c.s.CWND()
	c.wait(base + 1)
	c.ack(0, 30*us, true)
	if f := c.s.CWND() / w; f < 0.5 || f > 0.6 {
		t.Errorf("factor %v", f)
	}
}

// "To ensure fast convergence of fairness, we periodically add a constant small increase": at the
// clock of acknowledgements.
func TestFairnessIsAddedOncePerRoundTrip(t *testing.T) {
	c := newScript(t, params.Defaults[strack.Params](), 400*gbps)
	c.shrink(40)
	c.calm()
	w := c.s.CWND()
	c.wait(base)
	c.ack(0, 4*us, true)
	c.wantCWND(w) // not more than a base RTT since the last
	c.wait(1)
	c.ack(0, 4*us, true)
	c.wantCWND(w + 0.4)
	c.wait(10 * base)
	c.ack(0, 4*us, true)
	c.ack(0, 4*us, true)
	c.wantCWND(w + 0.8)
}

// The message after a pause finds the window as it was, and a count that begins with it.
func TestPauseKeepsTheWindow(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	c.shrink(40)
	w := c.s.CWND()
	c.wait(units.Second)
	c.s.OnStart(c.now)
	c.wantCWND(w)
	c.wait(base)
	c.ack(1, 30*us, true)
	if _, ok := c.s.Achieved(); ok {
		t.Error("achieved is known after one base RTT: the pause was counted")
	}
}

// A loss alone moves no window (Algorithm 1, section 3.3).
func TestLossMovesNothing(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	for _, k := range []cc.LossKind{cc.Gap, cc.Timeout, cc.Probed} {
		c.s.OnLoss(c.now, cc.Loss{Kind: k, Size: 40000, Try: 1})
	}
	c.s.OnSent(c.now, cc.Sent{Size: 4000})
	c.wantCWND(100)
	if r := c.s.PacingRate(); r != 0 {
		t.Errorf("paced at %v", r)
	}
}

// The window in bytes is what the endpoint compares with.
func TestWindowInBytes(t *testing.T) {
	c := newScript(t, steady(), 400*gbps)
	if got := c.s.Window(); got != 400_000 {
		t.Errorf("window of %v, want a bandwidth-delay product", got)
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	for i, change := range []func(*strack.Params){
		func(p *strack.Params) { p.Target = -1 }, func(p *strack.Params) { p.Target = 2 * units.Second },
		func(p *strack.Params) { p.High = 0.5 }, func(p *strack.Params) { p.EWMA = 0 }, func(p *strack.Params) { p.EWMA = 1.1 },
		func(p *strack.Params) { p.Alpha = -1 }, func(p *strack.Params) { p.Beta = -1 }, func(p *strack.Params) { p.Eta = -1 },
		func(p *strack.Params) { p.Gamma = 0 }, func(p *strack.Params) { p.MaxMDF = 1 }, func(p *strack.Params) { p.MaxCWND = 0 },
		func(p *strack.Params) { p.Paths = 0 }, func(p *strack.Params) { p.Paths = 257 },
	} {
		p := params.Defaults[strack.Params]()
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		if change(&p); p.Check() == nil {
			t.Errorf("change %d passes: %+v", i, p)
		}
	}
}
