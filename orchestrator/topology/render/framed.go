package render

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"weft/orchestrator/topology"
)

// Sizes of framed pictures in pixels. Ours.
const (
	framePad  = 10 // between a frame and its contents
	frameGap  = 16 // between frames side by side
	frameName = 16 // room for the name
	minBand   = 90 // between bands of frames: an eighth of the width, within these
	maxBand   = 240
	minArc    = 24 // height of an arc to the next frame
	frameArc  = 24 // additional height for each further frame, up to maxArc
	maxArc    = 300
	arcSpread = 16 // between the arcs of a group's first and last switch: their tops do not coincide
)

// frames arranges switches in racks or groups, with a frame around each. Frames that begin at the
// same row stand side by side, in order. Links between switches of one row in different frames are
// arcs above all frames.
type frames struct {
	*picture
	groups []*group
	bands  [][]*group // lowest first
	in     []*group   // per node
	arcs   bool
}

// group is the contents of one frame.
type group struct {
	name  string
	index int      // in its band
	low   int      // row of its lowest boxes
	rows  [][]*box // from low
	width float64
}

func framed(g *topology.Graph) *picture {
	f := &frames{picture: boxed(g, g.Hosts > separateHosts), in: make([]*group, len(g.Nodes))}
	f.arrangement = f
	named := make(map[string]*group)
	for r, row := range f.rows {
		for _, b := range row {
			f.enter(named, r, b)
		}
	}
	for _, x := range f.groups {
		f.join(x)
	}
	for i := range g.Links {
		l := &g.Links[i]
		f.arcs = f.arcs || f.of[l.A].row == f.of[l.B].row
	}
	widest := 0.0
	for _, band := range f.bands {
		widest = max(widest, f.across(band))
	}
	f.width = int(widest + 0.5)
	return f.picture
}

// enter puts a box of row r into the group of its switch.
func (f *frames) enter(named map[string]*group, r int, b *box) {
	sw := b.nodes[0]
	if b.kind == topology.Host {
		sw = f.g.Home(sw)
	}
	name := f.g.Nodes[sw].Group
	x := named[name]
	if x == nil {
		x = &group{name: name, low: r}
		named[name] = x
		f.groups = append(f.groups, x)
	}
	for len(x.rows) <= r-x.low {
		x.rows = append(x.rows, nil)
	}
	x.rows[r-x.low] = append(x.rows[r-x.low], b)
	for _, n := range b.nodes {
		f.in[n] = x
	}
}

// join measures a group and puts it into its band.
func (f *frames) join(x *group) {
	widest := 0
	for _, row := range x.rows {
		widest = max(widest, len(row))
	}
	x.width = max(float64(float64(widest)*(f.box+slotGap)),
		float64(float64(utf8.RuneCountInString(x.name))*charWidth)) + 2*framePad
	last := len(f.bands) - 1
	if last < 0 || f.bands[last][0].low != x.low {
		f.bands = append(f.bands, nil)
		last++
	}
	x.index = len(f.bands[last])
	f.bands[last] = append(f.bands[last], x)
}

// across returns the width of a band.
func (f *frames) across(band []*group) float64 {
	sum := float64(frameGap * (len(band) - 1))
	for _, x := range band {
		sum += x.width
	}
	return sum
}

// place puts the highest band at top, below room for arcs, and centres each band.
func (f *frames) place(top float64) {
	y := top
	if f.arcs {
		y += f.rise(f.bands[0], len(f.bands[0])-1) + arcSpread
	}
	gap := float64(min(max(f.width/8, minBand), maxBand))
	for i := len(f.bands) - 1; i >= 0; i-- {
		band := f.bands[i]
		x, tallest := margin+(float64(f.width)-f.across(band))/2, 0.0
		for _, w := range band {
			h := float64(2*framePad + frameName + rowGap*(len(w.rows)-1) + boxHeight)
			border := frame{name: w.name, x: x, y: y, width: w.width, height: h, above: w.low > 0}
			f.frames = append(f.frames, border)
			w.fill(border)
			x += w.width + frameGap
			tallest = max(tallest, h)
		}
		y += tallest + gap
	}
	f.bottom = int(y - gap)
}

// fill gives the boxes of a group their coordinates.
func (x *group) fill(in frame) {
	top := in.y + framePad
	if in.above {
		top += frameName
	}
	for r, row := range x.rows {
		slot := (in.width - 2*framePad) / float64(len(row))
		for j, b := range row {
			b.x = in.x + framePad + float64((float64(j)+0.5)*slot)
			b.y = top + float64(rowGap*(len(x.rows)-1-r))
		}
	}
}

// rise returns the height of an arc that spans over frames of a band.
func (f *frames) rise(band []*group, over int) float64 {
	most := min(minArc+frameArc*(len(band)-1), maxArc)
	return minArc + float64(over*(most-minArc))/float64(max(len(band)-1, 1))
}

func (f *frames) line(l *topology.Link) string {
	from, to := f.of[l.A], f.of[l.B]
	if from.row != to.row {
		return curve(from, to)
	}
	a, z := f.in[l.A], f.in[l.B]
	band, row := f.bands[0], a.rows[from.row-a.low]
	height := f.rise(band, max(a.index-z.index, z.index-a.index)) +
		float64(arcSpread*slices.Index(row, from))/float64(len(row))
	up := from.y - float64(height*4/3) // a cubic with level handles reaches 3/4 of their height
	x, w := f.port(from, a, z, len(band)), f.port(to, z, a, len(band))
	return fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x, from.y, x, up, w, up, w, to.y)
}

// port returns where the arc to group z begins on top of box b of group a. Ports stand side by
// side, those to farther groups inside, so that the arcs of a box do not cross.
func (f *frames) port(b *box, a, z *group, of int) float64 {
	place := a.index - 1 - z.index
	if z.index > a.index {
		place = a.index + of - 1 - z.index
	}
	return b.x - f.box/2 + float64(f.box*float64(place+1))/float64(of)
}
