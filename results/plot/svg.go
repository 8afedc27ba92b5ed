package plot

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// canvas writes SVG. It implements vg.CanvasSizer.
//
// Coordinates have two decimals: less than a hundredth of a point is invisible, and the last bits
// of floating-point numbers differ between processors. Each glyph is defined once and then referred
// to.
type canvas struct {
	width, height vg.Length
	body, defs    bytes.Buffer
	glyphs        map[string]bool
	pen           pen
	stack         []pen
	buf           sfnt.Buffer
}

// pen is the state that Push saves.
type pen struct {
	m     matrix
	color color.Color
	width vg.Length
	dash  []vg.Length
	off   vg.Length
}

// matrix maps (x, y) to (ax + cy + e, bx + dy + f), as SVG writes it.
type matrix struct{ a, b, c, d, e, f float64 }

func (m matrix) apply(x, y float64) (float64, float64) {
	return float64(m.a*x) + float64(m.c*y) + m.e, float64(m.b*x) + float64(m.d*y) + m.f
}

// before returns the matrix that applies n first, then m.
func (m matrix) before(n matrix) matrix {
	e, f := m.apply(n.e, n.f)
	return matrix{
		float64(m.a*n.a) + float64(m.c*n.b), float64(m.b*n.a) + float64(m.d*n.b),
		float64(m.a*n.c) + float64(m.c*n.d), float64(m.b*n.c) + float64(m.d*n.d), e, f,
	}
}

// newCanvas returns a canvas whose origin is at the lower left, as vg has it.
func newCanvas(width, height vg.Length) *canvas {
	c := &canvas{width: width, height: height, glyphs: map[string]bool{}}
	c.pen.m = matrix{1, 0, 0, -1, 0, float64(height)}
	vg.Initialize(c)
	return c
}

func (c *canvas) Size() (w, h vg.Length)                   { return c.width, c.height }
func (c *canvas) SetLineWidth(w vg.Length)                 { c.pen.width = w }
func (c *canvas) SetLineDash(d []vg.Length, off vg.Length) { c.pen.dash, c.pen.off = d, off }
func (c *canvas) Push()                                    { c.stack = append(c.stack, c.pen) }

func (c *canvas) Pop() {
	c.pen = c.stack[len(c.stack)-1]
	c.stack = c.stack[:len(c.stack)-1]
}

func (c *canvas) SetColor(clr color.Color) {
	if clr == nil {
		clr = color.Black
	}
	c.pen.color = clr
}

func (c *canvas) Rotate(rad float64) {
	s, cos := math.Sincos(rad)
	c.pen.m = c.pen.m.before(matrix{cos, s, -s, cos, 0, 0})
}

func (c *canvas) Translate(pt vg.Point) {
	c.pen.m = c.pen.m.before(matrix{1, 0, 0, 1, float64(pt.X), float64(pt.Y)})
}

func (c *canvas) Scale(x, y float64) { c.pen.m = c.pen.m.before(matrix{x, 0, 0, y, 0, 0}) }

// DrawImage is part of vg.Canvas; no chart has images.
func (c *canvas) DrawImage(vg.Rectangle, image.Image) { panic("plot: charts have no images") }

func (c *canvas) Stroke(p vg.Path) {
	if c.pen.width <= 0 {
		return
	}
	d := c.path(p)
	if d == "" {
		return
	}
	fmt.Fprintf(&c.body, `<path d="%s" fill="none" stroke="%s" stroke-width="%s"`,
		d, hex(c.pen.color), short(float64(c.pen.width)))
	c.opacity("stroke")
	if len(c.pen.dash) > 0 {
		parts := make([]string, len(c.pen.dash))
		for i, l := range c.pen.dash {
			parts[i] = short(float64(l))
		}
		fmt.Fprintf(&c.body, ` stroke-dasharray="%s"`, strings.Join(parts, " "))
		if c.pen.off != 0 {
			fmt.Fprintf(&c.body, ` stroke-dashoffset="%s"`, short(float64(c.pen.off)))
		}
	}
	c.body.WriteString("/>\n")
}

func (c *canvas) Fill(p vg.Path) {
	d := c.path(p)
	if d == "" {
		return
	}
	fmt.Fprintf(&c.body, `<path d="%s" fill="%s"`, d, hex(c.pen.color))
	c.opacity("fill")
	c.body.WriteString("/>\n")
}

// opacity writes the opacity of the colour, unless it is 1.
func (c *canvas) opacity(of string) {
	if _, _, _, a := c.pen.color.RGBA(); a != 0xffff {
		fmt.Fprintf(&c.body, ` %s-opacity="%s"`, of, short(float64(a)/0xffff))
	}
}

// path writes a path in the coordinates of the drawing.
func (c *canvas) path(p vg.Path) string {
	var b strings.Builder
	to := func(cmd byte, px, py float64) {
		dx, dy := c.pen.m.apply(px, py)
		b.WriteByte(cmd)
		b.WriteString(short(dx) + " " + short(dy))
	}
	for _, s := range p {
		switch s.Type {
		case vg.MoveComp:
			to('M', float64(s.Pos.X), float64(s.Pos.Y))
		case vg.LineComp:
			to('L', float64(s.Pos.X), float64(s.Pos.Y))
		case vg.ArcComp:
			c.arc(s, &b, to)
		case vg.CurveComp:
			b.WriteByte("LQC"[len(s.Control)]) // a curve has one control point or two
			for _, q := range s.Control {
				qx, qy := c.pen.m.apply(float64(q.X), float64(q.Y))
				b.WriteString(short(qx) + " " + short(qy) + " ")
			}
			dx, dy := c.pen.m.apply(float64(s.Pos.X), float64(s.Pos.Y))
			b.WriteString(short(dx) + " " + short(dy))
		case vg.CloseComp:
			b.WriteByte('Z')
		}
	}
	return b.String()
}

