package plot

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/units"
)

// Chart is a drawing of lines in two dimensions. The zero value of everything but Series is usable.
type Chart struct {
	Title string
	// below the chart: where the numbers come from, the value in a paper; wrapped
	Caption string
	X, Y    Axis
	Series  []Series
	Marks   []Mark
	Spans   []Span

	// Width and Height of the drawing in points; 0 means 540 and 330.
	Width, Height float64
}

// Scale is the scale of an axis.
type Scale uint8

// The scales of an axis.
const (
	Linear Scale = iota
	Log10        // values are above 0
	Log2         // values are above 0; ticks are powers of two, for sizes
)

// Axis describes one direction of a chart.
type Axis struct {
	Label string // "flow completion time"
	// of the values: "us"; put behind the label in parentheses, and changed to that in which they
	// read best. "B" on a Log2 axis writes 4KiB for 4096.
	Unit  string
	Scale Scale
	// Zero includes 0 in a linear axis, so that lengths can be compared by eye.
	Zero bool
	// Min and Max widen the range of the axis beyond the data, if Min is below Max.
	Min, Max float64

	each bool // ticks have units, since there is none in which all read well
}

// Series is one named line. X and Y have the same length. A NaN in Y is a gap.
type Series struct {
	Name string
	X, Y []float64
	// Low and High, if not nil, are the ends of each point's error bar, or of a band around the
	// line, and have the length of Y.
	Low, High []float64
	Band      bool // draw Low and High as a band
	Steps     bool // hold each value until the next X, as a distribution or a queue does
	Points    bool // mark every point
	Dashed    bool // a reference beside measurements: the paper's curve, an ideal
	NoLine    bool // points only
	// 0: by position; n: the n-th colour of the palette, from 1, so that related series share one
	Color int
}

// Mark is a reference line across the whole chart, such as a target or the value in a paper. The
// legend has its name.
type Mark struct {
	Name string
	At   float64
	On   Direction
}

// Span is a set of shaded ranges of the horizontal axis, such as the time of a fault, each with a
// dashed line at both ends and a label at its beginning. The legend has label and name. Ranges are
// clipped to the data.
type Span struct {
	Label    string // a character or two
	Name     string
	Ranges   [][2]float64 // from and to; equal: an instant
	Instants []float64    // instants within the ranges, each a dotted line
}

// Direction is the axis of a Mark's value.
type Direction uint8

// The directions of a mark.
const (
	OnY Direction = iota // a horizontal line
	OnX                  // a vertical line
)

// ErrEmpty means that a chart has nothing to show.
var ErrEmpty = errors.New("there is nothing to plot")

// check returns an error for a chart that cannot be drawn.
func (c *Chart) check() error {
	points := 0
	for i := range c.Series {
		n, err := c.Series[i].check(c.X, c.Y)
		if err != nil {
			return fmt.Errorf("plot %q: series %q: %w", c.Title, c.Series[i].Name, err)
		}
		points += n
	}
	if points == 0 {
		return fmt.Errorf("plot %q: %w", c.Title, ErrEmpty)
	}
	for _, m := range c.Marks {
		axis := c.Y
		if m.On == OnX {
			axis = c.X
		}
		if err := axis.holds(m.At); err != nil {
			return fmt.Errorf("plot %q: mark %q: %w", c.Title, m.Name, err)
		}
	}
	for _, s := range c.Spans {
		for _, r := range s.Ranges {
			if err := c.X.holds(r[0]); err != nil || math.IsNaN(r[1]) || r[1] < r[0] {
				return fmt.Errorf("plot %q: span %q: from %v to %v is no stretch of the axis", c.Title, s.Name, r[0],
					r[1])
			}
		}
		for _, at := range s.Instants {
			if err := c.X.holds(at); err != nil {
				return fmt.Errorf("plot %q: span %q: %w", c.Title, s.Name, err)
			}
		}
	}
	return nil
}

// check returns the number of visible points of the series.
func (s *Series) check(x, y Axis) (int, error) {
	if len(s.X) != len(s.Y) {
		return 0, fmt.Errorf("%d values of x and %d of y", len(s.X), len(s.Y))
	}
	if (s.Low == nil) != (s.High == nil) || s.Low != nil && (len(s.Low) != len(s.Y) || len(s.High) != len(s.Y)) {
		return 0, fmt.Errorf("%d values with %d lower and %d upper ends", len(s.Y), len(s.Low), len(s.High))
	}
	seen := 0
	for i := range s.X {
		if math.IsNaN(s.Y[i]) {
			continue
		}
		seen++
		err := errors.Join(x.holds(s.X[i]), y.holds(s.Y[i]))
		if s.Low != nil {
			err = errors.Join(err, y.holds(s.Low[i]), y.holds(s.High[i]))
		}
		if err != nil {
			return 0, fmt.Errorf("point %d: %w", i, err)
		}
	}
	return seen, nil
}

