package stats

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"weft/results/record"
	"weft/units"
)

// The range and resolution of a Dist. Below 1 us a value is kept to half a nanosecond, above to one part in
// a thousand; what is longer than a thousand seconds counts as a thousand seconds.
const (
	lowest  = int64(units.Nanosecond)
	highest = int64(1000 * units.Second)
	digits  = 3
)

// Dist is a distribution of times in bounded memory (about 250 KB however many values). Its mean, count and
// maximum are exact; its quantiles are nearest-rank to within 0.1 %. The zero value is not usable: call NewDist.
// Not safe for concurrent use.
type Dist struct {
	hist  *hdrhistogram.Histogram
	count int64
	sum   float64
	max   units.Time
}

// NewDist returns an empty distribution.
func NewDist() *Dist {
	return &Dist{hist: hdrhistogram.New(lowest, highest, digits)}
}

// Record adds one value; a negative one counts as 0.
func (d *Dist) Record(v units.Time) {
	v = max(v, 0)
	d.count++
	d.sum += float64(v)
	d.max = max(d.max, v)
	// The only error is a value out of range, which the limit excludes.
	_ = d.hist.RecordValue(min(int64(v), highest))
}

// Count returns how many values were recorded.
func (d *Dist) Count() int64 { return d.count }

// Mean returns the mean; 0 when nothing was recorded.
func (d *Dist) Mean() units.Time {
	if d.count == 0 {
		return 0
	}
	return units.Time(d.sum / float64(d.count))
}

// Max returns the largest value; 0 when nothing was recorded.
func (d *Dist) Max() units.Time { return d.max }

// Merge adds everything o holds. o is unchanged.
func (d *Dist) Merge(o *Dist) {
	d.hist.Merge(o.hist)
	d.count += o.count
	d.sum += o.sum
	d.max = max(d.max, o.max)
}

// Quantile returns the nearest-rank q-quantile, q in [0, 1], to within 0.1 %; 0 when nothing was recorded.
func (d *Dist) Quantile(q float64) units.Time {
	rank := max(int64(math.Ceil(q*float64(d.count)-1e-9)), 1)
	for _, b := range d.Bars() {
		if rank -= b.Count; rank <= 0 {
			return b.From
		}
	}
	return d.max
}

// Describe returns the distribution in units of unit.
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

// Bar is one step of a histogram: so many values from From up to and including To, in picoseconds.
type Bar struct {
	From, To units.Time
	Count    int64
}

// Bars returns the steps that hold something, in ascending order.
func (d *Dist) Bars() []Bar {
	var out []Bar
	for _, b := range d.hist.Distribution() {
		if b.Count > 0 {
			out = append(out, Bar{From: units.Time(b.From), To: units.Time(b.To), Count: b.Count})
		}
	}
	return out
}

// wireDist is a Dist on its way from one process to another.
type wireDist struct {
	Hist  []byte     `json:"hist"` // HdrHistogram V2, compressed
	Count int64      `json:"count"`
	Sum   float64    `json:"sum"`
	Max   units.Time `json:"max"`
}

// MarshalJSON writes the distribution compactly: a few hundred bytes for a typical one.
func (d *Dist) MarshalJSON() ([]byte, error) {
	h, err := d.hist.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encode histogram: %w", err)
	}
	return json.Marshal(wireDist{Hist: h, Count: d.count, Sum: d.sum, Max: d.max})
}

// UnmarshalJSON reads what MarshalJSON wrote.
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
