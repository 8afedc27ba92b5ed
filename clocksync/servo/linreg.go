package servo

import (
	"fmt"
	"math"
	"math/bits"

	"weft/units"
)

// LinReg is a servo by linear regression after linuxptp's (linreg.c). It fits the reference as a
// function of the uncorrected local clock with a Regression, which adapts its size to noise and
// wander.
type LinReg struct {
	cfg    LinRegConfig
	points Regression
	drift  float64    // rate of the reference against the local clock, from the last fit
	rate   float64    // returned last
	known  bool       // drift is valid
	began  bool       // last is valid
	last   units.Time // reading of the last sample
	steps  bool       // the first decision has been made
}

// LinRegConfig configures a LinReg.
type LinRegConfig struct {
	Interval units.Time // between samples, above 0
	Limits   Limits
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
	if l.known && l.cfg.Limits.exceeds(s.Offset, false) { // a clock was stepped: earlier samples are useless
		l.Reset()
		l.last, l.began = s.Local, true
	}
	f, ok := l.points.Add(s.Local, s.Sync-s.Offset-s.Local)
	if !ok {
		return l.rate, Unlocked
	}
	offset := float64(s.Offset) - f.Above // of the synchronized clock from the fit
	l.drift = l.cfg.Limits.frequency(f.Slope)
	l.known = true
	jump := l.cfg.Limits.exceeds(units.Time(math.Round(clampFloat(offset))), !l.steps)
	l.steps = true
	if jump {
		l.rate = l.drift
		return l.rate, Jump
	}
	spread := 1.0
	if size := bits.Len(uint(f.Points)) - 1; size > 4 { // log2 of the size: longer fits correct more slowly
		spread = float64(size / 2)
	}
	l.rate, _ = l.cfg.Limits.clamp(f.Slope - offset/float64(l.cfg.Interval)/spread)
	return l.rate, Locked
}

// clampFloat limits a float to the range of units.Time.
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
	l.known = false
	l.points.Reset()
}

// Restart implements Servo.
func (l *LinReg) Restart() {
	l.Reset()
	l.steps = false
}
