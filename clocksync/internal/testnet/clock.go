// Package testnet runs clocksync protocols with imperfect clocks over a small model of a network,
// for tests. There is one true time, which no protocol sees; each node has an oscillator with
// errors, and each ordered pair of nodes a path that delays, loses, duplicates and reorders
// messages.
//
// A test makes a World with New, which starts a protocol per node, schedules checks and faults with
// At and Every, and calls Run. Time and Bound are a node's synchronized time and its claim about
// it; true time is World.Now. Crash, Restart, Step and Inject are faults.
//
// A run is a function of its Config. World is in world.go, paths are in path.go, clocks here.
package testnet

import (
	"math"
	"math/rand/v2"

	"weft/clocksync"
	"weft/units"
)

// Oscillator holds the errors of a node's clock.
type Oscillator struct {
	Offset units.Time // of the hardware clock at the start
	Skew   float64    // initial error of the frequency, relative
	Wander float64    // random walk of the frequency, relative per square root of a second
	Jitter units.Time // standard deviation of a stamp
}

// clock is a running oscillator. Its phase is computed at the points of a grid, and interpolated
// linearly between them.
type clock struct {
	osc    Oscillator
	grid   units.Time
	random *rand.Rand
	rate   float64
	phase  []units.Time // monotonic clock minus true time, at multiples of grid
	hard   units.Time   // hardware clock minus monotonic clock
}

func newClock(o Oscillator, grid units.Time, seed uint64) *clock {
	return &clock{osc: o, grid: grid, random: rand.New(rand.NewPCG(seed, 1)), rate: o.Skew, phase: []units.Time{0},
		hard: o.Offset}
}

// mono returns the monotonic clock at a true time, which is not negative.
func (c *clock) mono(t units.Time) units.Time {
	k := int(t / c.grid)
	for len(c.phase) <= k+1 {
		c.phase = append(c.phase, c.phase[len(c.phase)-1]+units.Time(math.Round(float64(c.grid)*c.rate)))
		c.rate += c.osc.Wander * math.Sqrt(c.grid.Seconds()) * c.random.NormFloat64()
	}
	into := t - units.Time(k)*c.grid
	return t + c.phase[k] + units.Time(float64(c.phase[k+1]-c.phase[k])*float64(into)/float64(c.grid))
}

// when returns the first true time at or after after at which the monotonic clock shows m or more.
// Each round corrects the estimate by the clock's error there. Rates are close to 1, so four rounds
// end within a picosecond or so of the time; the loop behind them never returns too early a time.
func (c *clock) when(m, after units.Time) units.Time {
	t := max(after, m)
	for range 4 {
		t = max(after, t+m-c.mono(t))
	}
	for c.mono(t) < m {
		t += max(1, m-c.mono(t))
	}
	return t
}

// now returns the readings of both clocks at a true time.
func (c *clock) now(t units.Time) clocksync.Now {
	m := c.mono(t)
	return clocksync.Now{Mono: m, Hard: m + c.hard}
}

// stamp returns a noisy timestamp of the hardware clock at a true time.
func (c *clock) stamp(t units.Time) units.Time {
	return c.mono(t) + c.hard + units.Time(math.Round(float64(c.osc.Jitter)*c.random.NormFloat64()))
}
