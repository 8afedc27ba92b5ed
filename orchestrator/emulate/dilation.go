package emulate

import (
	"fmt"
	"math"
	"slices"

	"weft/results/record"
	"weft/units"
)

// Capacity is the load that a machine can carry.
type Capacity struct {
	// PacketsPerSecond is the number of data packets per second of real time, carried end to end
	// and each acknowledged, that would take all processors.
	PacketsPerSecond float64 `json:"packets_per_second"`
	// Lateness is the lateness at several loads, by rising load.
	Lateness []LatenessAt `json:"lateness"`
	// Foreign is the share of the processors that other programs took during the measurement.
	Foreign float64 `json:"foreign_cpu"`
	// Ordinary says that the kernel granted no real-time scheduling: other programs that start
	// later disturb a run more than they disturbed the measurement.
	Ordinary bool `json:"ordinary_scheduling,omitempty"`
	// Boot is that of another machine (runtime.BootID): two agents with the same share a machine.
	Boot string `json:"boot,omitempty"`
}

// LatenessAt is the lateness of a machine at one load.
type LatenessAt struct {
	// data packets offered per second of real time
	PacketsPerSecond float64 `json:"packets_per_second"`
	// the worst of the verdict's p99s, in real nanoseconds
	P99NS float64 `json:"p99_ns"`
}

// busyForeign is the share of other programs above which the machine counts as busy.
const busyForeign = 0.15

// busy reports whether the machine was busy when it was measured.
func (c Capacity) busy() bool { return c.Foreign > busyForeign }

// The share of its capacity that a machine should carry, with real-time scheduling and without.
// Beyond the first, queues of runnable processes grow, and lateness with them. Beyond the second,
// the fabric, which handles all packets, has used up its fair share of a processor as soon as
// another program wants it too, and waits for milliseconds.
const (
	workingLoad  = 0.65
	ordinaryLoad = 0.2
)

// working returns the share of the capacity to use.
func (c Capacity) working() float64 {
	if c.Ordinary {
		return ordinaryLoad
	}
	return workingLoad
}

// hopelessLoad is the multiple of its capacity at which a machine spends its time on
// retransmissions. It is above 1 because a packet costs a little less at a higher load.
const hopelessLoad = 2

// The expected lateness as a share of the ok bound, with real-time scheduling and without. The
// margin covers uneven loads and other programs: the measurement had an even load, and whatever
// else the machine did at the time.
const (
	latenessMargin = 0.6
	ordinaryMargin = 0.3
)

// margin returns the share of the ok bound that the expected lateness may take.
func (c Capacity) margin() float64 {
	if c.Ordinary {
		return ordinaryMargin
	}
	return latenessMargin
}

// lateAt returns the expected lateness at a load, in real nanoseconds: interpolated between two
// measured loads, and outside of them that of the nearest. More load never makes it smaller: if a
// smaller load was later, something else disturbed it.
func (c Capacity) lateAt(packetsPerSecond float64) float64 {
	var above LatenessAt
	for i, l := range slices.Backward(c.Lateness) {
		if i == len(c.Lateness)-1 {
			above = l
		}
		l.P99NS = min(l.P99NS, above.P99NS)
		if l.PacketsPerSecond <= packetsPerSecond {
			part := 1.0
			if above.PacketsPerSecond > l.PacketsPerSecond {
				part = min(1, (packetsPerSecond-l.PacketsPerSecond)/(above.PacketsPerSecond-l.PacketsPerSecond))
			}
			return l.P99NS + part*(above.P99NS-l.P99NS)
		}
		above = l
	}
	return above.P99NS
}

// hiccup is the lateness in real nanoseconds that an ordinary machine shows every few hundred
// wake-ups, whatever its load: the verdict must tolerate it, because one of the first hundred
// wake-ups of a short lab may be that late. It is 1 ms. Twice that also keeps medians of completion
// times within 2 % of the simulator's on an idle machine (ADR 22).
const hiccup = 2e6

// busyStretch is the largest factor by which lateness from other programs may stretch a lab. Such
// programs come and go, and the verdict shows their effect.
const busyStretch = 2

// StrictRTT returns the base round trip that limits lateness in a choice of dilation: that of the
// network, or a shorter one if the verdict allows less because of the delay that transports aim at.
func StrictRTT(baseRTT, delayTarget units.Time) units.Time {
	if delayTarget == 0 {
		return baseRTT
	}
	return min(baseRTT, units.Time(float64(delayTarget)/record.OKLateness))
}

// AutoDilation returns the smallest dilation, to two significant digits, at which a machine of
// capacity c carries load data packets per second of lab time and is late by less than the verdict
// allows for a network with the given base round trip. It tolerates at least a hiccup.
func AutoDilation(c Capacity, load float64, baseRTT units.Time) float64 {
	d := 1.0
	if c.PacketsPerSecond > 0 {
		d = roundUp(load / (c.working() * c.PacketsPerSecond))
	}
	allowed := c.margin() * record.OKLateness * baseRTT.Nanoseconds()
	if allowed <= 0 {
		return d
	}
	if len(c.Lateness) > 0 {
		d = max(d, roundUp(hiccup/(record.OKLateness*baseRTT.Nanoseconds())))
	}
	limit := math.Inf(1)
	if c.busy() {
		limit = roundUp(busyStretch * d)
	}
	for d < limit && c.lateAt(load/d) > allowed*d*(1+1e-9) {
		d = roundUp(d * 1.001) // the next value of two digits
	}
	return d
}

// crossing is the p99.9 of the time that a packet takes from one part of the network to another, in
// real nanoseconds, and crossingMargin how many times that fits into the least slack of a cut link.
// Measured on two processors with 40 runnable processes (docs/notes/2026-11-parts.md).
const (
	crossing       = 500e3
	crossingMargin = 4
)

// CutDilation returns the smallest dilation, to two significant digits, at which a machine of
// capacity c that carries load data packets per second of lab time brings packets from one part of
// the network to another in time: slack is fabric.Config.Slack.
func CutDilation(c Capacity, load float64, slack units.Time) float64 {
	d := roundUp(crossingMargin * crossing / slack.Nanoseconds())
	limit := roundUp(busyStretch * d)
	for d < limit && crossingMargin*c.lateAt(load/d) > d*slack.Nanoseconds() {
		d = roundUp(d * 1.001)
	}
	return d
}

// Certain reports whether any current machine carries load at dilation d, so that no measurement is
// needed before CheckDilation.
func Certain(d, load float64) bool { return d > 0 && load/d <= certain() }

// CheckDilation returns an error if a machine of capacity c, with a name, cannot possibly carry
// load data packets per second of lab time at dilation d. The error names the dilation that
// AutoDilation would choose. A dilation that is merely too small is allowed: the run will be late,
// and its verdict says so.
func CheckDilation(c Capacity, name string, d, load float64, baseRTT units.Time) error {
	if c.PacketsPerSecond <= 0 || d <= 0 || load/d <= hopelessLoad*c.PacketsPerSecond {
		return nil
	}
	return fmt.Errorf("dilation %.15g needs %.0f data packets/s, more than %d times the %.0f that %s was measured "+
		"to carry: use dilation %.15g, which should be ok, or --engine sim",
		d, load/d, hopelessLoad, c.PacketsPerSecond, name, AutoDilation(c, load, baseRTT))
}

// roundUp rounds up to two significant digits.
func roundUp(d float64) float64 {
	if d <= 1 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(d))-1)
	n := math.Ceil(d/unit - 1e-9)
	if unit < 1 {
		return n / math.Round(1/unit) // 1.3, not 1.3000000000000001
	}
	return n * unit
}
