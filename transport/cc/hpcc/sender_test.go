package hpcc_test

import (
	"math"
	"strings"
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/hpcc"
	"weft/units"
)

// Section 3.2: "the initial window Winit = B·T"; "R = W/T": the line rate.
func TestStartsAtLineRate(t *testing.T) {
	c := newScript(t, fixed())
	c.wantWindow(bdp)
	c.wantU(1)
	if r := c.s.PacingRate(); r != 100*gbps {
		t.Errorf("rate %v", r)
	}
}

// The authors' simulator: the first acknowledgement only stores what the switches say.
func TestFirstTelemetryIsOnlyStored(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 1*units.MB, 500*units.KB) // a long queue, and no rate to be had from one record
	c.wantWindow(bdp)
	c.wantU(1)
}

// u = min(qlen, qlen')/(B·T) + txRate/B: 62.5 kB in queue at a busy line is 2.0; over a whole T
// that is U, and W = Wc/(2/0.95) + W_AI = 0.475·Wc + W_AI.
func TestUtilizationOfAFullQueue(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 0, 62500)
	c.ack(1000, 5*us, 62500, 62500)
	c.wantU(2)
	c.wantWindow(0.475*bdp + 100)
}

// "min(qlen, qlen')": a queue counts as far as it stood at both ends, which leaves out bursts.
func TestQueueIsTheLesserOfTwo(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 0, 0)
	c.ack(1000, 5*us, 62500, 62500)
	c.wantU(1)
	c.ack(1000, 5*us, 62500, 31250)
	c.wantU(1.5)
}

// "τ = min(τ, T); U = (1 − τ/T)·U + τ/T·u".
func TestUtilizationIsAnAverageOverT(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 0, 0)
	c.ack(1000, us, 0, 0) // u = 0 for a fifth of T
	c.wantU(0.8)
	c.ack(1000, us, 12500, 0) // u = 1
	c.wantU(0.84)
	c.ack(1000, 50*us, 312500, 0) // half the line for longer than T: all there is
	c.wantU(0.5)
}

// csg-htsim divides τ by T in integers: U would not move before a whole T has passed.
func TestPartsOfTCount(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 0, 0)
	c.ack(1000, 4*us, 0, 0)
	c.wantU(0.2)
}

// csg-htsim keeps the first telemetry for ever: rates would be averages since the beginning.
func TestTelemetryIsComparedWithTheLast(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 0, 0)
	c.ack(1000, 5*us, 0, 0)
	c.wantU(0)
	c.ack(1000, 5*us, 62500, 0)
	c.wantU(1)
}

// "if U ≥ η or incStage ≥ maxStage: W = Wc/(U/η) + W_AI", with maxStage 0 below η too.
func TestMultiplicativeBelowTheTargetToo(t *testing.T) {
	c := newScript(t, fixed())
	c.left = 0
	c.ack(1000, us, 0, 62500)
	c.ack(1000, 5*us, 62500, 62500)
	c.wantWindow(0.475*bdp + 100) // Wc from here
	c.ack(1000, 5*us, 47500, 0)   // U = 0.76
	c.wantU(0.76)
	c.wantWindow((0.475*bdp+100)*0.95/0.76 + 100)
}

// "else: W = Wc + W_AI; incStage++", up to maxStage times in a row.
func TestAdditiveStages(t *testing.T) {
	p := fixed()
	p.MaxStage = 2
	c := newScript(t, p)
	c.left = 0
	c.ack(1000, us, 0, 62500)
	c.ack(1000, 5*us, 62500, 62500)
	w := 0.475*bdp + 100.0
	c.wantWindow(w)
	for range 2 {
		c.ack(1000, 5*us, 47500, 0)
		w += 100
		c.wantWindow(w)
	}
	c.ack(1000, 5*us, 47500, 0)
	w = w*0.95/0.76 + 100
	c.wantWindow(w)
	c.ack(1000, 5*us, 47500, 0) // the count starts anew
	c.wantWindow(w + 100)
}

// "if ack.seq > lastUpdateSeq": once per round trip of packets Wc follows W; in between W answers
// each acknowledgement from the same Wc, so that one queue is not answered twice.
func TestFastReaction(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 0, 62500) // sent so far: 63500
	for range 62 {
		c.ack(1000, 5*us, 62500, 62500) // U = 2 each time; up to 63000 acknowledged
		c.wantWindow(0.475*bdp + 100)
	}
	c.ack(500, 5*us, 62500, 62500) // 63500: not yet beyond
	c.wantWindow(0.475*bdp + 100)
	c.ack(1000, 5*us, 62500, 62500) // 64500: Wc still Winit for this one
	c.wantWindow(0.475*bdp + 100)
	c.ack(1000, 5*us, 62500, 62500)
	c.wantWindow(0.475*(0.475*bdp+100) + 100)
	c.ack(1000, 5*us, 62500, 62500)
	c.wantWindow(0.475*(0.475*bdp+100) + 100)
}

// csg-htsim takes the current window for Wc: every acknowledgement of one round trip would cut
// again.
func TestOneQueueIsAnsweredOnce(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 0, 62500)
	for range 20 {
		c.ack(1000, 5*us, 62500, 62500)
	}
	if w := c.s.Window(); w < 0.47*bdp {
		t.Errorf("window of %v after 20 acknowledgements of one round trip", w)
	}
}