// arc writes an arc as short lines. Charts have no arcs but the circles of markers, a few points
// wide.
func (c *canvas) arc(s vg.PathComp, b *strings.Builder, to func(byte, float64, float64)) {
	const parts = 16
	for i := range parts + 1 {
		sin, cos := math.Sincos(s.Start + s.Angle*float64(i)/parts)
		cmd := byte('L')
		if i == 0 && b.Len() == 0 {
			cmd = 'M'
		}
		to(cmd, float64(s.Pos.X)+float64(s.Radius)*cos, float64(s.Pos.Y)+float64(s.Radius)*sin)
	}
}

// FillString draws text as the outlines of its glyphs.
func (c *canvas) FillString(f font.Face, pt vg.Point, text string) {
	if f.Font.Size <= 0 {
		return
	}
	em := f.Face.UnitsPerEm()
	ppem := fixed.Int26_6(em)
	scale := float64(f.Font.Size) / float64(em)
	at := 0
	var prev sfnt.GlyphIndex
	fmt.Fprintf(&c.body, `<g fill="%s">`, hex(c.pen.color))
	for i, r := range []rune(text) {
		g, err := f.Face.GlyphIndex(&c.buf, r)
		if err != nil {
			// the font lacks this character; the rest of the text is drawn
			continue
		}
		if kern, err := f.Face.Kern(&c.buf, prev, g, ppem, 0); i > 0 && err == nil {
			at += int(kern)
		}
		if id := c.glyph(f, g, ppem); id != "" {
			m := c.pen.m.before(matrix{scale, 0, 0, -scale, float64(pt.X) + float64(at)*scale, float64(pt.Y)})
			fmt.Fprintf(&c.body, `<use href="#%s" transform="matrix(%s %s %s %s %s %s)"/>`,
				id, tiny(m.a), tiny(m.b), tiny(m.c), tiny(m.d), short(m.e), short(m.f))
		}
		if advance, err := f.Face.GlyphAdvance(&c.buf, g, ppem, 0); err == nil {
			at += int(advance)
		}
		prev = g
	}
	c.body.WriteString("</g>\n")
}

// glyph defines a glyph once and returns its id, or "" for a blank. The id is the same in every
// drawing, so that several drawings in one page agree.
func (c *canvas) glyph(f font.Face, g sfnt.GlyphIndex, ppem fixed.Int26_6) string {
	id := "g" + strconv.Itoa(int(f.Font.Weight)) + strconv.Itoa(int(f.Font.Style)) + "-" + strconv.Itoa(int(g))
	if seen, ok := c.glyphs[id]; ok {
		if !seen {
			return ""
		}
		return id
	}
	segments, err := f.Face.LoadGlyph(&c.buf, g, ppem, nil)
	c.glyphs[id] = err == nil && len(segments) > 0
	if !c.glyphs[id] {
		return ""
	}
	fmt.Fprintf(&c.defs, `<path id="%s" d="`, id)
	for _, s := range segments {
		n := map[sfnt.SegmentOp]int{sfnt.SegmentOpMoveTo: 1, sfnt.SegmentOpLineTo: 1, sfnt.SegmentOpQuadTo: 2,
			sfnt.SegmentOpCubeTo: 3}[s.Op]
		c.defs.WriteByte("MLQC"[s.Op])
		for k := range n {
			if k > 0 {
				c.defs.WriteByte(' ')
			}
			fmt.Fprintf(&c.defs, "%d %d", int(s.Args[k].X), int(s.Args[k].Y))
		}
	}
	c.defs.WriteString("Z\"/>\n")
	return id
}

// bytes returns the drawing, with a title for readers who do not see it.
func (c *canvas) bytes(title, about string) []byte {
	var out bytes.Buffer
	w, h := short(float64(c.width)), short(float64(c.height))
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s"`+
		` viewBox="0 0 %s %s" role="img">`+"\n", w, h, w, h)
	if title != "" {
		fmt.Fprintf(&out, "<title>%s</title>\n", escape(title))
	}
	if about != "" {
		fmt.Fprintf(&out, "<desc>%s</desc>\n", escape(about))
	}
	if c.defs.Len() > 0 {
		fmt.Fprintf(&out, "<defs>\n%s</defs>\n", c.defs.Bytes())
	}
	out.Write(c.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

func hex(c color.Color) string {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	return fmt.Sprintf("#%02x%02x%02x", n.R, n.G, n.B)
}

// short formats a coordinate with at most two decimals; tiny formats a factor with five.
func short(v float64) string { return decimals(v, 100) }
func tiny(v float64) string  { return decimals(v, 100000) }

func decimals(v, scale float64) string {
	return strconv.FormatFloat(math.Round(v*scale)/scale+0, 'f', -1, 64)
}
