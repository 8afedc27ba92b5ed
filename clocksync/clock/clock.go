// Package clock is a node's oscillator and the two clocks that it drives: what an imperfect clock shows at an instant of
// true time, and when it will show a given time.
//
// In comes a Config: offset, frequency error, its random walk, and what is to happen to it. Frequency is constant on the
// cells of a grid of true time, drawn from the seed cell by cell and never on a reading, so that what a clock shows does
// not depend on who looks. Times are picoseconds; frequencies are ratios (20e-6 is 20 ppm fast). It is pure.
package clock

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"weft/units"
)

// Config is a clock. The zero value but for Grid is a perfect one.
type Config struct {
	Offset units.Time // what the hardware clock shows at true time 0
	Skew   float64    // frequency error at true time 0
	Aging  float64    // of the frequency, per second

	// Noise of the frequency: Wander is the random walk's step after a second, in 1/sqrt(s), so that its Allan deviation is
	// Wander * sqrt(tau/3); White is the Allan deviation of white frequency noise at a second, White / sqrt(tau).
	Wander float64
	White  float64
	Most   float64 // the random walk stays within so much; 0: nothing holds it

	Steps []Step // of the hardware clock, in order of time
	Ramps []Ramp // of the frequency: temperature

	Grid units.Time // width of a cell, above 0
	Seed [2]uint64
}

// Step moves the hardware clock at an instant of true time.
type Step struct{ At, By units.Time }

// Ramp moves the frequency by By, linearly from At for Over: an oscillator that warms up.
type Ramp struct {
	At, Over units.Time
	By       float64
}

// maxFrequency bounds the frequency error: beyond, nothing is an oscillator.
const maxFrequency = 0.01

// ahead is how many cells When draws beyond those that were asked for.
const ahead = 64

// Clock is a clock. Not safe for concurrent use: cells are drawn when they are first asked for.
type Clock struct {
	cfg   Config
	rand  *rand.Rand
	walk  float64 // the random walk in the last cell
	cells []cell
	asked int // the last cell that a reading was in
}

// cell is a stretch of constant frequency, Grid wide.
type cell struct {
	offset    units.Time // of the monotonic clock from true time when the cell begins, rounded down
	rest      float64    // what rounding left, in [0, 1)
	frequency float64    // error
}

// New returns a clock.
func New(cfg Config) (*Clock, error) {
	switch {
	case cfg.Grid <= 0:
		return nil, fmt.Errorf("clock: grid of %d ps", cfg.Grid)
	case bad(cfg.Skew, maxFrequency) || bad(cfg.Aging, 1) || bad(cfg.Wander, 1) || bad(cfg.White, 1) || bad(cfg.Most, maxFrequency):
		return nil, fmt.Errorf("clock: frequency error %g, aging %g, wander %g, white noise %g within %g: beyond an oscillator's %g",
			cfg.Skew, cfg.Aging, cfg.Wander, cfg.White, cfg.Most, maxFrequency)
	case cfg.Wander < 0 || cfg.White < 0 || cfg.Most < 0:
		return nil, fmt.Errorf("clock: wander %g, white noise %g within %g: a deviation is not negative", cfg.Wander, cfg.White, cfg.Most)
	}
	for i, s := range cfg.Steps {
		if i > 0 && s.At < cfg.Steps[i-1].At {
			return nil, fmt.Errorf("clock: step %d comes before the one before it", i)
		}
	}
	for i, r := range cfg.Ramps {
		if bad(r.By, maxFrequency) || r.Over < 0 {
			return nil, fmt.Errorf("clock: ramp %d of %g in %d ps", i, r.By, r.Over)
		}
	}
	c := &Clock{cfg: cfg, rand: rand.New(rand.NewPCG(cfg.Seed[0], cfg.Seed[1]))}
	c.cells = append(c.cells, cell{frequency: c.draw(0)})
	return c, nil
}

func bad(v, most float64) bool { return math.IsNaN(v) || math.Abs(v) > most }

