package report

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/results/record"
	"weft/results/stats"
	"weft/results/store"
)

// Difference is one line of a comparison.
type Difference struct {
	Point  string         `json:"point"` // of the sweep, without the seed
	Metric string         `json:"metric"`
	Unit   string         `json:"unit,omitempty"`
	A      stats.Interval `json:"a"`
	B      stats.Interval `json:"b"`
	// Change is B over A less 1; 0 where A is 0.
	Change float64 `json:"change"`
	Noise  string  `json:"noise"` // what it was compared with: seeds, flows, none where simulations are exact, unknown of one emulation
	// P is how often chance alone does this; Adjusted, for all differences of the comparison together (stats.Adjust), decides. 1 where that is neither.
	P        float64 `json:"p"`
	Adjusted float64 `json:"p_adjusted"`
	Beyond   bool    `json:"beyond"` // Adjusted is below 0.05, or the difference is exact
}

// alpha is up to which share of the differences that count may be chance.
const alpha = 0.05

// Side is the runs of one side of a comparison.
type Side []*Run

// Compare says what differs between two sets of runs: at each point that both have, over the seeds where both have several, and
// otherwise over the flows of one run. In the simulator a run is a function of lab and seed, so that with one seed a difference of
// a count is a fact, and of a percentile it is held against how far it would move with other flows.
func Compare(a, b Side) ([]Difference, error) {
	out, err := compareAll(a.points(), b.points())
	if err != nil {
		return nil, err
	}
	var at []int
	var ps []float64
	for i, d := range out {
		if d.Noise == "seeds" || d.Noise == "flows" {
			at, ps = append(at, i), append(ps, d.P)
		}
	}
	for k, p := range stats.Adjust(ps) {
		d := &out[at[k]]
		d.Adjusted, d.Beyond = p, p < alpha
	}
	return out, nil
}

