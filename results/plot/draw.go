package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// Sizes of a drawing in points. Ours.
const (
	defaultWidth, defaultHeight = 540, 330
	margin                      = 10
	titleSize                   = 13
	labelSize                   = 10.5
	tickSize                    = 9.5
	captionSize                 = 9
	dpi                         = 144 // of a PNG
)

var (
	ink   = color.NRGBA{R: 0x22, G: 0x22, B: 0x22, A: 0xff}
	faint = color.NRGBA{R: 0x55, G: 0x55, B: 0x55, A: 0xff}
	grid  = color.NRGBA{R: 0xe4, G: 0xe4, B: 0xe4, A: 0xff}
)

// figure is the common part of all drawings.
type figure struct {
	title, caption string
	// text for readers who do not see the drawing; empty: nothing beyond the title
	about         string
	width, height float64
	legend        []key
	body          func(draw.Canvas) // draws into the space below title and legend
}

// key is an entry of a legend.
type key struct {
	name string
	draw func(c draw.Canvas, at vg.Rectangle)
}

// SVG draws the chart. The result is one element without a prologue, which can be part of a page.
func (c Chart) SVG() ([]byte, error) {
	f, err := c.figure()
	if err != nil {
		return nil, err
	}
	return f.svg(), nil
}

// PNG draws the chart with 144 dots per inch.
func (c Chart) PNG() ([]byte, error) {
	f, err := c.figure()
	if err != nil {
		return nil, err
	}
	return f.png()
}

func (f *figure) size() (w, h vg.Length) {
	w, h = vg.Length(f.width), vg.Length(f.height)
	if w <= 0 {
		w = defaultWidth
	}
	if h <= 0 {
		h = defaultHeight
	}
	return w, h
}

func (f *figure) svg() []byte {
	c := newCanvas(f.size())
	f.draw(draw.New(c))
	return c.bytes(f.title, f.about)
}

func (f *figure) png() ([]byte, error) {
	w, h := f.size()
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(dpi))}
	f.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot %q: %w", f.title, err)
	}
	return b.Bytes(), nil
}

// draw lays the figure out, from the top: title, legend, data, caption.
func (f *figure) draw(c draw.Canvas) {
	c.FillPolygon(color.White, corners(c.Rectangle))
	c = draw.Crop(c, margin, -margin, margin, -margin)
	if f.title != "" {
		c = above(c, f.title, style(titleSize, true, ink))
	}
	c = drawLegend(c, f.legend)
	if f.caption != "" {
		c = below(c, f.caption, style(captionSize, false, faint))
	}
	f.body(c)
}

func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}

func style(size vg.Length, bold bool, c color.Color) text.Style {
	f := font.Font{Variant: "Sans", Size: size}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return text.Style{Color: c, Font: f, Handler: plot.DefaultTextHandler, YAlign: text.YTop}
}

// wrap breaks words into lines within a width.
func wrap(words string, width vg.Length, s text.Style) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(words) {
		longer := strings.TrimSpace(line + " " + w)
		if line != "" && s.Width(longer) > width {
			lines, longer = append(lines, line), w
		}
		line = longer
	}
	return append(lines, line)
}

// above writes text at the top of the canvas and returns the rest of it.
func above(c draw.Canvas, words string, s text.Style) draw.Canvas {
	y := c.Max.Y
	for _, line := range wrap(words, c.Max.X-c.Min.X, s) {
		c.FillText(s, vg.Point{X: c.Min.X, Y: y}, line)
		y -= s.Font.Size * 1.3
	}
	return draw.Crop(c, 0, 0, 0, y-c.Max.Y-3)
}

// below writes text at the bottom of the canvas and returns the rest of it.
func below(c draw.Canvas, words string, s text.Style) draw.Canvas {
	lines := wrap(words, c.Max.X-c.Min.X, s)
	height := vg.Length(len(lines)) * s.Font.Size * 1.3
	for i, line := range lines {
		c.FillText(s, vg.Point{X: c.Min.X, Y: c.Min.Y + height - vg.Length(i)*s.Font.Size*1.3}, line)
	}
	return draw.Crop(c, 0, 0, height+5, 0)
}

// drawLegend writes the legend at the top, in as many rows as it needs, and returns the rest of the
// canvas. The legend never covers data.
func drawLegend(c draw.Canvas, keys []key) draw.Canvas {
	if len(keys) == 0 {
		return c
	}
	const swatch, gap, row = 22, 5, 15
	s := style(tickSize, false, ink)
	x, y := c.Min.X, c.Max.Y
	for _, k := range keys {
		width := swatch + gap + s.Width(k.name)
		if x > c.Min.X && x+width > c.Max.X {
			x, y = c.Min.X, y-row
		}
		k.draw(c, vg.Rectangle{Min: vg.Point{X: x, Y: y - 11}, Max: vg.Point{X: x + swatch, Y: y - 1}})
		c.FillText(s, vg.Point{X: x + swatch + gap, Y: y}, k.name)
		x += width + 3*gap
	}
	return draw.Crop(c, 0, 0, 0, y-row-c.Max.Y-4)
}

// newPlot returns axes without data.
func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = style(labelSize, false, ink).Font
		a.Label.TextStyle.Color = ink
		a.Label.Padding = 4
		a.Tick.Label.Font = style(tickSize, false, ink).Font
		a.Tick.Label.Color = ink
		a.LineStyle.Color, a.LineStyle.Width = faint, 0.6
		a.Tick.LineStyle = a.LineStyle
		a.Tick.Length = 4
		a.Padding = 0
	}
	return p
}

// apply sets an axis of a plot.
func (a Axis) apply(to *plot.Axis, s span) {
	to.Label.Text = a.title()
	to.Min, to.Max = s.min, s.max
	to.Tick.Marker = a
	if a.Scale != Linear {
		to.Scale = plot.LogScale{}
		to.Label.TextStyle.Handler = narrow{to.Label.TextStyle.Handler}
	}
}

// narrow says that texts have no width, for labels of logarithmic axes: gonum.org/v1/plot reserves
// room for them where the arithmetic mean of the ends is, far from the middle where it writes them.
type narrow struct{ text.Handler }

// Box implements text.Handler.
func (n narrow) Box(words string, f font.Font) (width, height, depth vg.Length) {
	_, height, depth = n.Handler.Box(words, f)
	return 0, height, depth
}

// gridLines draws a line at every labelled tick.
type gridLines struct{ x, y plot.Ticker }

// Plot implements plot.Plotter.
func (g gridLines) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	s := draw.LineStyle{Color: grid, Width: 0.6}
	if g.x != nil {
		for _, t := range g.x.Ticks(p.X.Min, p.X.Max) {
			if !t.IsMinor() {
				c.StrokeLine2(s, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
			}
		}
	}
	for _, t := range g.y.Ticks(p.Y.Min, p.Y.Max) {
		if !t.IsMinor() {
			c.StrokeLine2(s, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}