// draw returns the frequency error of cell k, the next.
func (c *Clock) draw(k int) float64 {
	cfg := &c.cfg
	dt := cfg.Grid.Seconds()
	at := units.Time(k) * cfg.Grid
	f := cfg.Skew + float64(cfg.Aging*at.Seconds())
	for _, r := range cfg.Ramps {
		switch {
		case at < r.At:
		case at >= r.At+r.Over:
			f += r.By
		default:
			f += float64(r.By * (float64(at-r.At) / float64(r.Over)))
		}
	}
	if cfg.Wander > 0 {
		c.walk += float64(cfg.Wander * math.Sqrt(dt) * c.rand.NormFloat64())
		if cfg.Most > 0 {
			c.walk = max(-cfg.Most, min(cfg.Most, c.walk))
		}
		f += c.walk
	}
	if cfg.White > 0 {
		f += float64(cfg.White / math.Sqrt(dt) * c.rand.NormFloat64())
	}
	return max(-maxFrequency, min(maxFrequency, f))
}

// grow draws cells up to k.
func (c *Clock) grow(k int) {
	for len(c.cells) <= k {
		last := &c.cells[len(c.cells)-1]
		gain := float64(last.frequency*float64(c.cfg.Grid)) + last.rest
		whole := math.Floor(gain)
		c.cells = append(c.cells, cell{
			offset: last.offset + units.Time(whole), rest: gain - whole, frequency: c.draw(len(c.cells)),
		})
	}
}

// index is the cell that true time t lies in; before 0, the first.
func (c *Clock) index(t units.Time) int { return int(max(0, t) / c.cfg.Grid) }

// Mono returns what the monotonic clock shows at true time t. It shows 0 at 0, and never runs back.
func (c *Clock) Mono(t units.Time) units.Time {
	k := c.index(t)
	c.grow(k)
	c.asked = max(c.asked, k)
	return c.mono(k, t)
}

// mono is Mono in cell k, or the line beyond it.
func (c *Clock) mono(k int, t units.Time) units.Time {
	e := &c.cells[k]
	since := float64(t - units.Time(k)*c.cfg.Grid)
	return t + e.offset + units.Time(math.Floor(float64(e.frequency*since)+e.rest))
}

// Hard returns what the hardware clock shows at true time t: the monotonic clock, its offset, and its steps so far.
func (c *Clock) Hard(t units.Time) units.Time {
	h := c.Mono(t) + c.cfg.Offset
	for _, s := range c.cfg.Steps {
		if s.At > t {
			break
		}
		h += s.By
	}
	return h
}

// When returns the first instant of true time, from 0 on, at which the monotonic clock shows mono or more. Where that is so
// far ahead that nobody knows how fast the clock will be until then, it returns an earlier instant, later than any
// that was asked for: ask again then.
func (c *Clock) When(mono units.Time) units.Time {
	if mono <= 0 {
		return 0
	}
	horizon := c.asked + ahead
	if far := units.Time(horizon) * c.cfg.Grid; mono/2 > far {
		return far
	}
	c.grow(horizon)
	begins := func(k int) units.Time { return c.mono(k, units.Time(k)*c.cfg.Grid) }
	k := sort.Search(horizon+1, func(k int) bool { return begins(k) >= mono }) - 1
	if k == horizon {
		return units.Time(horizon) * c.cfg.Grid
	}
	start := units.Time(k) * c.cfg.Grid
	e := &c.cells[k]
	t := start + units.Time((float64(mono-start-e.offset)-e.rest)/(1+e.frequency))
	for t > start && c.mono(k, t-1) >= mono {
		t--
	}
	for c.mono(k, t) < mono {
		t++
	}
	return min(t, start+c.cfg.Grid)
}

// Frequency returns the frequency error at true time t.
func (c *Clock) Frequency(t units.Time) float64 {
	k := c.index(t)
	c.grow(k)
	return c.cells[k].frequency
}
