package qdisc

import (
	"math"
	"time"
)

// TableSize is the number of entries in our tables of random delays, the largest that netem accepts
// (NETEM_DIST_MAX in sch_netem.c).
const TableSize = 16384

// TableOne is the table entry for a factor of 1 (NETEM_DIST_SCALE).
const TableOne = 8192

// longestUnit is the largest unit of jitter: sch_netem.c (tabledist) keeps it in 31 bits of
// nanoseconds.
const longestUnit time.Duration = math.MaxInt32

// means is the unit of exponential jitter in means of the distribution. Entries end at a factor of
// 4, so the table could reach 16 means; its size ends it at 10.4, and its mean is within 1e-4 of
// the requested one.
const means = 4

// LatestJitter is more means than the largest entry of the table of exponential jitter has.
const LatestJitter = 11

// spread returns the unit and the table of random delays on top of the fixed delay, or nil if there
// are none. For each packet netem draws an entry of the table and adds unit x entry / 8192. The
// table is therefore the inverse of the distribution: its quantiles at (i + 1/2) / size.
func (d Direction) spread() (unit time.Duration, table []int16) {
	switch {
	case d.Jitter > 0:
		return means * d.Jitter, quantiles(func(p float64) float64 { return -math.Log1p(-p) / means })
	case d.Reorder > 0:
		return d.ReorderBy, quantiles(func(p float64) float64 { return max(0, 1-(1-p)/d.Reorder) })
	}
	return 0, nil
}

func quantiles(at func(p float64) float64) []int16 {
	table := make([]int16, TableSize)
	for i := range table {
		table[i] = int16(math.Round(TableOne * at((float64(i)+0.5)/TableSize)))
	}
	return table
}
