package plot

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Bars is a bar chart: one group for each name in Groups, with one bar of every series. The
// vertical axis is linear and includes 0, since readers compare the lengths of bars.
type Bars struct {
	Title   string
	Caption string
	Groups  []string
	// scale, zero and range of X are ignored, and the scale of Y
	X, Y   Axis
	Series []BarSeries
	Marks  []Mark // on Y only
	// Colors are those of the series, or of the groups if there is one series: see Series.Color.
	// nil: by position.
	Colors []int

	Width, Height float64 // in points; 0 means 540 and 330
}

// BarSeries is one bar of every group. A NaN is a missing bar.
type BarSeries struct {
	Name      string
	Values    []float64
	Low, High []float64   // ends of error bars, or nil
	Dots      [][]float64 // by group: the values behind a bar, each a dot; or nil
}

// SVG draws the bars. The result is one element without a prologue, which can be part of a page.
func (b Bars) SVG() ([]byte, error) {
	f, err := b.figure()
	if err != nil {
		return nil, err
	}
	return f.svg(), nil
}

// PNG draws the bars with 144 dots per inch.
func (b Bars) PNG() ([]byte, error) {
	f, err := b.figure()
	if err != nil {
		return nil, err
	}
	return f.png()
}

func (b *Bars) check() error {
	seen := 0
	for _, s := range b.Series {
		line := Series{Name: s.Name, X: make([]float64, len(b.Groups)), Y: s.Values, Low: s.Low, High: s.High}
		n, err := line.check(Axis{}, Axis{})
		if len(s.Values) != len(b.Groups) {
			err = fmt.Errorf("%d values for %d groups", len(s.Values), len(b.Groups))
		}
		if s.Dots != nil && len(s.Dots) != len(b.Groups) {
			err = fmt.Errorf("dots for %d of %d groups", len(s.Dots), len(b.Groups))
		}
		for _, values := range s.Dots {
			for _, v := range values {
				err = errors.Join(err, Axis{}.holds(v))
			}
		}
		if err != nil {
			return fmt.Errorf("plot %q: series %q: %w", b.Title, s.Name, err)
		}
		seen += n
	}
	if seen == 0 {
		return fmt.Errorf("plot %q: %w", b.Title, ErrEmpty)
	}
	for _, m := range b.Marks {
		err := Axis{}.holds(m.At)
		if m.On == OnX {
			err = errors.New("groups have no values to mark")
		}
		if err != nil {
			return fmt.Errorf("plot %q: mark %q: %w", b.Title, m.Name, err)
		}
	}
	return nil
}

// readable returns the bars with an axis in the unit in which their values read best.
func (b *Bars) readable() *Bars {
	out := *b
	var by float64
	out.Y.Scale = Linear
	out.Y, by = out.Y.readable(b.span())
	out.Series, out.Marks = slices.Clone(b.Series), slices.Clone(b.Marks)
	for i := range out.Series {
		s := &out.Series[i]
		s.Values, s.Low, s.High = divided(s.Values, by), divided(s.Low, by), divided(s.High, by)
		s.Dots = slices.Clone(s.Dots)
		for k := range s.Dots {
			s.Dots[k] = divided(s.Dots[k], by)
		}
	}
	for i := range out.Marks {
		out.Marks[i].At /= by
	}
	return &out
}

