package servo

import (
	"fmt"
	"math"

	"weft/units"
)

// Sizes of the regressions: powers of two from 4 to 64 points.
const (
	sizes     = 5
	smallest  = 4
	mostPoint = smallest << (sizes - 1)
)

// smoothing is the weight of a new prediction error in the running mean of a size; the first firstErrors are
// averaged instead. tolerance is how much worse than the best a larger size may be and still be taken.
const (
	smoothing   = 0.02
	firstErrors = 10
	tolerance   = 1.05
)

// LinReg is a servo by linear regression after linuxptp's (linreg.c). It fits the reference as a function of the
// uncorrected local clock over the last 4, 8, 16, 32 and 64 samples, keeps for each size how well it has
// predicted the next sample, and takes the largest size that predicts nearly as well as the best: many samples when
// the jitter dominates, few when the frequency wanders.
type LinReg struct {
	cfg    LinRegConfig
	points [mostPoint]point // ring
	n      int              // points so far, at most mostPoint
	next   int
	fits   [sizes]fit
	drift  float64 // of the reference against the local clock, from the chosen fit
	rate   float64 // last returned
	known  bool    // drift has been measured
	began  bool    // last is valid
	last   units.Time
	steps  bool // the first decision has been made
}

// LinRegConfig configures a LinReg.
type LinRegConfig struct {
	Interval units.Time // between samples, above 0
	Limits   Limits
}

// point is a sample: the reference at a reading of the local clock.
type point struct {
	local  units.Time
	offset units.Time // reference minus local clock
	weight float64
}

// fit is one regression: reference minus local clock = intercept + slope (local - at).
type fit struct {
	at               units.Time
	base             units.Time // of intercept
	intercept, slope float64    // picoseconds above base; relative
	err              float64    // running mean of the prediction error
	errs             int
	ok               bool
}

// NewLinReg returns a servo. The error says which value is out of range.
func NewLinReg(cfg LinRegConfig) (*LinReg, error) {
	if cfg.Interval <= 0 {
		return nil, fmt.Errorf("servo: interval %v is not above 0", cfg.Interval)
	}
	if err := cfg.Limits.Check(); err != nil {
		return nil, err
	}
	return &LinReg{cfg: cfg}, nil
}

// Update implements Servo.
func (l *LinReg) Update(s Sample) (float64, State) {
	if l.began && s.Local <= l.last {
		l.Reset()
	}
	l.last, l.began = s.Local, true
	if l.known && l.cfg.Limits.exceeds(s.Offset, false) { // a clock was stepped: what came before is of another line
		l.Reset()
		l.last, l.began = s.Local, true
	}
	p := point{local: s.Local, offset: s.Sync - s.Offset - s.Local, weight: s.weight()}
	l.judge(p)
	l.add(p)
	k := l.regress()
	if k < 0 {
		return l.rate, Unlocked
	}
	f := &l.fits[k]
	offset := float64(s.Offset) - f.intercept // of the synchronized clock from the fit, which begins at this sample
	l.drift, _ = l.cfg.Limits.clamp(f.slope)
	l.known = true
	jump := l.cfg.Limits.exceeds(units.Time(math.Round(clampFloat(offset))), !l.steps)
	l.steps = true
	if jump {
		l.rate = l.drift
		return l.rate, Jump
	}
	spread := 1.0
	if size := k + 2; size > 4 { // the power of two of the size: longer memories correct more slowly
		spread = float64(size / 2)
	}
	l.rate, _ = l.cfg.Limits.clamp(f.slope - offset/float64(l.cfg.Interval)/spread)
	return l.rate, Locked
}

// judge holds what each size predicted against the point that came.
func (l *LinReg) judge(p point) {
	for i := range l.fits {
		f := &l.fits[i]
		if !f.ok {
			continue
		}
		err := math.Abs(float64(p.offset-f.base) - f.intercept - f.slope*float64(p.local-f.at))
		f.errs++
		if f.errs <= firstErrors {
			f.err += (err - f.err) / float64(f.errs)
		} else {
			f.err += smoothing * (err - f.err)
		}
	}
}

func (l *LinReg) add(p point) {
	l.points[l.next] = p
	l.next = (l.next + 1) % mostPoint
	l.n = min(l.n+1, mostPoint)
}

// regress fits every size that there are points for and returns the index of the one to use, or -1.
func (l *LinReg) regress() int {
	for i := range l.fits {
		if size := smallest << i; l.n >= size {
			l.fits[i].solve(l, size)
		}
	}
	best := -1
	for i := range l.fits {
		f := &l.fits[i]
		if f.ok && (best < 0 || f.errs > 0 && f.err < l.fits[best].err) {
			best = i
		}
	}
	if best < 0 {
		return -1
	}
	for i := sizes - 1; i > best; i-- {
		if f := &l.fits[i]; f.ok && f.errs > 0 && f.err <= tolerance*l.fits[best].err {
			return i
		}
	}
	return best
}

// solve fits the last size points by weighted least squares. Sums are relative to the last point, so that they
// keep picoseconds.
func (f *fit) solve(l *LinReg, size int) {
	last := &l.points[(l.next+mostPoint-1)%mostPoint]
	var sw, sx, sy float64
	for i := 1; i <= size; i++ {
		p := &l.points[(l.next+mostPoint-i)%mostPoint]
		sw += p.weight
		sx += p.weight * float64(p.local-last.local)
		sy += p.weight * float64(p.offset-last.offset)
	}
	mx, my := sx/sw, sy/sw
	var sxx, sxy float64
	for i := 1; i <= size; i++ {
		p := &l.points[(l.next+mostPoint-i)%mostPoint]
		dx := float64(p.local-last.local) - mx
		sxx += p.weight * dx * dx
		sxy += p.weight * dx * (float64(p.offset-last.offset) - my)
	}
	if !(sxx > 0) {
		f.ok = false
		return
	}
	f.at, f.base = last.local, last.offset
	f.slope = sxy / sxx
	f.intercept = my - f.slope*mx
	f.ok = true
}

// clampFloat keeps a float within what a Time holds.
func clampFloat(x float64) float64 { return max(-1e18, min(1e18, x)) }

// Holdover implements Servo.
func (l *LinReg) Holdover() float64 { return l.drift }

// RateRatio implements Servo: the reference against the synchronized clock.
func (l *LinReg) RateRatio() float64 {
	if !l.known {
		return 1
	}
	return (1 + l.drift) / (1 + l.rate)
}

// Reset implements Servo.
func (l *LinReg) Reset() {
	l.began = false
	l.n, l.next, l.known = 0, 0, false
	l.fits = [sizes]fit{}
}
