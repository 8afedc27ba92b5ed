package measure

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weft/tc-shaping/qdisc"
	"weft/units"
)

const kb = units.KB

// rampSamples returns samples of a queue that grows packet by packet to a length and stays there a
// while, with the marks of sch_red (red.h) in one stage.
func rampSamples(random *rand.Rand, red qdisc.RED, to units.Bytes) (out []Sample) {
	tree, err := qdisc.Plan(qdisc.Direction{Rate: units.Mbps, Limit: units.MB, RED: &red}, qdisc.Full())
	if err != nil {
		panic(err)
	}
	stage := tree.Near[2].Options.(qdisc.REDStage)
	count, r := -1, 0.0
	for i := range to/kb + 30 {
		q := min(i*kb, to)
		marked := false
		switch {
		case q < stage.Min:
			count = -1
		case q >= stage.Max:
			count, marked = -1, true
		default:
			if count++; count > 0 {
				share := float64(q-stage.Min) / float64(stage.Max-stage.Min)
				marked = float64(count)*share*float64(stage.MaxP)/(1<<32) >= r
			}
			if marked || count == 0 {
				r = random.Float64()
			}
			if marked {
				count = 0
			}
		}
		out = append(out, Sample{Queue: q, Marked: marked})
	}
	return out
}

// Correct marking passes. Marks with a wrong start, a wrong end, or a wrong share in between are
// detected.
func TestJudge(t *testing.T) {
	red := func(from, to units.Bytes, pmax float64) qdisc.RED {
		return qdisc.RED{Min: from, Max: to, Pmax: pmax, ECN: true}
	}
	slope, step := red(60*kb, 150*kb, 0.2), red(60*kb, 60*kb, 1)
	for _, c := range []struct {
		name        string
		asked, made qdisc.RED
		early       bool
		missing     bool
		share       bool // share is off in at least one of six examinations
	}{
		{"as asked", slope, slope, false, false, false},
		{"a step as asked", step, step, false, false, false},
		{"half of all at the end", red(20*kb, 60*kb, 0.5), red(20*kb, 60*kb, 0.5), false, false, false},
		{"no marks", slope, red(400*kb, 500*kb, 1), false, true, true},
		{"marks from Kmax on alone", slope, red(150*kb, 150*kb, 1), false, true, true},
		{"none above Kmax", slope, red(60*kb, 400*kb, 0.2*340/90), false, true, false},
		{"three packets too early", step, red(57*kb, 57*kb, 1), true, false, false},
		{"three packets too late", step, red(63*kb, 63*kb, 1), false, true, false},
		{"much too early", slope, red(20*kb, 150*kb, 0.5), true, false, true},
		{"five times as many", slope, red(60*kb, 61*kb, 1), false, false, true},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		off := 0
		var all share
		for i := range 6 {
			m := judge(rampSamples(random, c.made, 180*kb), &c.asked, kb)
			if (m.early > 0) != c.early || (m.missing > 0) != c.missing {
				t.Errorf("%s: %d too early, %d missing", c.name, m.early, m.missing)
			}
			if all.pool(m.between); i == 0 {
				all.what, all.points = m.between.what, m.between.points
			}
			if all.of > 0 && !all.finding().OK {
				off++
			}
		}
		if last := all.of > 0 && !all.finding().OK; c.share != last || !c.share && off > 0 {
			t.Errorf("%s: of six examinations, added up one by one, the share is off in %d: %+v", c.name, off,
				all.finding())
		}
	}
}

// An empty queue does not show whether it marks.
func TestMarksOfAQueueThatWasNotFilled(t *testing.T) {
	red := qdisc.RED{Min: 60 * kb, Max: 150 * kb, Pmax: 0.2, ECN: true}
	x := exam{d: qdisc.Direction{RED: &red, MTU: 986}, size: 986}
	x.marks(rampSamples(rand.New(rand.NewPCG(1, 2)), red, 40*kb), red.Max)
	if f := x.found.Findings[0]; f.OK || !strings.Contains(f.Measured, "no more than") {
		t.Errorf("%+v", f)
	}
}

// Shares of packets are judged over everything that was sent: twice the loss is detected, and so is
// no loss.
func TestSharesAreAddedUp(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	examine := func(p float64) *Found {
		s := share{what: lossProperty}
		for range 3600 {
			s.add(random.Float64() < p, 0.01, 0.01, 0.01)
		}
		x := exam{}
		x.addShare(s)
		x.found.Lost, x.found.Sent = s.hits, s.of
		return &x.found
	}
	ok := map[float64]int{}
	for _, p := range []float64{0, 0.005, 0.01, 0.02} {
		for range 100 {
			found := examine(p)
			for tries := 1; tries < 6 && !found.OK(); tries++ {
				again := examine(p)
				if again.Keep(found); again.Sent != (tries+1)*3600 {
					t.Fatalf("%d were sent in %d examinations", again.Sent, tries+1)
				}
				found = again
			}
			if found.OK() {
				ok[p]++
			}
		}
	}
	t.Log(ok)
	if ok[0] > 0 || ok[0.01] != 100 || ok[0.02] > 10 {
		t.Errorf("for 1 %% pass, of 100: %v", ok)
	}
}

// Packets lost on the link queued before.
func TestWaited(t *testing.T) {
	p := []Packet{{Arrived: 0}, {Arrived: 10}, {}, {}, {Arrived: 40}, {}}
	waited(p)
	for i, want := range []int64{10, 10, 20, 30, 40, 0} {
		if p[i].Arrived != want || p[i].Unseen != (i == 0 || i == 2 || i == 3) {
			t.Errorf("packet %d: %+v, want %d", i, p[i], want)
		}
	}
	if s := Queues(p, time.Nanosecond, 1); len(s) != 2 || !s[1].AfterLoss {
		t.Errorf("%+v", s)
	}
}

// LossTold reports true exactly if a link without loss would fail the same measurement.
func TestLossTold(t *testing.T) {
	for _, p := range []float64{0, 1e-9, 1e-3, 2e-3, 4e-3, 0.01, 0.5} {
		for _, sent := range []int{0, 1, 400, 4000} {
			s := share{what: lossProperty}
			for range sent {
				s.add(false, p, p, p)
			}
			f := Found{shares: []share{s}}
			if told, none := f.LossTold(), s.finding(); sent > 0 && told == none.OK || sent == 0 && told {
				t.Errorf("loss of %g, %d packets: told %v, %+v", p, sent, told, none)
			}
		}
	}
	if f := (&Found{shares: []share{{what: betweenProperty, of: 10, low: 9}}}); f.LossTold() {
		t.Error("marks are no loss")
	}
}
