package qdisc

import (
	"math"
	"time"
)

// tableSize is the number of delays that a table of netem has here: its bound (NETEM_DIST_MAX in sch_netem.c).
const tableSize = 16384

// one is a factor of 1 in a table (NETEM_DIST_SCALE).
const one = 8192

// longestUnit is what sch_netem.c (tabledist) holds a unit of jitter in: 31 bits of nanoseconds.
const longestUnit time.Duration = math.MaxInt32

// means is the unit of exponential jitter. Factors end at 4, so the table may reach 16 means; its size ends it at 10.4 of them, and its
// mean is within 1e-4 of the asked.
const means = 4

// spread returns the unit and the table of random delays beyond the fixed one; nil when there are none. netem draws an
// entry of the table for each packet and adds unit x entry / 8192. So the table is the inverse of the
// distribution: its quantiles at (i + 1/2) / size.
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
	table := make([]int16, tableSize)
	for i := range table {
		table[i] = int16(math.Round(one * at((float64(i)+0.5)/tableSize)))
	}
	return table
}
