// Package clock models a node's oscillator and the two clocks that it drives.
//
//	             ┌─► monotonic clock: timers; never steps
//	oscillator ──┤
//	             └─► hardware clock: stamps; has an offset, and may step
//
// In comes a Config: offset, frequency error, noise of the frequency, and planned steps and ramps.
// Out come the readings of both clocks at an instant of true time (Mono, Hard), and the inverse
// (When).
//
// The one idea: the frequency is constant within each cell of a grid of true time. It is drawn from
// the seed, cell by cell, and never by a reading. So a reading does not depend on which readings
// came before.
//
// Times are picoseconds; frequency errors are ratios (20e-6 is 20 ppm fast). It is pure. Start
// reading at Config, then Clock.Mono.
package clock

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"weft/units"
)

// Config describes a clock. A Config with only Grid set is a perfect clock.
type Config struct {
	Offset units.Time // reading of the hardware clock at true time 0
	Skew   float64    // frequency error at true time 0

	// Wander is the step of the random walk of the frequency after a second, in 1/sqrt(s). Its
	// Allan deviation is Wander * sqrt(tau/3).
	Wander float64

	Steps []Step // steps of the hardware clock, in order of time
	Ramps []Ramp // ramps of the frequency, as from temperature

	Grid units.Time // width of a cell, above 0
	Seed [2]uint64
}

// Step moves the hardware clock at an instant of true time.
type Step struct{ At, By units.Time }

// Ramp changes the frequency by By, linearly from At for Over, like an oscillator that warms up.
type Ramp struct {
	At, Over units.Time
	By       float64
}

// maxFrequency is the largest frequency error: no oscillator is worse.
const maxFrequency = 0.01

// ahead is the number of cells that When draws beyond the last one that was read.
const ahead = 64

// Clock is an oscillator with its two clocks. It is not safe for concurrent use: cells are drawn
// when they are first needed.
type Clock struct {
	cfg   Config
	rand  *rand.Rand
	walk  float64 // value of the random walk in the last cell
	cells []cell
	asked int // the last cell of a reading
}

// cell is a period of constant frequency, Grid long.
type cell struct {
	offset    units.Time // monotonic clock minus true time at the beginning of the cell, rounded down
	rest      float64    // rest of the rounding, in [0, 1)
	frequency float64    // frequency error
}

// New returns a clock. It returns an error if the configuration is out of range.
func New(cfg Config) (*Clock, error) {
	switch {
	case cfg.Grid <= 0:
		return nil, fmt.Errorf("clock: grid of %d ps", cfg.Grid)
	case bad(cfg.Skew, maxFrequency) || bad(cfg.Wander, 1):
		return nil, fmt.Errorf("clock: frequency error %g, wander %g: beyond an oscillator's %g", cfg.Skew, cfg.Wander,
			maxFrequency)
	case cfg.Wander < 0:
		return nil, fmt.Errorf("clock: wander %g: a deviation is not negative", cfg.Wander)
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

// bad reports whether v is NaN or larger than most in size.
func bad(v, most float64) bool { return math.IsNaN(v) || math.Abs(v) > most }

// draw returns the frequency error of cell k, which must be the next one.
func (c *Clock) draw(k int) float64 {
	cfg := &c.cfg
	dt := cfg.Grid.Seconds()
	at := units.Time(k) * cfg.Grid
	f := cfg.Skew
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
		f += c.walk
	}
	return max(-maxFrequency, min(maxFrequency, f))
}

// grow draws all cells up to k.
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

// index returns the cell of true time t: the first one before 0.
func (c *Clock) index(t units.Time) int { return int(max(0, t) / c.cfg.Grid) }

// Mono returns the reading of the monotonic clock at true time t. It is 0 at 0 and never decreases.
func (c *Clock) Mono(t units.Time) units.Time {
	k := c.index(t)
	c.grow(k)
	c.asked = max(c.asked, k)
	return c.mono(k, t)
}

// mono returns the reading at true time t with the frequency of cell k.
func (c *Clock) mono(k int, t units.Time) units.Time {
	e := &c.cells[k]
	since := float64(t - units.Time(k)*c.cfg.Grid)
	return t + e.offset + units.Time(math.Floor(float64(e.frequency*since)+e.rest))
}

// Hard returns the reading of the hardware clock at true time t: the monotonic clock plus the
// offset and all steps so far.
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

// When returns the first instant of true time, from 0, at which the monotonic clock shows at least
// mono. If that is beyond the cells that may be drawn, it returns an earlier instant, later than
// all readings so far: call When again at that instant.
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

// Frequency returns the frequency error at true time t, as a ratio.
func (c *Clock) Frequency(t units.Time) float64 {
	k := c.index(t)
	c.grow(k)
	return c.cells[k].frequency
}
