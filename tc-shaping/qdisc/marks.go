package qdisc

import (
	"math"

	"weft/units"
)

// The model of sch_red with Wlog 0 (include/net/red.h, Linux 4.14 to 6.18), and how two of them
// approximate a switch:
//
// The average is the number of bytes queued below it when a packet arrives, without that packet
// (red_calc_qavg_no_idle_time). After the queue has run empty, it is instead the length at the last
// arrival, reduced by a table of shifts; with all shifts at their maximum, 31, it becomes zero.
//
// Below qth_min nothing is marked, from qth_max on everything. In between, marks follow Floyd's
// second method: after a mark, sch_red draws a number R from [0, m) with m = 1/p_b, and marks the
// first packet whose index since then reaches R, where p_b = max_P (queue - qth_min) / (qth_max -
// qth_min). The gaps between marks are therefore nearly uniform on 1..m, and the share of marked
// packets is not p_b but about 2 p_b / (1 + p_b): 18 % for a requested 10 %, 67 % for 50 %.
// Switches, the models of DCQCN and PC4, and the modelled fabric draw for each packet.
//
// Over u = Pmax (queue - Min) / (Max - Min), the requested share, the shape is the same for all
// marking profiles. Up to Pmax = singleStage, one stage with a smaller max_P stays within 2.5
// points of the requested line. Above, a second stage below it, which starts later, compensates for
// the curvature. Two stages mark independently: 1 - (1-f1)(1-f2).

// The slopes and starts of two stages over u minimise the largest distance from the requested line
// over [0, 1], which is 4.4 points. TestMarksFollowTheLine checks it.
const (
	singleStage = 0.5
	firstSlope  = 0.690781
	secondStart = 0.649501
	secondSlope = 2.196851
)

// stages returns the REDs that together mark like r, outermost first.
func stages(r RED) []REDStage {
	if r.Min == r.Max || r.Pmax == 0 {
		// A step: above Max everything is marked, and nothing lies between qth_min and qth_max.
		return []REDStage{{Min: r.Max + 1, Max: r.Max + 1, MaxP: math.MaxUint32}}
	}
	if r.Pmax <= singleStage {
		return []REDStage{{Min: r.Min, Max: r.Max + 1, MaxP: probability(slope(r.Pmax) * r.Pmax)}}
	}
	start := r.Min + units.Bytes(math.Round(secondStart/r.Pmax*float64(r.Max-r.Min)))
	return []REDStage{
		{Min: r.Min, Max: r.Max + 1, MaxP: probability(firstSlope * r.Pmax)},
		{Min: start, Max: r.Max + 1, MaxP: probability(secondSlope * (r.Pmax - secondStart))},
	}
}

// slope returns the ratio of max_P to Pmax for a single stage. It balances the error: the marked
// share is as far above the requested line in the middle as below it at the end. It is 1/2 for a
// small Pmax and 0.63 for singleStage.
func slope(pmax float64) float64 {
	low, high := 0.5, 1.0
	for range 30 {
		s := (low + high) / 2
		above := 0.0
		for i := range 100 {
			u := pmax * float64(i) / 100
			above = max(above, marked(s*u)-u)
		}
		if above < pmax-marked(s*pmax) {
			low = s
		} else {
			high = s
		}
	}
	return low
}

// marked returns the share of packets that sch_red marks at p_b: the inverse of the mean gap, a
// number drawn from [0, m) and rounded up.
func marked(pb float64) float64 {
	if pb <= 0 {
		return 0
	}
	m := 1 / pb
	k := math.Floor(m)
	return m / ((k + 1) * (m - k/2))
}

// Patience returns the largest number of consecutive packets that stay unmarked while each finds at
// least queue bytes waiting. It exists because sch_red's gaps are bounded; math.MaxInt means no
// bound.
func (r RED) Patience(queue units.Bytes) int {
	if r.Drawn {
		if queue > r.Max {
			return 0
		}
		return math.MaxInt
	}
	most := math.MaxInt
	for _, s := range stages(r) {
		switch {
		case queue >= s.Max:
			return 0
		case queue > s.Min && s.MaxP > 0:
			pb := float64(s.MaxP) / (1 << 32) * float64(queue-s.Min) / float64(s.Max-s.Min)
			most = min(most, int(math.Ceil(1/pb)))
		}
	}
	return most
}

// probability returns p in units of 2^-32. 1 becomes the largest value below it.
func probability(p float64) uint32 { return uint32(min(math.Round(p*(1<<32)), math.MaxUint32)) }
