package servo

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/clocksync"
	"weft/units"
)

// plant is a clock that a servo steers: skew and wander against the reference, and noise on what is
// measured.
type plant struct {
	r      *rand.Rand
	skew   float64
	wander float64 // relative, per square root of a second
	jitter units.Time
	local  units.Time
	ref    units.Time
	line   clocksync.Correction
}

// step lets an interval pass and returns the measurement at its end.
func (p *plant) step(interval units.Time) Sample {
	p.skew += p.wander * math.Sqrt(interval.Seconds()) * p.r.NormFloat64()
	p.ref += interval
	p.local += interval + units.Time(float64(interval)*p.skew)
	sync := p.line.At(p.local)
	noise := units.Time(float64(p.jitter) * p.r.NormFloat64())
	return Sample{Local: p.local, Sync: sync, Offset: sync - p.ref + noise}
}

// apply corrects the clock as the servo requires.
func (p *plant) apply(s Sample, rate float64, st State) {
	if st == Unlocked {
		return
	}
	p.line = p.line.Rebase(s.Local)
	p.line.Rate = rate
	if st == Jump {
		p.line.Offset -= s.Offset
	}
}

// clockError returns the error of the corrected clock.
func (p *plant) clockError() units.Time { return p.line.At(p.local) - p.ref }

