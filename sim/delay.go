package sim

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/units"
)

// Delay is a distribution of delays: quantiles to three digits, but not finer than 1 ns; the mean as exact as a
// float64, the maximum exact.
type Delay struct {
	counts *hdrhistogram.Histogram // in ns
	sum    float64                 // in ps; an integer would overflow after 10⁹ packets of 10 ms
	most   units.Time
}

// longest is the longest delay that quantiles tell from longer ones.
const longest = 100 * units.Second

func newDelay() Delay {
	return Delay{counts: hdrhistogram.New(1, int64(longest/units.Nanosecond), 3)}
}

func (d *Delay) record(t units.Time) {
	d.sum += float64(t)
	d.most = max(d.most, t)
	// The value is in range, so the only error it returns cannot happen.
	_ = d.counts.RecordValue(int64(min(t, longest) / units.Nanosecond))
}

// Count returns how many delays were recorded.
func (d *Delay) Count() int64 { return d.counts.TotalCount() }

// Quantile returns the delay that a share q, in [0, 1], of all do not exceed; 0 when there are none.
func (d *Delay) Quantile(q float64) units.Time {
	return min(units.Time(d.counts.ValueAtQuantile(100*q))*units.Nanosecond, d.most)
}

// Mean returns the mean; 0 when there are none.
func (d *Delay) Mean() units.Time {
	if d.Count() == 0 {
		return 0
	}
	return units.Time(d.sum / float64(d.Count()))
}

// Max returns the longest.
func (d *Delay) Max() units.Time { return d.most }
