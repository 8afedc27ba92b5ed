package plot

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// shade is transparent, so that overlapping spans are darker.
var shade = color.NRGBA{R: 0xc8, G: 0x96, B: 0x50, A: 0x30}

// edge returns the style of the line at the ends of a span.
func edge() draw.LineStyle {
	return draw.LineStyle{Color: faint, Width: 1, Dashes: []vg.Length{3, 2}}
}

// turn returns the style of the line at an instant within a span.
func turn() draw.LineStyle {
	return draw.LineStyle{Color: ink, Width: 0.8, Dashes: []vg.Length{1, 2}}
}

// flagStyle returns the style of a label in its box.
func flagStyle() text.Style {
	s := style(tickSize-1, true, color.White)
	s.XAlign = text.XCenter
	return s
}

// flag draws a label in a box centred at a point.
func flag(c draw.Canvas, at vg.Point, label string) {
	s := flagStyle()
	w := max(s.Width(label)/2+3, 6)
	box := vg.Rectangle{Min: vg.Point{X: at.X - w, Y: at.Y - 6}, Max: vg.Point{X: at.X + w, Y: at.Y + 6}}
	c.FillPolygon(ink, corners(box))
	c.FillText(s, vg.Point{X: at.X, Y: at.Y + 5}, label)
}

// within calls f with the ends of every range, clipped to the canvas.
func (s *Span) within(c draw.Canvas, p *plot.Plot, f func(from, to vg.Length, ends bool)) {
	x, _ := p.Transforms(&c)
	for _, r := range s.Ranges {
		if r[0] > p.X.Max || r[1] < p.X.Min {
			continue
		}
		f(x(max(r[0], p.X.Min)), x(min(r[1], p.X.Max)), r[1] <= p.X.Max)
	}
}

// stretches shades spans, below everything else. It implements plot.Plotter.
type stretches []Span

// Plot implements plot.Plotter.
func (all stretches) Plot(c draw.Canvas, p *plot.Plot) {
	for i := range all {
		all[i].within(c, p, func(from, to vg.Length, _ bool) {
			c.FillPolygon(shade, corners(vg.Rectangle{Min: vg.Point{X: from, Y: c.Min.Y},
				Max: vg.Point{X: to, Y: c.Max.Y}}))
		})
	}
}

// words describes the spans in a line: "1 edge0-agg1: down; 2 h3: paused".
func (all stretches) words() string {
	var words []string
	for _, s := range all {
		words = append(words, s.Label+" "+s.Name)
	}
	return strings.Join(words, "; ")
}

// keys returns the spans' entries in the legend.
func (all stretches) keys() []key {
	var out []key
	for _, s := range all {
		out = append(out, key{s.Name, func(c draw.Canvas, at vg.Rectangle) {
			c.FillPolygon(shade, corners(at))
			flag(c, vg.Point{X: (at.Min.X + at.Max.X) / 2, Y: (at.Min.Y + at.Max.Y) / 2}, s.Label)
		}})
	}
	return out
}

// flags draws the ends, instants and labels of spans, above everything else. Labels of different
// spans have different heights. It implements plot.Plotter.
type flags []Span

// Plot implements plot.Plotter.
func (all flags) Plot(c draw.Canvas, p *plot.Plot) {
	for i := range all {
		all[i].within(c, p, func(from, to vg.Length, ends bool) {
			c.StrokeLine2(edge(), from, c.Min.Y, from, c.Max.Y)
			if ends && to > from {
				c.StrokeLine2(edge(), to, c.Min.Y, to, c.Max.Y)
			}
			flag(c, vg.Point{X: from, Y: c.Max.Y - 6 - vg.Length(i)*14}, all[i].Label)
		})
		x, _ := p.Transforms(&c)
		for _, at := range all[i].Instants {
			if p.X.Min <= at && at <= p.X.Max {
				c.StrokeLine2(turn(), x(at), c.Min.Y, x(at), c.Max.Y)
			}
		}
	}
}