// holds returns an error if v cannot lie on the axis. Values beyond 1e100 are refused: nothing
// measured is that large, and differences would overflow.
func (a Axis) holds(v float64) error {
	const most = 1e100
	if math.IsNaN(v) || math.Abs(v) > most || a.Scale != Linear && v > 0 && v < 1/most {
		return fmt.Errorf("%v has no place on an axis", v)
	}
	if a.Scale != Linear && v <= 0 {
		return fmt.Errorf("%v has no place on a logarithmic axis", v)
	}
	return nil
}

// title returns the label of an axis with its unit, and a word if it is logarithmic.
func (a Axis) title() string {
	unit := a.Unit
	if a.each {
		unit = ""
	}
	if a.Scale != Linear {
		unit = strings.TrimPrefix(unit+", log scale", ", ")
	}
	switch {
	case unit == "":
		return a.Label
	case a.Label == "":
		return unit
	}
	return a.Label + " (" + unit + ")"
}

// readable returns the axis for values in a range in the unit in which they read best, and what to
// divide them by.
func (a Axis) readable(s span) (Axis, float64) {
	if a.Scale == Log2 {
		return a, 1 // ticks are 4Ki
	}
	in := units.ScaleOf(a.Unit, s.min, s.max)
	if a.Scale == Log10 && in != units.ScaleOf(a.Unit, s.min) && s.max >= 20*s.min {
		a.each = true
		return a, 1
	}
	a.Unit, a.Min, a.Max = in.Unit, a.Min/in.Of, a.Max/in.Of
	return a, in.Of
}

// divided returns values divided by a number.
func divided(values []float64, by float64) []float64 {
	if by == 1 || values == nil {
		return values
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v / by
	}
	return out
}

// readable returns the chart with both axes in the units in which their values read best.
func (c *Chart) readable() *Chart {
	out := *c
	data := *c
	data.Marks, data.Spans = nil, nil // they may lie far away
	xs, ys := data.spans()
	var x, y float64
	out.X, x = c.X.readable(xs)
	out.Y, y = c.Y.readable(ys)
	out.Series, out.Marks, out.Spans = slices.Clone(c.Series), slices.Clone(c.Marks), slices.Clone(c.Spans)
	for i := range out.Series {
		s := &out.Series[i]
		s.X, s.Y, s.Low, s.High = divided(s.X, x), divided(s.Y, y), divided(s.Low, y), divided(s.High, y)
	}
	for i := range out.Marks {
		out.Marks[i].At /= map[Direction]float64{OnX: x, OnY: y}[out.Marks[i].On]
	}
	for i := range out.Spans {
		s := &out.Spans[i]
		s.Instants, s.Ranges = divided(s.Instants, x), slices.Clone(s.Ranges)
		for k := range s.Ranges {
			s.Ranges[k] = [2]float64{s.Ranges[k][0] / x, s.Ranges[k][1] / x}
		}
	}
	return &out
}

// span is the range of an axis.
type span struct{ min, max float64 }

func (s *span) add(v float64) {
	if math.IsNaN(v) {
		return
	}
	s.min, s.max = min(s.min, v), max(s.max, v)
}

func empty() span { return span{math.Inf(1), math.Inf(-1)} }

// spans returns the ranges of both axes: all data, the axes' own limits, and a little room.
func (c *Chart) spans() (x, y span) {
	x, y = empty(), empty()
	for i := range c.Series {
		s := &c.Series[i]
		for k := range s.X {
			if math.IsNaN(s.Y[k]) {
				continue
			}
			x.add(s.X[k])
			y.add(s.Y[k])
			if s.Low != nil {
				y.add(s.Low[k])
				y.add(s.High[k])
			}
		}
	}
	for _, m := range c.Marks {
		if m.On == OnX {
			x.add(m.At)
		} else {
			y.add(m.At)
		}
	}
	for _, s := range c.Spans {
		for _, r := range s.Ranges {
			x.add(r[0])
		}
	}
	return c.X.widen(x, 0), c.Y.widen(y, 0.04)
}

// widen turns a range of data into that of an axis. room is the share of it that stays free at the
// upper end, and at the lower end unless that is 0.
func (a Axis) widen(s span, room float64) span {
	if a.Min < a.Max {
		s.add(a.Min)
		s.add(a.Max)
	}
	if a.Scale != Linear {
		if s.min == s.max {
			return span{s.min / 2, s.max * 2}
		}
		r := math.Pow(s.max/s.min, room)
		return span{s.min / r, s.max * r}
	}
	if a.Zero {
		s.add(0)
	}
	if s.min == s.max {
		d := max(math.Abs(s.min)*0.1, 0.5)
		return span{s.min - d, s.max + d}
	}
	d := (s.max - s.min) * room
	if s.max != 0 {
		s.max += d
	}
	if s.min != 0 {
		s.min -= d
	}
	return s
}
