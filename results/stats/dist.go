package stats

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/results/record"
	"weft/units"
)

// The range and resolution of a Dist. Below 1 us the resolution is half a nanosecond, above it is
// 0.1 % of the value. Values above 1000 seconds count as 1000 seconds in quantiles.
const (
	lowest  = int64(units.Nanosecond)
	highest = int64(1000 * units.Second)
	digits  = 3 // significant decimal digits
)

// Dist is a distribution of times in bounded memory: about 250 KB for any number of values. Count,
// mean and maximum are exact; quantiles are nearest-rank to within 0.1 %, from an HDR histogram.
// The zero value is not usable; call NewDist. A Dist is not safe for concurrent use.
type Dist struct {
	hist  *hdrhistogram.Histogram // in picoseconds
	count int64
	sum   float64 // in picoseconds
	max   units.Time

	// fresh are the last recorded values, which hist does not have yet: its counts are not in the
	// cache, and the misses of several values overlap.
	fresh [32]int64
	n     int // number of fresh
}

// NewDist returns an empty distribution.
func NewDist() *Dist {
	return &Dist{hist: hdrhistogram.New(lowest, highest, digits)}
}

// Record adds one value. A negative value counts as 0.
func (d *Dist) Record(v units.Time) {
	v = max(v, 0)
	d.count++
	d.sum += float64(v)
	d.max = max(d.max, v)
	d.fresh[d.n] = min(int64(v), highest)
	if d.n++; d.n == len(d.fresh) {
		d.settle()
	}
}

// settle gives fresh to hist.
func (d *Dist) settle() {
	for _, v := range d.fresh[:d.n] {
		_ = d.hist.RecordValue(v) // the only possible error is a value out of range, and there are none
	}
	d.n = 0
}

// Count returns the number of values recorded.
func (d *Dist) Count() int64 { return d.count }

// Mean returns the mean, or 0 if nothing was recorded.
func (d *Dist) Mean() units.Time {
	if d.count == 0 {
		return 0
	}
	return units.Time(d.sum / float64(d.count))
}

// Max returns the largest value, or 0 if nothing was recorded.
func (d *Dist) Max() units.Time { return d.max }

// Merge adds all values of o, which stays the same.
func (d *Dist) Merge(o *Dist) {
	d.settle()
	o.settle()
	d.hist.Merge(o.hist)
	d.count += o.count
	d.sum += o.sum
	d.max = max(d.max, o.max)
}

// Mark is a Dist at an instant, for Since. The zero value is that of an empty one.
type Mark struct {
	counts map[int64]int64 // by value of a bin
	count  int64
	sum    float64
}

// Delta is the values that a Dist got in some time.
type Delta struct {
	bins  []Bin
	count int64
	sum   float64
}

// Since returns the values that were recorded since the last call with m.
func (d *Dist) Since(m *Mark) Delta {
	if m.counts == nil {
		m.counts = map[int64]int64{}
	}
	since := Delta{count: d.count - m.count, sum: d.sum - m.sum}
	if since.count == 0 {
		return Delta{}
	}
	for _, b := range d.Bins() {
		if n := b.Count - m.counts[int64(b.From)]; n > 0 {
			since.bins = append(since.bins, Bin{b.From, b.To, n})
			m.counts[int64(b.From)] = b.Count
		}
	}
	m.count, m.sum = d.count, d.sum
	return since
}

// Repeat records values again that were recorded before, several times. Mean and quantiles are what
// they would be if each had been recorded by itself, as long as their sum is below 2^53 ps.
func (d *Dist) Repeat(v Delta, times int64) {
	for _, b := range v.bins {
		_ = d.hist.RecordValues(int64(b.From), times*b.Count)
	}
	d.count += times * v.count
	d.sum += float64(times) * v.sum
}

// Quantile returns the nearest-rank q-quantile to within 0.1 %, for q in [0, 1], or 0 if nothing
// was recorded.
func (d *Dist) Quantile(q float64) units.Time {
	// In floating point 0.07*100 is above 7. Without 1e-9 its rank would be 8.
	rank := max(int64(math.Ceil(q*float64(d.count)-1e-9)), 1)
	for _, b := range d.Bins() {
		if rank -= b.Count; rank <= 0 {
			return b.From
		}
	}
	return d.max
}

// Describe returns mean, median, 99th percentile and maximum, each divided by unit.
func (d *Dist) Describe(unit units.Time) record.Quantiles {
	if d.count == 0 {
		return record.Quantiles{}
	}
	u := float64(unit)
	return record.Quantiles{
		Mean: d.sum / float64(d.count) / u,
		P50:  float64(d.Quantile(0.50)) / u,
		P99:  float64(d.Quantile(0.99)) / u,
		Max:  float64(d.max) / u,
	}
}

// Bin is one bin of a histogram: Count values lie between From and To, both inclusive.
type Bin struct {
	From, To units.Time
	Count    int64
}

// Bins returns the bins that are not empty, in ascending order.
func (d *Dist) Bins() []Bin {
	d.settle()
	var out []Bin
	for _, b := range d.hist.Distribution() {
		if b.Count > 0 {
			out = append(out, Bin{From: units.Time(b.From), To: units.Time(b.To), Count: b.Count})
		}
	}
	return out
}

// wireDist is the JSON form of a Dist, in which processes exchange it.
type wireDist struct {
	Hist  []byte     `json:"hist"` // HdrHistogram V2, compressed
	Count int64      `json:"count"`
	Sum   float64    `json:"sum"`
	Max   units.Time `json:"max"`
}

// MarshalJSON implements json.Marshaler. A typical distribution takes a few hundred bytes.
func (d *Dist) MarshalJSON() ([]byte, error) {
	d.settle()
	h, err := d.hist.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return json.Marshal(wireDist{Hist: h, Count: d.count, Sum: d.sum, Max: d.max})
}

// UnmarshalJSON implements json.Unmarshaler. It rejects a histogram whose number of values does not
// match the count, or that has values out of range.
func (d *Dist) UnmarshalJSON(b []byte) error {
	var w wireDist
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	h, err := hdrhistogram.Decode(w.Hist)
	if err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	if h.TotalCount() != w.Count {
		return fmt.Errorf("decode histogram: it holds %d values, its header says %d", h.TotalCount(), w.Count)
	}
	fresh := NewDist()
	if dropped := fresh.hist.Merge(h); dropped != 0 {
		return fmt.Errorf("decode histogram: %d values are out of range", dropped)
	}
	*d = Dist{hist: fresh.hist, count: w.Count, sum: w.Sum, max: w.Max}
	return nil
}
