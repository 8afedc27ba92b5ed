package qdisc

import (
	"math"

	"weft/units"
)

// What sch_red does with Wlog 0 (include/net/red.h, Linux 4.14 to 6.18), and what it takes to make a switch of it:
//
// The average is the bytes that wait below it as a packet arrives, that packet not counted (red_calc_qavg_no_idle_time),
// unless the queue has run empty: then it is the length at the last arrival, made smaller by a table of shifts. All
// shifts at their most, 31, make it zero.
//
// Below qth_min nothing is marked, from qth_max on everything. Between them a mark comes by Floyd's second method: after a
// mark a number R is drawn from [0, m), m = 1/p_b, and the first packet whose place since then reaches it is marked, where
// p_b = max_P (queue - qth_min) / (qth_max - qth_min). So the gaps between marks are nearly uniform on 1..m, and the share of
// packets marked is not p_b but about 2 p_b / (1 + p_b): 18 % where 10 % is asked, 67 % where 50 % is. Switches, the
// models of DCQCN and PC4, and the modelled fabric draw for each packet.
//
// The shape is the same for all marking profiles with u = Pmax (queue - Min) / (Max - Min), the share asked for. Up to
// singleStage, one stage with a smaller max_P is within 2.5 points of the line, and better for less; above, a second one below
// it that starts later makes up for the bend. Two stages mark as if independent: 1 - (1-f1)(1-f2).

// The slopes and starts, over u, of two stages were found by minimising the greatest distance from the line over
// [0, 1]: 4.4 points. TestMarksFollowTheLine holds it.
const (
	singleStage = 0.5
	firstSlope  = 0.690781
	secondStart = 0.649501
	secondSlope = 2.196851
)

// stages returns the REDs that together mark as r says, outermost first.
func stages(r RED) []REDStage {
	if r.Min == r.Max || r.Pmax == 0 {
		// A step: more than Max waits, and everything is marked. Nothing is between qth_min and qth_max.
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

// slope is what max_P is of Pmax for one stage, so that the share marked is nowhere far from the line: as much above it
// in the middle as below it at the end. It is 1/2 for a small Pmax and 0.63 for singleStage.
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

// marked is the share of packets that sch_red marks at p_b: one in the mean of a number drawn from [0, m), rounded up.
func marked(pb float64) float64 {
	if pb <= 0 {
		return 0
	}
	m := 1 / pb
	k := math.Floor(m)
	return m / ((k + 1) * (m - k/2))
}

// MarkedShare is the share of packets that the stages of a tree mark while the queue stays at a length: the line that was asked for, as
// nearly as the kernel can.
func (t Tree) MarkedShare(queue units.Bytes) float64 {
	unmarked := 1.0
	for _, q := range t.Near {
		s, ok := q.Options.(REDStage)
		switch {
		case !ok || queue < s.Min:
		case queue >= s.Max:
			return 1
		default:
			pb := float64(s.MaxP) / (1 << 32) * float64(queue-s.Min) / float64(s.Max-s.Min)
			unmarked *= 1 - marked(pb)
		}
	}
	return 1 - unmarked
}

// Patience is the most packets in a row that go unmarked where each finds at least so much waiting, since sch_red's gaps between marks have an
// end; math.MaxInt: any number.
func (r RED) Patience(queue units.Bytes) int {
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

// probability is p in 2^-32, of which 1 is the nearest below.
func probability(p float64) uint32 { return uint32(min(math.Round(p*(1<<32)), math.MaxUint32)) }
