package cc

import (
	"fmt"

	"weft/units"
)

// STrack and NSCC state their parameters for a network of 100 Gb/s and 12 us, and scale them to
// others (STrack paper, Table 1; uet-htsim, initNsccParams).
const (
	ReferenceBDP = 150_000 // bytes
	ReferenceRTT = 12 * units.Microsecond
)

// Proportional is the increase of a window below the target delay, in packets for each window
// acknowledged without any delay, at the reference network. On others it grows with the
// bandwidth-delay product and with the target, so with the square of the base RTT, while the window
// grows with the base RTT.
type Proportional float64

// Auto as a Proportional is the authors' 4, or what keeps within gentle and steep.
const Auto Proportional = -2

// Bounds of the increase in a base RTT without queueing, in bandwidth-delay products: the authors'
// 4 packets are a ninth at their network. Below gentle, windows that were halved stay small for
// tens of round trips: 87 % of the line with four flows of 1 KiB packets at 100 Gb/s and 4 us.
// Above steep, they jump between the smallest and the largest, and the queue runs empty in between:
// 84 % at 1 Gb/s and 4 ms. The bounds are ours.
const (
	gentle = 1.0 / 32
	steep  = 1.0 / 2
)

// authors is the increase of both papers.
const authors Proportional = 4

// adding returns the increase that adds share bandwidth-delay products within one base RTT.
func adding(share float64, l Link, target units.Time) Proportional {
	return Proportional(share * ReferenceBDP / float64(l.Packet) * float64(ReferenceRTT) / float64(max(target, 1)))
}

// On returns the increase for a path with a target delay, in packets at the reference network.
func (p Proportional) On(l Link, target units.Time) float64 {
	if p == Auto {
		p = min(max(authors, adding(gentle, l, target)), adding(steep, l, target))
	}
	return float64(p)
}

// Misfits returns a misfit of alpha if the increase is written and outside these bounds by more
// than a factor of two.
func (p Proportional) Misfits(l Link, target units.Time) []Misfit {
	least, most := adding(gentle, l, target), adding(steep, l, target)
	what := "windows jump between the smallest and the largest, and queues run empty in between"
	switch {
	case p == Auto || p == 0 || p >= least/2 && p <= 2*most:
		return nil
	case p < least:
		what = "windows that were cut stay small for long"
	}
	return []Misfit{{Key: "alpha", What: fmt.Sprintf("a window grows by %.2g bandwidth-delay products within a base "+
		"RTT of %v without queueing, so that %s; expected %.2g to %.2g, or auto", float64(p/most)*steep,
		l.BaseRTT.Rounded(), what, float64(least), float64(most))}}
}