// The link with the most in flight for its size decides; its own rate and its own time count.
func TestBusiestHopDecides(t *testing.T) {
	c := newScript(t, fixed())
	slow, fast := cc.Hop{Rate: 50 * gbps}, cc.Hop{Rate: 400 * gbps}
	c.tell(1000, fast, slow)
	fast = cc.Hop{At: 5 * us, Sent: 125000, Rate: 400 * gbps}                  // half of it: u = 0.5
	slow = cc.Hop{At: 4 * us, Sent: 15000, Rate: 50 * gbps, Queued: 1_000_000} // 30 of 50 Gb/s; the queue is new
	c.tell(1000, fast, slow)
	c.wantU(0.2*1 + 0.8*0.6)
}

// Wherever the telemetry cannot be compared it is stored as the first was.
func TestOtherPathStartsAnew(t *testing.T) {
	for name, change := range map[string]func(*cc.Ack){
		"hops":  func(a *cc.Ack) { a.INT = append(a.INT, cc.Hop{At: 6 * us, Rate: 100 * gbps}) },
		"rates": func(a *cc.Ack) { a.INT[0].Rate = 40 * gbps },
		"path":  func(a *cc.Ack) { a.Path = 7 },
	} {
		c := newScript(t, fixed())
		c.ack(1000, us, 0, 62500)
		a := cc.Ack{Size: 1000, InFlight: bdp, INT: []cc.Hop{{At: 6 * us, Sent: 62500, Queued: 62500, Rate: 100 * gbps}}}
		change(&a)
		c.s.OnAck(0, a)
		c.wantU(1)
		for i := range a.INT {
			a.INT[i].At += 5 * us
			a.INT[i].Sent += 31250
			a.INT[i].Queued = 0
		}
		c.s.OnAck(0, a)
		if got := c.s.Utilization(); got == 1 {
			t.Errorf("other %s: telemetry from them was not compared with the first from them", name)
		}
	}
}

// Copies of an acknowledgement, overtaken ones and those without telemetry say nothing new.
func TestNothingNew(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, 10*us, 0, 62500)
	c.ack(0, 0, 0, 62500)
	c.tell(1000, cc.Hop{At: 5 * us, Rate: 100 * gbps})
	c.tell(1000)
	c.wantU(1)
	c.wantWindow(bdp)
	c.ack(1000, 5*us, 62500, 62500)
	c.wantU(2)
}

// Ours: telemetry from before a pause would measure the pause.
func TestPauseIsNotMeasured(t *testing.T) {
	c := newScript(t, fixed())
	c.left = 0
	c.ack(1000, us, 0, 62500)
	c.ack(1000, 5*us, 62500, 62500)
	w := 0.475*bdp + 100
	c.s.OnStart(0)
	c.ack(1000, units.Second, 1000, 0)
	c.wantWindow(w)
	c.ack(1000, 5*us, 62500, 0)
	c.wantU(1)
}

// A window is never above the initial one, whatever W_AI adds or a silent port says.
func TestWindowStaysBelowTheInitialOne(t *testing.T) {
	c := newScript(t, fixed())
	c.ack(1000, us, 0, 0)
	for range 50 {
		c.ack(1000, 5*us, 0, 0) // U = 0
	}
	c.wantU(0)
	c.wantWindow(bdp)
}

func TestLeastRate(t *testing.T) {
	p := fixed()
	p.MinRate.Rate = units.Gbps
	c := newScript(t, p)
	c.left = 0
	for range 100 {
		c.ack(1000, 5*us, 62500, 6_250_000)
	}
	c.wantWindow(625)
	if r := c.s.PacingRate(); r != units.Gbps {
		t.Errorf("rate %v", r)
	}
}

// "W_AI = Winit·(1−η)/N".
func TestAdditiveIncreaseRule(t *testing.T) {
	p := params.Defaults[hpcc.Params]()
	p.Flows = 2
	p.MaxStage = 100
	c := newScript(t, p)
	c.left = 0
	c.ack(1000, us, 0, 62500)
	c.ack(1000, 5*us, 62500, 62500)
	w := 0.475*bdp + 1562.5
	c.wantWindow(w)
	c.ack(1000, 5*us, 31250, 0)
	c.wantWindow(w + 1562.5)
}

// T is one for the whole network: a connection with a shorter path takes the longest one's.
func TestBaseRTTOfTheNetwork(t *testing.T) {
	p := fixed()
	p.BaseRTT = 10 * us
	c := newScript(t, p)
	c.wantWindow(2 * bdp)
	if r := c.s.PacingRate(); r != 100*gbps {
		t.Errorf("rate %v", r)
	}
	c.ack(1000, us, 0, 62500)
	c.ack(1000, 10*us, 125000, 62500)
	c.wantU(1.5)
}

func TestLossLeavesTheWindowAlone(t *testing.T) {
	c := newScript(t, fixed())
	c.s.OnSent(0, cc.Sent{Size: 1000, InFlight: 1000})
	c.s.OnLoss(0, cc.Loss{Kind: cc.Timeout, Size: 1000, Try: 1})
	c.s.OnLoss(0, cc.Loss{Kind: cc.Gap, Size: 1000})
	c.wantWindow(bdp)
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	if err := params.Defaults[hpcc.Params]().Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*hpcc.Params){
		"eta":        func(p *hpcc.Params) { p.Eta = math.NaN() },
		"max_stage":  func(p *hpcc.Params) { p.MaxStage = -1 },
		"wai: -1B":   func(p *hpcc.Params) { p.WAI = -1 },
		"flows: 0":   func(p *hpcc.Params) { p.Flows = 0 },
		"1 - eta":    func(p *hpcc.Params) { p.Eta = 1 },
		"wai is 80B": func(p *hpcc.Params) { p.WAI = 80 },
		"t: -1ps":    func(p *hpcc.Params) { p.BaseRTT = -1 },
		"min_rate":   func(p *hpcc.Params) { p.MinRate.Rate = -1 },
	} {
		p := params.Defaults[hpcc.Params]()
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
