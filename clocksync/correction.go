package clocksync

import (
	"fmt"
	"math"

	"weft/units"
)

// State says how a node knows the time.
type State uint8

// States of a Correction.
const (
	Free     State = iota // never synchronized: the correction is a guess, without a bound
	Locked                // synchronized
	Holdover              // was synchronized; goes on with what it knows, and the bound grows
)

func (s State) String() string {
	switch s {
	case Free:
		return "free"
	case Locked:
		return "locked"
	case Holdover:
		return "holdover"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Correction is a piece of the map from a hardware clock to synchronized time: from From on,
//
//	synchronized = hard + Offset + Rate * (hard - From), within Bound + Drift * |hard - From| of the cluster's time.
//
// The zero value changes nothing and promises nothing.
type Correction struct {
	From   units.Time // on the hardware clock
	Offset units.Time // at From
	Rate   float64    // added time per time: -20e-6 takes 20 ppm off. Finite, within MaxRate
	Slew   float64    // part of Rate that is correcting an offset, and is to cease when nobody replaces the line
	Bound  units.Time // at From, at least 0; without meaning while State is Free
	Drift  float64    // growth of the bound, at least 0
	State  State
}

// MaxRate is the largest rate of a sound correction: oscillators err by some 1e-4, and slewing adds to that.
const MaxRate = 0.01

// At returns the synchronized time at which the hardware clock shows hard.
func (c Correction) At(hard units.Time) units.Time {
	return hard + c.Offset + span(c.Rate, hard-c.From)
}

// BoundAt returns how far At(hard) may be from the cluster's time.
func (c Correction) BoundAt(hard units.Time) units.Time {
	d := hard - c.From
	if d < 0 {
		d = -d
	}
	return c.Bound + span(c.Drift, d)
}

// Rebase returns the same line, with the bound that it has there, as a correction that begins at from.
func (c Correction) Rebase(from units.Time) Correction {
	c.Bound = c.BoundAt(from)
	c.Offset = c.At(from) - from
	c.From = from
	return c
}

// Hold returns the line that goes on from a reading without what was correcting an offset: what is kept of a line that
// nobody will replace.
func (c Correction) Hold(from units.Time) Correction {
	c = c.Rebase(from)
	c.Rate -= c.Slew
	c.Slew = 0
	if c.State == Locked {
		c.State = Holdover
	}
	return c
}

// Check reports what makes a correction unusable: numbers that are none, or out of range.
func (c Correction) Check() error {
	switch {
	case math.IsNaN(c.Rate) || math.Abs(c.Rate) > MaxRate:
		return fmt.Errorf("clocksync: correction of rate %g, beyond %g", c.Rate, MaxRate)
	case math.IsNaN(c.Slew) || math.Abs(c.Slew) > 2*MaxRate:
		return fmt.Errorf("clocksync: correction that slews by %g, beyond %g", c.Slew, 2*MaxRate)
	case math.IsNaN(c.Drift) || c.Drift < 0 || c.Drift > 1:
		return fmt.Errorf("clocksync: correction whose bound drifts by %g", c.Drift)
	case c.Bound < 0:
		return fmt.Errorf("clocksync: correction with a bound of %d ps", c.Bound)
	case c.Offset > maxSpan || c.Offset < -maxSpan || c.From > maxSpan || c.From < -maxSpan:
		return fmt.Errorf("clocksync: correction by %d ps from %d ps on, beyond %d", c.Offset, c.From, maxSpan)
	}
	return nil
}

// maxSpan keeps sums of times far from overflow: 26 days.
const maxSpan = units.Time(1) << 61

// span returns rate * d, rounded; d up to 2.5 hours is exact to the picosecond.
func span(rate float64, d units.Time) units.Time {
	return units.Time(math.Round(float64(rate * float64(d))))
}
