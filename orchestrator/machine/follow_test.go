package machine

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A clock 10^6 s away, 100 ppm faster, is followed to within a tenth of the slack of a link at
// dilation 1000 for a minute, with round trips of 60 us to 1 ms. So is one that wanders by 1 ppm a
// second.
func TestFollow(t *testing.T) {
	for name, drift := range map[string]func(s float64) float64{
		"steady":  func(s float64) float64 { return 100e-6 * s },
		"slow":    func(s float64) float64 { return -100e-6 * s },
		"wanders": func(s float64) float64 { return 50e-6*s + 0.5e-6*s*s*math.Exp(-s/20) },
	} {
		r := rand.New(rand.NewPCG(1, 2))
		var f follower
		clock := func(now int64) int64 { return now + 1e15 + int64(1e9*drift(float64(now)/1e9)) }
		measure := func(now int64) {
			there, back := 30e3+int64(r.ExpFloat64()*100e3), 30e3+int64(r.ExpFloat64()*100e3)
			asked, answered, now := now, clock(now+there), now+there+back
			f.add(clockSample{at: (asked + now) / 2, offset: answered - (asked+now)/2, trip: now - asked})
		}
		now := int64(5e9)
		for range clockSamples {
			measure(now)
			now += 1e6
		}
		f.dilation = 1000
		f.start(now + 300e6)
		worst := 0.0
		for end := now + int64(time.Minute); now < end; now += int64(beat) {
			measure(now)
			if _, ok := f.steer(now + 2e6); !ok {
				continue
			}
			for k := range 10 {
				at := now + 2e6 + int64(k)*int64(beat)/10
				worst = max(worst, math.Abs(f.wrong(at, clock(at))))
			}
		}
		if t.Logf("%s: lab time differs by up to %.0f us of real time", name, worst/1e3); worst > 133e3 {
			t.Errorf("%s: lab time differs by up to %.0f us of real time", name, worst/1e3)
		}
		if f.stepped != 0 {
			t.Errorf("%s: stepped by %d ns", name, f.stepped)
		}
	}
}

// A step of a clock is told, and lab time comes back into line.
func TestFollowStep(t *testing.T) {
	f := follower{dilation: 1000}
	step := int64(0)
	now := int64(1e9)
	for i := range 100 {
		if i == 40 {
			step = 5e6
		}
		f.add(clockSample{at: now, offset: 7e9 + step, trip: 50e3})
		if i == clockSamples {
			f.start(now)
		}
		f.steer(now)
		now += int64(beat)
	}
	if f.stepped != 5e6 {
		t.Errorf("stepped by %d ns", f.stepped)
	}
	if wrong := f.wrong(now, now+7e9+step); math.Abs(wrong) > 1e3 {
		t.Errorf("wrong by %.0f ns", wrong)
	}
}

// wrong returns by how much lab time there differs from this machine's at now, in nanoseconds of
// real time.
func (f *follower) wrong(now, clock int64) float64 {
	return float64(clock-f.used.T0)/f.used.Dilation*f.t0.Dilation - float64(now-f.t0.T0)
}
