package clocksync

import (
	"fmt"
	"math"

	"weft/units"
)

// State is the state of synchronization of a node.
type State uint8

// States of a Correction.
const (
	Free     State = iota // never synchronized; the correction has no bound
	Locked                // synchronized
	Holdover              // was synchronized; keeps its frequency, and the bound grows
)

// String returns the name of the state.
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

// Correction is the map from a hardware clock to synchronized time, from the reading From on:
//
//	synchronized = hard + Offset + Rate * (hard - From)
//
// This is within Bound + Drift * |hard - From| of the cluster's time.
//
// The zero value adds nothing and has no bound.
type Correction struct {
	From   units.Time // on the hardware clock
	Offset units.Time // at From
	Rate   float64    // added time per time, within ±MaxRate; -20e-6 corrects 20 ppm
	Slew   float64    // part of Rate that corrects an offset, and must end if the correction is not replaced
	Bound  units.Time // at From, at least 0; meaningless if State is Free
	Drift  float64    // growth of the bound, at least 0
	State  State
}

// MaxRate is the largest rate of a valid correction: oscillators err by about 1e-4, and slewing
// adds to that.
const MaxRate = 0.01

// At returns the synchronized time at a reading of the hardware clock.
func (c Correction) At(hard units.Time) units.Time {
	return hard + c.Offset + span(c.Rate, hard-c.From)
}

// BoundAt returns the bound of the difference between At(hard) and the cluster's time.
func (c Correction) BoundAt(hard units.Time) units.Time {
	d := hard - c.From
	if d < 0 {
		d = -d
	}
	return c.Bound + span(c.Drift, d)
}

// Rebase returns the same map as a correction that begins at from, with its bound there.
func (c Correction) Rebase(from units.Time) Correction {
	c.Bound = c.BoundAt(from)
	c.Offset = c.At(from) - from
	c.From = from
	return c
}

// Hold returns the correction for holdover from a reading on: the same map without the part of the
// rate that corrects an offset.
func (c Correction) Hold(from units.Time) Correction {
	c = c.Rebase(from)
	c.Rate -= c.Slew
	c.Slew = 0
	if c.State == Locked {
		c.State = Holdover
	}
	return c
}

// Check returns an error if the correction is unusable: NaN, or out of range.
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

// maxSpan is the largest time in a correction, 26 days, which keeps sums far from overflow.
const maxSpan = units.Time(1) << 61

// span returns rate * d, rounded. It is exact to the picosecond for d up to 2.5 hours. The
// conversion of the product keeps it from being fused with a later addition, so that all
// architectures compute the same.
func span(rate float64, d units.Time) units.Time {
	return units.Time(math.Round(float64(rate * float64(d))))
}
