package plot

import (
	"errors"
	"fmt"
	"math"
)

// Chart is a drawing of lines in two dimensions. The zero value of everything but Series is usable.
type Chart struct {
	Title   string
	Caption string // below: where the numbers come from, what the paper says; wrapped
	X, Y    Axis
	Series  []Series
	Marks   []Mark
	Spans   []Span

	// Width and Height of the drawing in points; 0 means 540 and 330.
	Width, Height float64
}

// Scale is how values are spread along an axis.
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
	Unit  string // "us", put behind the label in parentheses; "B" on a Log2 axis writes 4KiB for 4096
	Scale Scale
	// Zero includes 0 in a linear axis, so that lengths can be compared by eye.
	Zero bool
	// Min and Max widen the range of the axis beyond the data, if Min is below Max.
	Min, Max float64
}

// Series is one named line. X and Y have one length. A NaN in Y is a gap.
type Series struct {
	Name string
	X, Y []float64
	// Low and High, if not nil, are as long as Y: the ends of each point's error bar, or of a band around the line.
	Low, High []float64
	Band      bool // draw Low and High as a band
	Steps     bool // hold each value until the next X, as a distribution or a queue does
	Points    bool // mark every point
	Dashed    bool // a reference beside what was measured: the paper's curve, an ideal
	NoLine    bool // points only
	Color     int  // 0: by position; n: the n-th colour of the palette, from 1, so that related series share one
}

// Mark is a reference line across the whole chart: a target, the paper's number. Its name stands in the legend.
type Mark struct {
	Name string
	At   float64
	On   Direction
}

// Span is stretches of the horizontal axis in which something was so: shaded, with a broken line at each end and a label at its
// beginning. Its label and name stand in the legend. What is beyond the data is cut.
type Span struct {
	Label    string // a character or two
	Name     string
	Ranges   [][2]float64 // from and to; equal: an instant
	Instants []float64    // that belong to it, each a dotted line
}

// Direction says what a Mark is a value of.
type Direction uint8

// The directions of a mark.
const (
	OnY Direction = iota // a horizontal line
	OnX                  // a vertical line
)

// ErrEmpty is that a chart has nothing to show.
var ErrEmpty = errors.New("there is nothing to plot")

// check says what cannot be drawn of a chart.
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
				return fmt.Errorf("plot %q: span %q: from %v to %v is no stretch of the axis", c.Title, s.Name, r[0], r[1])
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

// check returns how many points of the series can be seen.
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

// holds says why a value has no place on an axis. Beyond a googol nothing is measured, and differences overflow.
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

// title is the label of an axis with its unit.
func (a Axis) title() string {
	switch {
	case a.Unit == "":
		return a.Label
	case a.Label == "":
		return a.Unit
	}
	return a.Label + " (" + a.Unit + ")"
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

// spans are the ranges of both axes: all data, what the axes ask for, and a little room.
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

// widen makes a range out of what was measured; room is the share of it that is left free at the upper end, and at the
// lower end where that is not 0.
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
