package plot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"

	"weft/units"
)

// wantTicks is the approximate number of labelled ticks of an axis. Ours.
const wantTicks = 6

// Ticks implements plot.Ticker.
func (a Axis) Ticks(lo, hi float64) []plot.Tick {
	switch a.Scale {
	case Log10:
		return a.decades(lo, hi)
	case Log2:
		return a.doublings(lo, hi)
	}
	return even(lo, hi)
}

// even returns ticks at multiples of 1, 2 or 5 times a power of ten, with unlabelled ones between.
func even(lo, hi float64) []plot.Tick {
	step := niceStep((hi - lo) / wantTicks)
	parts := 5.0
	if lead := math.Round(step / math.Pow(10, math.Floor(math.Log10(step)*(1+1e-12)))); lead == 2 {
		parts = 4
	}
	minor := step / parts
	if math.Abs(lo) > 1e9*step || math.Abs(hi) > 1e9*step {
		// too close together for ticks between
		return []plot.Tick{{Value: lo, Label: number(lo, step)}, {Value: hi, Label: number(hi, step)}}
	}
	var out []plot.Tick
	for i := math.Ceil(lo/minor - 1e-9); i <= math.Floor(hi/minor+1e-9); i++ {
		t := plot.Tick{Value: i * minor}
		if major := i / parts; major == math.Trunc(major) {
			t.Value = major * step
			t.Label = number(t.Value, step)
		}
		out = append(out, t)
	}
	return out
}

// niceStep returns the smallest of 1, 2 and 5 times a power of ten that is at least v.
func niceStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if f*p >= v*(1-1e-9) {
			return f * p
		}
	}
	return 10 * p
}

// decades returns ticks on a logarithmic axis: powers of ten, and if those are few, also 2 and 5
// times them.
func (a Axis) decades(lo, hi float64) []plot.Tick {
	from, to := math.Floor(math.Log10(lo)), math.Ceil(math.Log10(hi))
	labels := map[float64]bool{1: true}
	switch n := to - from; {
	case n <= 1:
		labels = map[float64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true}
	case n <= 3:
		labels = map[float64]bool{1: true, 2: true, 5: true}
	}
	// of many decades only some are labelled
	every := max(1, math.Ceil((to-from)/8))
	var out []plot.Tick
	named := 0
	for e := from; e <= to; e++ {
		for f := 1.0; f < 10; f++ {
			v := f * math.Pow(10, e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if labels[f] && math.Mod(e-from, every) == 0 {
				t.Label = a.label(v)
				named++
			}
			out = append(out, t)
		}
	}
	if named < 3 {
		// below an octave or so, a linear scale serves as well
		return even(lo, hi)
	}
	return out
}

// label formats a tick of a logarithmic axis, with its unit if the ticks have different ones.
func (a Axis) label(v float64) string {
	if a.each {
		return units.Shown(v, a.Unit)
	}
	return number(v, v)
}

// doublings returns ticks at powers of two.
func (a Axis) doublings(lo, hi float64) []plot.Tick {
	from, to := math.Ceil(math.Log2(lo)-1e-9), math.Floor(math.Log2(hi)+1e-9)
	every := max(1, math.Ceil((to-from)/9))
	var out []plot.Tick
	for e := from; e <= to; e++ {
		t := plot.Tick{Value: math.Pow(2, e)}
		if math.Mod(e-from, every) == 0 {
			t.Label = number(t.Value, t.Value)
			if a.Unit == "B" {
				t.Label = binary(t.Value)
			}
		}
		out = append(out, t)
	}
	return out
}

// binary formats a size: 512, 4Ki, 1Mi.
func binary(v float64) string {
	for _, unit := range []string{"", "Ki", "Mi", "Gi"} {
		if v < 1024 {
			return strconv.FormatFloat(v, 'g', 4, 64) + unit
		}
		v /= 1024
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + "Ti"
}

// number formats a tick with enough digits to tell it from its neighbours, step apart: 0.25, 1500,
// 2.5M.
func number(v, step float64) string {
	unit := ""
	switch m := math.Abs(v); {
	case m >= 1e12 || m > 0 && m < 1e-4:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case m >= 1e9:
		v, step, unit = v/1e9, step/1e9, "G"
	case m >= 1e6:
		v, step, unit = v/1e6, step/1e6, "M"
	case m >= 1e4:
		v, step, unit = v/1e3, step/1e3, "k"
	}
	digits := 0
	for scaled := step; digits < 9 && math.Abs(scaled-math.Round(scaled)) > 1e-6*scaled; scaled *= 10 {
		digits++
	}
	return strconv.FormatFloat(v+0, 'f', digits, 64) + unit // -0 + 0 is 0
}