func (b *Bars) figure() (*figure, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	b = b.readable()
	painted := make([]Series, max(len(b.Series), len(b.Colors)))
	for i, c := range b.Colors {
		painted[i].Color = c
	}
	styles := looks(painted)
	f := &figure{title: b.Title, caption: b.Caption, width: b.Width, height: b.Height}
	for i, s := range b.Series {
		if s.Name == "" {
			continue
		}
		f.legend = append(f.legend, key{s.Name, func(c draw.Canvas, at vg.Rectangle) {
			at.Min.X = at.Max.X - 12
			c.FillPolygon(styles[i].line.Color, corners(at))
		}})
	}
	f.legend = append(f.legend, marks(b.Marks).keys()...)
	f.body = func(into draw.Canvas) {
		p := newPlot()
		y := b.Y
		y.Scale, y.Zero = Linear, true
		y.apply(&p.Y, y.widen(b.span(), 0.06))
		p.X.Label.Text = b.X.title()
		p.X.Min, p.X.Max = -0.5, float64(len(b.Groups))-0.5
		p.X.Tick.Length, p.X.Tick.LineStyle.Color = 3, color.White
		p.X.Tick.Marker = plot.TickerFunc(b.groupTicks)
		b.turn(p, into)
		p.Add(gridLines{nil, y}, columns{b, styles}, marks(b.Marks))
		p.Draw(draw.Crop(into, 0, 0, 0, -margin/2))
	}
	return f, nil
}

// turn writes the names of the groups upwards if they have no room side by side.
func (b *Bars) turn(p *plot.Plot, into draw.Canvas) {
	room := (into.Max.X - into.Min.X - 50) / vg.Length(len(b.Groups))
	for _, g := range b.Groups {
		if p.X.Tick.Label.Width(g) > room-4 {
			p.X.Tick.Label.Rotation = math.Pi / 2
			p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XRight, text.YCenter
			return
		}
	}
}

func (b *Bars) groupTicks(float64, float64) []plot.Tick {
	out := make([]plot.Tick, len(b.Groups))
	for i, g := range b.Groups {
		out[i] = plot.Tick{Value: float64(i), Label: g}
	}
	return out
}

// span returns the range of all that is drawn.
func (b *Bars) span() span {
	all := empty()
	for _, s := range b.Series {
		for _, values := range [][]float64{s.Values, s.Low, s.High} {
			for i, v := range values {
				if !math.IsNaN(s.Values[i]) {
					all.add(v)
				}
			}
		}
	}
	for _, m := range b.Marks {
		all.add(m.At)
	}
	for _, s := range b.Series {
		for _, values := range s.Dots {
			for _, v := range values {
				all.add(v)
			}
		}
	}
	return all
}

// dots draws the values behind a bar, side by side in their order, so that equal ones can be
// counted.
func dots(c draw.Canvas, bar vg.Rectangle, values []float64, y func(float64) vg.Length) {
	room := (bar.Max.X - bar.Min.X) * 0.7
	for i, v := range values {
		at := vg.Point{X: (bar.Min.X+bar.Max.X)/2 + room*(vg.Length(i)+0.5)/vg.Length(len(values)) - room/2, Y: y(v)}
		c.DrawGlyph(draw.GlyphStyle{Color: color.White, Radius: 2.4, Shape: draw.CircleGlyph{}}, at)
		c.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: 1.7, Shape: draw.CircleGlyph{}}, at)
	}
}

// columns draws the bars. It implements plot.Plotter.
type columns struct {
	b      *Bars
	styles []look
}

// Plot implements plot.Plotter.
func (d columns) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	width := 0.8 / float64(len(d.b.Series))
	for i, s := range d.b.Series {
		for g, v := range s.Values {
			if math.IsNaN(v) {
				continue
			}
			left := float64(g) - 0.4 + float64(i)*width
			box := vg.Rectangle{
				Min: vg.Point{X: x(left + 0.04*width), Y: y(0)}, Max: vg.Point{X: x(left + 0.96*width), Y: y(v)},
			}
			look := d.styles[i]
			if len(d.b.Series) == 1 && d.b.Colors != nil {
				look = d.styles[g]
			}
			c.FillPolygon(look.line.Color, corners(box))
			if s.Low != nil {
				mid := (box.Min.X + box.Max.X) / 2
				whisker(c, draw.LineStyle{Color: ink, Width: 1}, vg.Point{X: mid, Y: y(s.Low[g])},
					vg.Point{X: mid, Y: y(s.High[g])})
			}
			if s.Dots != nil {
				dots(c, box, s.Dots[g], y)
			}
		}
	}
}
