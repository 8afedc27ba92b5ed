package plot

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// palette is the palette of Okabe and Ito without its yellow, which is hardly visible on white
// paper, and one colour more.
func palette() []color.NRGBA {
	return []color.NRGBA{
		{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, // blue
		{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, // vermillion
		{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, // bluish green
		{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, // reddish purple
		{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, // orange
		{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, // sky blue
		{R: 0x00, G: 0x00, B: 0x00, A: 0xff},
		{R: 0xa0, G: 0x52, B: 0x2d, A: 0xff}, // brown, ours
	}
}

// look is the appearance of a series.
type look struct {
	line draw.LineStyle
	mark draw.GlyphDrawer
}

// looks gives every series its colour and, for readers without colours, its dash and marker.
func looks(series []Series) []look {
	colors := palette()
	marks := []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{},
		draw.RingGlyph{}, draw.PyramidGlyph{},
	}
	out := make([]look, len(series))
	for i := range series {
		k := i
		if series[i].Color > 0 {
			k = series[i].Color - 1
		}
		l := draw.LineStyle{Color: colors[k%len(colors)], Width: 1.5}
		switch {
		case series[i].Dashed:
			l.Dashes, l.Width = []vg.Length{5, 3}, 1.2
		case k/len(colors)%2 == 1:
			l.Dashes = []vg.Length{1.5, 1.5}
		}
		out[i] = look{line: l, mark: marks[k%len(marks)]}
	}
	return out
}

// figure lays out a chart of lines.
func (c *Chart) figure() (*figure, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c = c.readable()
	styles := looks(c.Series)
	f := &figure{title: c.Title, caption: c.Caption, about: stretches(c.Spans).words(), width: c.Width,
		height: c.Height}
	for i := range c.Series {
		if c.Series[i].Name != "" {
			f.legend = append(f.legend, c.Series[i].key(styles[i]))
		}
	}
	f.legend = append(f.legend, marks(c.Marks).keys()...)
	f.legend = append(f.legend, stretches(c.Spans).keys()...)
	f.body = func(into draw.Canvas) {
		p := newPlot()
		x, y := c.spans()
		c.X.apply(&p.X, x)
		c.Y.apply(&p.Y, y)
		p.Add(stretches(c.Spans), gridLines{c.X, c.Y})
		for i := range c.Series {
			p.Add(drawn{&c.Series[i], styles[i]})
		}
		p.Add(marks(c.Marks), flags(c.Spans))
		// The last label of the horizontal axis is centred below the end of it.
		p.Draw(draw.Crop(into, 0, -margin, 0, -margin/2))
	}
	return f, nil
}

// key returns the series' entry in the legend.
func (s *Series) key(l look) key {
	return key{s.Name, func(c draw.Canvas, at vg.Rectangle) {
		mid := (at.Min.Y + at.Max.Y) / 2
		if s.Band {
			c.FillPolygon(light(l.line.Color), corners(at))
		}
		if !s.NoLine {
			c.StrokeLine2(l.line, at.Min.X, mid, at.Max.X, mid)
		}
		if s.Points || s.NoLine {
			c.DrawGlyph(l.glyph(), vg.Point{X: (at.Min.X + at.Max.X) / 2, Y: mid})
		}
	}}
}

func (l look) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.line.Color, Radius: 2.6, Shape: l.mark}
}

// light returns a transparent colour for an area, through which lines remain visible.
func light(c color.Color) color.Color {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = 0x38
	return n
}

// drawn is a series with its look. It implements plot.Plotter.
type drawn struct {
	s *Series
	look
}

// Plot implements plot.Plotter.
func (d drawn) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, run := range d.s.runs() {
		at := func(k int, v []float64) vg.Point { return vg.Point{X: x(d.s.X[k]), Y: y(v[k])} }
		if d.s.Low != nil {
			d.noise(c, run, at)
		}
		var line []vg.Point
		for k := run[0]; k < run[1]; k++ {
			pt := at(k, d.s.Y)
			if d.s.Steps && k > run[0] {
				line = append(line, vg.Point{X: pt.X, Y: line[len(line)-1].Y})
			}
			line = append(line, pt)
		}
		if !d.s.NoLine {
			c.StrokeLines(d.line, c.ClipLinesXY(line)...)
		}
		for k := run[0]; (d.s.Points || d.s.NoLine || run[1]-run[0] == 1) && k < run[1]; k++ {
			c.DrawGlyph(d.glyph(), at(k, d.s.Y))
		}
	}
}

// noise draws the band or the error bars of the points of a run.
func (d drawn) noise(c draw.Canvas, run [2]int, at func(int, []float64) vg.Point) {
	if d.s.Band {
		var area []vg.Point
		for k := run[0]; k < run[1]; k++ {
			area = append(area, at(k, d.s.High))
		}
		for k := run[1] - 1; k >= run[0]; k-- {
			area = append(area, at(k, d.s.Low))
		}
		c.FillPolygon(light(d.line.Color), c.ClipPolygonXY(area))
		return
	}
	s := draw.LineStyle{Color: d.line.Color, Width: 1}
	for k := run[0]; k < run[1]; k++ {
		whisker(c, s, at(k, d.s.Low), at(k, d.s.High))
	}
}

// whisker draws an error bar.
func whisker(c draw.Canvas, s draw.LineStyle, low, high vg.Point) {
	const cap = 3
	c.StrokeLine2(s, low.X, low.Y, high.X, high.Y)
	for _, end := range []vg.Point{low, high} {
		c.StrokeLine2(s, end.X-cap, end.Y, end.X+cap, end.Y)
	}
}

// runs returns the ranges of points between the gaps of a series, as half-open intervals.
func (s *Series) runs() [][2]int {
	var out [][2]int
	for k := 0; k < len(s.Y); k++ {
		if math.IsNaN(s.Y[k]) {
			continue
		}
		from := k
		for k < len(s.Y) && !math.IsNaN(s.Y[k]) {
			k++
		}
		out = append(out, [2]int{from, k})
	}
	return out
}

// marks draws reference lines. It implements plot.Plotter.
type marks []Mark

// line returns the style of the i-th mark. Each has its own dashes, because the legend explains it
// away from the data.
func (marks) line(i int) draw.LineStyle {
	dashes := [][]vg.Length{{2, 2}, {7, 2}, {1, 4}, {7, 2, 2, 2}}
	return draw.LineStyle{Color: faint, Width: 1.1, Dashes: dashes[i%len(dashes)]}
}

// keys returns the marks' entries in the legend.
func (ms marks) keys() []key {
	var out []key
	for i, m := range ms {
		out = append(out, key{m.Name, func(c draw.Canvas, at vg.Rectangle) {
			mid := vg.Point{X: (at.Min.X + at.Max.X) / 2, Y: (at.Min.Y + at.Max.Y) / 2}
			if m.On == OnX {
				c.StrokeLine2(ms.line(i), mid.X, at.Min.Y-1, mid.X, at.Max.Y+1)
				return
			}
			c.StrokeLine2(ms.line(i), at.Min.X, mid.Y, at.Max.X, mid.Y)
		}})
	}
	return out
}

// Plot implements plot.Plotter.
func (ms marks) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, m := range ms {
		if m.On == OnX {
			c.StrokeLine2(ms.line(i), x(m.At), c.Min.Y, x(m.At), c.Max.Y)
			continue
		}
		c.StrokeLine2(ms.line(i), c.Min.X, y(m.At), c.Max.X, y(m.At))
	}
}
