package servo

import (
	"fmt"

	"weft/units"
)

// PI is a proportional-integral servo after linuxptp's (pi.c): it measures the frequency from two
// samples, then steers it. Unlike linuxptp's, gains are normalised, and so is the wait before the
// measurement: it is counted in samples, not seconds.
type PI struct {
	cfg     PIConfig
	first   *Sample    // first of the two samples that measure the frequency; nil: none
	held    Sample     // storage of first
	last    units.Time // reading of the last sample
	started bool       // last is valid
	running bool       // the frequency has been measured
	stepped bool       // the first decision has been made
	count   int        // samples since running, for the gear
	drift   float64    // the integral: the rate without an offset
	residue float64    // rest of an initial offset that was not stepped, in ps; only with Gear
}

// PIConfig configures a PI servo.
type PIConfig struct {
	Interval units.Time // mean interval of samples, above 0
	Gains    Gains      // in steady state
	// Gear begins, after each start, with the gains of a regression over all samples so far, until
	// they fall below Gains. So noise is averaged from the first sample, and the error of the start
	// is forgotten quickly. An initial offset too small for a step is slewed away, and does not
	// count as an error of the frequency.
	Gear   bool
	Limits Limits
}

// startup is the wait before the frequency is measured, as a share of 1/I samples, at most
// startupMax (linuxptp: 0.016/ki seconds).
const (
	startup    = 0.016
	startupMax = 1000
)

// NewPI returns a servo, or an error that names the first value out of range.
func NewPI(cfg PIConfig) (*PI, error) {
	switch {
	case cfg.Interval <= 0:
		return nil, fmt.Errorf("servo: interval %v is not above 0", cfg.Interval)
	case !cfg.Gains.Stable():
		return nil, fmt.Errorf("servo: gains P %v and I %v are not stable: 0 < P < 2, I > 0 and 2P + I < 4 must hold",
			cfg.Gains.P, cfg.Gains.I)
	}
	if err := cfg.Limits.Check(); err != nil {
		return nil, err
	}
	return &PI{cfg: cfg}, nil
}

// Update implements Servo.
func (p *PI) Update(s Sample) (float64, State) {
	if p.started && s.Local <= p.last {
		p.Reset()
	}
	missed := float64(max(1, (s.Local-p.last+p.cfg.Interval/2)/p.cfg.Interval)) // intervals since the last sample
	p.last, p.started = s.Local, true
	if !p.running {
		return p.measure(s)
	}
	if p.cfg.Limits.exceeds(s.Offset, false) {
		p.Reset()
		p.last, p.started = s.Local, true
		p.hold(s)
		return p.drift, Unlocked
	}
	g := p.gains()
	p.count++
	interval := float64(p.cfg.Interval)
	share := float64(s.Offset) / interval
	// An offset that grew over several intervals says less about the frequency.
	integral := g.I * (share - p.residue/interval) / missed
	rate, inside := p.cfg.Limits.clamp(p.drift - integral - g.P*share)
	if inside { // anti-windup
		p.drift = p.cfg.Limits.frequency(p.drift - integral)
	}
	p.slewed(s.Offset, (p.drift-rate)*interval)
	return rate, Locked
}

// slewed reduces the residue by the share of the offset that is corrected until the next sample.
func (p *PI) slewed(offset units.Time, by float64) {
	if offset != 0 {
		p.residue *= 1 - max(0, min(1, by/float64(offset)))
	}
}

// measure waits for two samples that are far enough apart, and measures the frequency by them.
func (p *PI) measure(s Sample) (float64, State) {
	if p.first == nil {
		p.hold(s)
		return p.drift, Unlocked
	}
	g := p.gains()
	span := float64(s.Local - p.first.Local)
	if wait := min(startup/g.I, startupMax); span*1.001 < wait*float64(p.cfg.Interval) {
		return p.drift, Unlocked
	}
	p.drift = p.cfg.Limits.frequency(p.drift - float64(s.Offset-p.first.Offset)/span)
	p.first, p.running, p.count, p.residue = nil, true, 0, 0
	jump := p.cfg.Limits.exceeds(s.Offset, !p.stepped)
	p.stepped = true
	if jump {
		return p.drift, Jump
	}
	if p.cfg.Gear { // the initial offset says nothing about the slope of a line through all samples
		p.residue = float64(s.Offset)
	}
	return p.drift, Locked
}

// gains returns the gains for the next sample. With Gear they are the weights that a regression
// line through n samples gives to the last one, P = 2(2n-1)/(n(n+1)) and I = 6/(n(n+1)), but at
// most the default. n includes the two samples that measured the frequency.
func (p *PI) gains() Gains {
	if !p.cfg.Gear {
		return p.cfg.Gains
	}
	n := float64(p.count + 3)
	most := DefaultGains()
	return Gains{
		P: max(p.cfg.Gains.P, min(most.P, 2*(2*n-1)/(n*(n+1)))),
		I: max(p.cfg.Gains.I, min(most.I, 6/(n*(n+1)))),
	}
}

// hold makes s the first of the two samples that measure the frequency.
func (p *PI) hold(s Sample) {
	p.held = s
	p.first = &p.held
}

// Holdover implements Servo.
func (p *PI) Holdover() float64 { return p.drift }

// RateRatio implements Servo.
func (p *PI) RateRatio() float64 { return 1 }

// Reset implements Servo.
func (p *PI) Reset() { p.first, p.started, p.running, p.count = nil, false, false, 0 }

// Restart implements Servo.
func (p *PI) Restart() {
	p.Reset()
	p.stepped = false
}