// allServos returns a servo of each kind.
func allServos(t *testing.T, interval units.Time) map[string]Servo {
	t.Helper()
	pi, err := NewPI(PIConfig{Interval: interval, Gains: DefaultGains(), Limits: DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	lr, err := NewLinReg(LinRegConfig{Interval: interval, Limits: DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Servo{"pi": pi, "linreg": lr}
}

// Gains are normalised: what happens from sample to sample is the same at 1 s and at 1 ms.
func TestServosSettleAtAnyInterval(t *testing.T) {
	for _, interval := range []units.Time{units.Second, units.Millisecond, 100 * units.Microsecond} {
		for name, s := range allServos(t, interval) {
			p := &plant{r: rand.New(rand.NewPCG(1, 2)), skew: 100e-6, line: clocksync.Correction{Offset: 100 * units.Millisecond}, jitter: 10 * units.Nanosecond}
			jumps := 0
			var worst units.Time
			for i := range 200 {
				x := p.step(interval)
				rate, st := s.Update(x)
				if st == Jump {
					jumps++
				}
				p.apply(x, rate, st)
				if i >= 40 {
					worst = max(worst, p.clockError(), -p.clockError())
				}
			}
			if jumps != 1 || worst > 60*units.Nanosecond {
				t.Errorf("%s at %v: %d jumps, worst error %v after 40 samples; want 1 and at most 60 ns", name, interval, jumps, worst)
			}
			if h := s.Holdover(); math.Abs(h+100e-6) > 0.05/interval.Seconds()*1e-6+1e-7 {
				t.Errorf("%s at %v: holdover rate %.3g, want about -1e-4", name, interval, h)
			}
		}
	}
}

// A servo that was thrown off by a step of a clock starts again and steps.
func TestServosSurviveSteps(t *testing.T) {
	for _, by := range []units.Time{units.Microsecond * 20, -units.Millisecond, units.Second, -units.Second} {
		for name, s := range allServos(t, units.Millisecond) {
			p := &plant{r: rand.New(rand.NewPCG(1, 2)), skew: -20e-6}
			for i := range 300 {
				if i == 100 {
					p.local += by // the node's own clock
				}
				if i == 200 {
					p.ref += by
				}
				x := p.step(units.Millisecond)
				rate, st := s.Update(x)
				p.apply(x, rate, st)
				if e := max(p.clockError(), -p.clockError()); (i == 99 || i == 160 || i == 299) && e > 10*units.Nanosecond {
					t.Errorf("%s, step %v: error %v at sample %d", name, by, e, i)
				}
			}
		}
	}
}

// P alone passes on noise with variance P/(2-P).
func TestNoiseGainOfP(t *testing.T) {
	pi, err := NewPI(PIConfig{Interval: units.Millisecond, Gains: Gains{P: 0.7, I: 1e-9},
		Limits: Limits{MaxRate: 0.5, FirstStep: 1}})
	if err != nil {
		t.Fatal(err)
	}
	p := &plant{r: rand.New(rand.NewPCG(3, 4)), jitter: 100 * units.Nanosecond}
	var sum, mean float64 // the mean is what the first measurement of the frequency was wrong by
	const n = 20000
	for i := range n + 100 {
		x := p.step(units.Millisecond)
		rate, st := pi.Update(x)
		p.apply(x, rate, st)
		if i >= 100 {
			e := p.line.At(p.local) - p.ref
			sum += float64(e) * float64(e)
			mean += float64(e) / n
		}
	}
	if got, want := math.Sqrt(sum/n-mean*mean)/1e5, math.Sqrt(0.7/1.3); math.Abs(got-want) > 0.05 {
		t.Errorf("noise is passed on with %.3f, want %.3f", got, want)
	}
}

// In gear the noise of the first samples is averaged: after n samples it is passed on as by a
// regression over them.
func TestGearAveragesFromTheStart(t *testing.T) {
	var plain, geared float64
	for seed := range uint64(50) {
		for _, gear := range []bool{false, true} {
			pi, err := NewPI(PIConfig{Interval: units.Millisecond, Gains: Gains{P: 0.03, I: 0.0005}, Gear: gear, Limits: DefaultLimits()})
			if err != nil {
				t.Fatal(err)
			}
			p := &plant{r: rand.New(rand.NewPCG(seed, 4)), skew: 20e-6, jitter: 10 * units.Nanosecond}
			for range 60 {
				x := p.step(units.Millisecond)
				rate, st := pi.Update(x)
				p.apply(x, rate, st)
			}
			e := p.clockError().Nanoseconds()
			if gear {
				geared += e * e / 50
			} else {
				plain += e * e / 50
			}
		}
	}
	if g := math.Sqrt(geared); g > 5 || g > math.Sqrt(plain) {
		t.Errorf("rms error after 60 samples with noise of 10 ns: %.1f ns in gear, %.1f ns without; want at most 5", g, math.Sqrt(plain))
	}
}

// The wait for the first frequency counts samples: 0.016 / I.
func TestStartupWaitCountsSamples(t *testing.T) {
	for _, interval := range []units.Time{units.Second, units.Millisecond} {
		pi, err := NewPI(PIConfig{Interval: interval, Gains: Gains{P: 0.015, I: 0.00012}, Limits: DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		p := &plant{r: rand.New(rand.NewPCG(1, 2)), skew: 50e-6}
		for n := 1; ; n++ {
			x := p.step(interval)
			if _, st := pi.Update(x); st != Unlocked {
				if n != 135 {
					t.Errorf("at %v: decided at sample %d, want 135 (0.016/0.00012 = 133.3 intervals)", interval, n)
				}
				break
			}
		}
	}
}

// What saturates does not wind up.
func TestAntiWindup(t *testing.T) {
	pi, err := NewPI(PIConfig{Interval: units.Millisecond, Gains: DefaultGains(), Limits: Limits{MaxRate: 10e-6}})
	if err != nil {
		t.Fatal(err)
	}
	at := units.Time(0)
	for range 1000 {
		at += units.Millisecond
		pi.Update(Sample{Local: at, Offset: units.Millisecond})
	}
	if h := pi.Holdover(); math.Abs(h) > 10e-6 {
		t.Errorf("integral %.3g is beyond the limit", h)
	}
	at += units.Millisecond
	if rate, _ := pi.Update(Sample{Local: at, Offset: -units.Microsecond}); rate <= 0 {
		t.Errorf("rate %.3g after the offset changed its sign: the integral has wound up", rate)
	}
}

func TestRefusedConfigurations(t *testing.T) {
	ok := PIConfig{Interval: 1, Gains: DefaultGains(), Limits: DefaultLimits()}
	for want, change := range map[string]func(*PIConfig){
		"interval":   func(c *PIConfig) { c.Interval = 0 },
		"not stable": func(c *PIConfig) { c.Gains.P = 2 },
		"first step": func(c *PIConfig) { c.Limits.FirstStep = -1 },
		"threshold":  func(c *PIConfig) { c.Limits.Step = -1 },
		"(0, 1)":     func(c *PIConfig) { c.Limits.MaxRate = math.NaN() },
	} {
		c := ok
		change(&c)
		if _, err := NewPI(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want one with %q", c, err, want)
		}
	}
	if _, err := NewLinReg(LinRegConfig{Limits: DefaultLimits()}); err == nil {
		t.Error("LinReg took an interval of 0")
	}
	if _, err := NewLinReg(LinRegConfig{Interval: 1}); err == nil {
		t.Error("LinReg took a largest rate of 0")
	}
	for _, n := range []int{0, -1, 1 << 20} {
		if _, err := NewFilter(Median, n); err == nil {
			t.Errorf("a filter over %d values was taken", n)
		}
	}
	if _, err := NewFilter(9, 3); err == nil {
		t.Error("a filter of an unknown kind was taken")
	}
}

// Whatever comes in, rates stay finite and within the limit, and filters return what lies among
// their values.
func TestServosNeverLoseTheirNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := Limits{FirstStep: units.Time(rapid.Int64Range(0, 1e9).Draw(t, "first")), Step: units.Time(rapid.Int64Range(0, 1e12).Draw(t, "step")), MaxRate: 500e-6}
		pi, err := NewPI(PIConfig{Interval: units.Millisecond, Gains: DefaultGains(), Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		lr, err := NewLinReg(LinRegConfig{Interval: units.Millisecond, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		var b Bound
		span := rapid.SampledFrom([]int64{2, 1e9, 1e15, 4e18}).Draw(t, "span")
		for range rapid.IntRange(1, 150).Draw(t, "n") {
			s := Sample{
				Local:  units.Time(rapid.Int64Range(-span, span).Draw(t, "local")),
				Sync:   units.Time(rapid.Int64Range(-span/4, span/4).Draw(t, "sync")),
				Offset: units.Time(rapid.Int64Range(-span/4, span/4).Draw(t, "offset")),
			}
			for _, v := range []Servo{pi, lr} {
				rate, _ := v.Update(s)
				if !(math.Abs(rate) <= 500e-6) || !(math.Abs(v.Holdover()) <= 500e-6) || !(v.RateRatio() > 0.99 && v.RateRatio() < 1.01) {
					t.Fatalf("%T: rate %v, holdover %v, ratio %v after %+v", v, rate, v.Holdover(), v.RateRatio(), s)
				}
			}
			b.Add(s.Offset, pi.Holdover())
			if w, drift, ok := b.Last(8); ok && (w < 0 || !(drift >= 0)) {
				t.Fatalf("bound %v", w)
			}
		}
	})
}

func TestFiltersAgainstSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		var all []units.Time
		med, _ := NewFilter(Median, n)
		low, _ := NewFilter(Minimum, n)
		mean, _ := NewFilter(Mean, n)
		if _, ok := med.Value(); ok {
			t.Fatal("an empty filter has a value")
		}
		for range rapid.IntRange(1, 40).Draw(t, "values") {
			v := units.Time(rapid.Int64Range(-50, 50).Draw(t, "v"))
			all = append(all, v)
			recent := append([]units.Time(nil), all[max(0, len(all)-n):]...)
			lo, hi, sum := recent[0], recent[0], units.Time(0)
			for _, r := range recent {
				lo, hi, sum = min(lo, r), max(hi, r), sum+r
			}
			m, l, a := med.Add(v), low.Add(v), mean.Add(v)
			below, above := 0, 0
			for _, r := range recent {
				if r < m {
					below++
				}
				if r > m {
					above++
				}
			}
			if l != lo || m < lo || m > hi || below > (len(recent)+1)/2 || above > (len(recent)+1)/2 {
				t.Fatalf("of %v: median %d, least %d", recent, m, l)
			}
			if d := float64(a) - float64(sum)/float64(len(recent)); math.Abs(d) > 1 {
				t.Fatalf("of %v: mean %d", recent, a)
			}
		}
		med.Reset()
		if _, ok := med.Value(); ok {
			t.Fatal("a filter has a value after Reset")
		}
	})
}

// An offset at the start that is too small for a step says nothing of the frequency: with a gear it
// is slewed away and the frequency, known from two samples, stays. After Restart the first decision
// steps as the first one did.
func TestGearKeepsTheFrequencyOfAnOffset(t *testing.T) {
	for _, missing := range []int{1, 4} { // intervals between samples
		pi, err := NewPI(PIConfig{Interval: units.Millisecond, Gains: Gains{P: 0.2, I: 0.02}, Gear: true, Limits: DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		const skew = 20e-6
		p := &plant{r: rand.New(rand.NewPCG(1, 2)), skew: skew, local: 900 * units.Nanosecond}
		var far float64
		for i := range 60 {
			x := p.step(units.Time(missing) * units.Millisecond)
			rate, st := pi.Update(x)
			if st == Jump {
				t.Fatalf("stepped by %v", x.Offset)
			}
			if missing > 1 && st == Locked { // what corrects an offset ceases after an interval
				rate = pi.Holdover() + (rate-pi.Holdover())/float64(missing)
			}
			p.apply(x, rate, st)
			if i > 1 {
				far = max(far, math.Abs(pi.Holdover()+skew))
			}
		}
		if e := p.clockError(); far > 0.5e-6 || max(e, -e) > 5*units.Nanosecond {
			t.Errorf("every %d ms: the frequency was wrong by up to %.3g, and the clock is off by %v", missing, far, e)
		}
		pi.Restart()
		for range 3 {
			x := p.step(units.Millisecond)
			x.Offset += 2 * units.Microsecond
			if _, st := pi.Update(x); st == Jump {
				return
			}
		}
		t.Error("after Restart 2 us are no step")
	}
}

// The bound holds for the noise it was made of, and grows with age.
func TestBoundCoversAndGrows(t *testing.T) {
	for name, s := range allServos(t, units.Millisecond) {
		p := &plant{r: rand.New(rand.NewPCG(5, 6)), skew: 20e-6, wander: 1e-7, jitter: 50 * units.Nanosecond}
		var b Bound
		outside, n := 0, 0
		for i := range 5000 {
			x := p.step(units.Millisecond)
			rate, st := s.Update(x)
			p.apply(x, rate, st)
			if st == Jump {
				b.Reset()
			}
			if st == Locked {
				b.Add(x.Offset, s.Holdover())
			}
			if w, _, ok := b.Last(8); ok && i > 200 {
				n++
				if e := p.clockError(); max(e, -e) > w {
					outside++
				}
			}
		}
		if outside > 0 || n < 4000 {
			t.Errorf("%s: %d of %d errors lie outside the bound", name, outside, n)
		}
		if _, drift, _ := b.Last(8); drift <= 0 {
			t.Errorf("%s: the bound does not grow", name)
		}
	}
}

func TestStatesHaveNames(t *testing.T) {
	for s, want := range map[State]string{Unlocked: "unlocked", Jump: "jump", Locked: "locked", 9: "State(9)"} {
		if s.String() != want {
			t.Errorf("%q, want %q", s.String(), want)
		}
	}
}