func compareAll(pa, pb map[string]Side) ([]Difference, error) {
	var out []Difference
	if len(pa) == 1 && len(pb) == 1 { // two points are compared when somebody names them
		for point, side := range pa {
			for name, other := range pb {
				if name != point {
					return comparePoint(point+" : "+name, side, other)
				}
			}
		}
	}
	for _, point := range slices.Sorted(maps.Keys(pa)) {
		other, ok := pb[point]
		if !ok {
			continue
		}
		rows, err := comparePoint(point, pa[point], other)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	if len(out) == 0 {
		return nil, errors.New("the two have no point in common that was measured")
	}
	return out, nil
}

// points are the runs that ended well by their point, without the seed.
func (s Side) points() map[string]Side {
	out := map[string]Side{}
	for _, r := range s {
		if r.Summary == nil || r.Summary.Status != "ok" {
			continue
		}
		var parts []string
		for _, path := range slices.Sorted(maps.Keys(r.Summary.Point)) {
			if path != "seed" {
				parts = append(parts, fmt.Sprintf("%s=%v", path, r.Summary.Point[path]))
			}
		}
		key := strings.Join(parts, " ")
		out[key] = append(out[key], r)
	}
	return out
}

// metric is a number of a summary that is compared. NaN: it was not measured.
type metric struct {
	name, unit string
	get        func(*record.Summary) float64
}

func metrics(like *record.Summary) []metric {
	ended := func(v func(*record.Summary) float64) func(*record.Summary) float64 {
		return func(s *record.Summary) float64 {
			if s.Flows.Count <= s.Flows.Unfinished {
				return math.NaN()
			}
			return v(s)
		}
	}
	out := []metric{
		{"flow completion, mean", "us", ended(func(s *record.Summary) float64 { return s.Flows.FCT.Mean })},
		{"flow completion, p99", "us", ended(func(s *record.Summary) float64 { return s.Flows.FCT.P99 })},
		{"slowdown, p99", "", ended(func(s *record.Summary) float64 { return s.Flows.Slowdown.P99 })},
		{"round trip, mean", "us", func(s *record.Summary) float64 { return s.RTT.Mean }},
		{"queueing, p99", "us", func(s *record.Summary) float64 { return s.Network.QueueDelay.P99 }},
		{"largest queue", "B", func(s *record.Summary) float64 { return float64(s.Network.MaxQueue) }},
		{"CE marks", "", func(s *record.Summary) float64 { return float64(s.Network.CEMarks) }},
		{"drops", "", func(s *record.Summary) float64 { return float64(s.Network.Drops) }},
		{"retransmits", "", func(s *record.Summary) float64 { return float64(s.Network.Retransmits) }},
		{"pauses", "", func(s *record.Summary) float64 { return float64(s.Network.Pauses) }},
		{"lab time", "us", func(s *record.Summary) float64 { return s.LabTimeUS }},
	}
	for i, c := range like.Collectives {
		out = append(out, metric{fmt.Sprintf("%s (%d), busbw", c.Name, i), "Gb/s", func(s *record.Summary) float64 {
			if i >= len(s.Collectives) {
				return math.NaN()
			}
			return s.Collectives[i].BusBWGbps
		}})
	}
	return out
}

func comparePoint(point string, a, b Side) ([]Difference, error) {
	var out []Difference
	for _, m := range metrics(a[0].Summary) {
		va, vb := a.values(m), b.values(m)
		if len(va) == 0 || len(vb) == 0 || slices.Max(va) == 0 && slices.Max(vb) == 0 {
			continue
		}
		d := Difference{Point: point, Metric: m.name, Unit: m.unit, A: stats.MeanInterval(va), B: stats.MeanInterval(vb), Noise: "seeds", P: 1, Adjusted: 1}
		switch {
		case len(va) > 1 && len(vb) > 1:
			d.P = stats.MannWhitney(va, vb)
		case len(va) == 1 && len(vb) == 1:
			if err := d.overFlows(a[0], b[0]); err != nil {
				return nil, err
			}
		case len(va) == 1:
			d.P = stats.OneAgainst(va[0], vb)
		default:
			d.P = stats.OneAgainst(vb[0], va)
		}
		if d.A.Mean != 0 {
			d.Change = d.B.Mean/d.A.Mean - 1
		}
		out = append(out, d)
	}
	return out, nil
}

func (s Side) values(m metric) []float64 {
	var out []float64
	for _, r := range s {
		if v := m.get(r.Summary); !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// overFlows holds a difference between two runs against the spread of their flows, for what is a statistic of flows. Anything
// else of an emulation has no noise to be held against; of two simulations it is exact.
func (d *Difference) overFlows(a, b *Run) error {
	column, statistic := "fct_ps", func(s []float64) float64 { return stats.Quantile(s, 0.99) / 1e6 }
	switch d.Metric {
	case "flow completion, p99":
	case "flow completion, mean":
		statistic = func(s []float64) float64 { return stats.Mean(s) / 1e6 }
	case "slowdown, p99":
		column, statistic = "slowdown", func(s []float64) float64 { return stats.Quantile(s, 0.99) }
	default:
		d.Noise = "unknown"
		if a.Summary.Engine == "sim" && b.Summary.Engine == "sim" {
			d.Noise, d.Beyond = "none", d.A.Mean != d.B.Mean
		}
		return nil
	}
	va, err := store.Numbers(a.Dir, store.FlowsFile, column)
	if err != nil {
		return err
	}
	vb, err := store.Numbers(b.Dir, store.FlowsFile, column)
	if err != nil {
		return err
	}
	d.Noise, d.A, d.B = "flows", stats.Bootstrap(va, statistic), stats.Bootstrap(vb, statistic)
	d.P = stats.Apart(d.A, d.B)
	return nil
}

// SingleSeeds is what is to be said of a comparison in which a side has one run of a point; "" where both always have several.
func SingleSeeds(all []Difference) string {
	for _, d := range all {
		if d.Noise != "seeds" {
			return "one run on each side: differences over flows are of this seed, and another may differ by more; compare sweeps over seeds, four at least on each side"
		}
	}
	return ""
}

// Comparison is the table of what differs.
func Comparison(all []Difference) Table {
	t := Table{Head: []string{"point", "metric", "unit", "A", "B", "change", "p adjusted", "noise", ""}, Numbers: 3, Words: 7}
	for _, d := range all {
		change, word := "~", ""
		switch {
		case d.Noise == "unknown" && d.A.Mean != d.B.Mean:
			change = "?"
		case d.Beyond:
			change, word = fmt.Sprintf("%+.1f %%", 100*d.Change), "differs"
			if d.A.Mean == 0 {
				change = "from 0"
			}
		}
		p := ""
		switch {
		case d.Noise != "seeds" && d.Noise != "flows":
		case d.Adjusted < 0.001:
			p = "<0.001"
		default:
			p = fmt.Sprintf("%.3f", d.Adjusted)
		}
		t.Rows = append(t.Rows, []string{d.Point, d.Metric, d.Unit, interval(d.A), interval(d.B), change, p, d.Noise, word})
	}
	return t
}

// interval writes a mean and half the width of its interval.
func interval(i stats.Interval) string {
	if i.Low == i.High {
		return number(i.Mean)
	}
	return fmt.Sprintf("%s ±%s", number(i.Mean), number((i.High-i.Low)/2))
}
