package render

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"weft/orchestrator/topology"
)

// Sizes of grids in pixels. Ours.
const (
	hostDrop = 30 // from the top of a switch to that of its hosts
	stub     = 14 // visible part of a link that closes a ring
	noteSize = 10 // height of a label
	noteChar = 5  // width of its characters
	laneLow  = 20 // height of the lowest lane between grids above the switches
	laneGap  = 6
	corner   = 5 // radius
)

// grid arranges a torus: its last two dimensions are rows and columns, with hosts at the lower
// right of their switch. A link that closes a ring is drawn as a stub at each end with the name of
// the other end. The first of three dimensions gives several grids side by side. Links between them
// run above the rows, in one lane per column.
type grid struct {
	*picture
	layers, rows, columns int
	// from a grid's border to the centre of the first and of the last column
	left, right float64
	dx, dy      float64 // from switch to switch
	lanes       float64 // height of the lanes above a row
	layer       float64 // width of a grid
}

func gridded(g *topology.Graph) *picture {
	p := boxed(g, true)
	d := g.Grid
	q := &grid{picture: p, layers: 1, rows: d[len(d)-2], columns: d[len(d)-1]}
	if len(d) == 3 {
		q.layers = d[0]
		q.lanes = float64(laneLow + laneGap*(q.columns-1))
	}
	longest := 0
	for _, b := range p.rows[1] {
		longest = max(longest, utf8.RuneCountInString(b.label))
	}
	side := float64(stub + 6 + noteChar*longest)
	q.left = p.box/2 + side
	q.right = p.box/2 + max(side, float64(p.box*0.75)+12)
	q.dx = 2*p.box + 12
	q.dy = hostDrop + boxHeight + 22 + q.lanes
	q.layer = q.left + float64(float64(q.columns-1)*q.dx) + q.right
	p.width = int(q.layer+0.5)*q.layers + frameGap*(q.layers-1)
	p.arrangement = q
	return p
}

// at returns the coordinates of a switch.
func (q *grid) at(n topology.NodeID) (layer, row, column int) {
	s := int(n) - q.g.Hosts
	return s / q.columns / q.rows, s / q.columns % q.rows, s % q.columns
}

// above returns the height of a stub on top of a column, which passes the lanes.
func (q *grid) above() float64 { return max(q.lanes+8, stub) }

func (q *grid) place(top float64) {
	first := top + framePad + noteSize + q.above()
	last := first + float64(float64(q.rows-1)*q.dy)
	bottom := last + hostDrop + boxHeight + 6 + noteSize
	for _, b := range q.picture.rows[1] {
		layer, row, column := q.at(b.nodes[0])
		b.x = margin + q.left + float64(float64(layer)*(q.layer+frameGap)) + float64(float64(column)*q.dx)
		b.y = first + float64(float64(row)*q.dy)
	}
	for _, b := range q.picture.rows[0] {
		sw := q.of[q.g.Home(b.nodes[0])]
		b.x, b.y = sw.x+float64(q.box*0.75)+4, sw.y+hostDrop
	}
	if len(q.g.Grid) == 3 {
		bottom += framePad + frameName
		for i := range q.layers {
			q.frames = append(q.frames, frame{name: "layer " + strconv.Itoa(i), x: margin +
				float64(float64(i)*(q.layer+frameGap)), y: top,
				width: q.layer, height: bottom - top})
		}
	}
	q.bottom = int(bottom)
	for i := range q.g.Links {
		q.name(&q.g.Links[i])
	}
}

// ring returns the dimension of a link between switches, counted from the last (0: in a row, 1: in
// a column, 2: between grids), and whether it closes the ring, from the last switch to the first.
func (q *grid) ring(l *topology.Link) (dimension int, closes bool) {
	la, ra, ca := q.at(l.A)
	lz, rz, cz := q.at(l.B)
	switch {
	case la != lz:
		return 2, la > lz
	case ra != rz:
		return 1, ra > rz
	}
	return 0, ca > cz
}

// name labels both stubs of a link that closes a ring.
func (q *grid) name(l *topology.Link) {
	from, to := q.of[l.A], q.of[l.B]
	if from.row != to.row {
		return
	}
	dimension, closes := q.ring(l)
	if !closes {
		return
	}
	half := q.box / 2
	switch dimension {
	case 0:
		q.notes = append(q.notes, label{from.x + half + stub + 3, from.y + 12, "w r", to.label},
			label{to.x - half - stub - 3, to.y + 12, "w l", from.label})
	case 1:
		q.notes = append(q.notes, label{from.x, from.y + hostDrop + boxHeight + 4 + noteSize, "w", to.label},
			label{to.x, to.y - q.above() - 3, "w", from.label})
	case 2:
		q.notes = append(q.notes, label{from.x + half + 11, from.y - 6, "w r", to.label},
			label{to.x - half - 11, to.y - 6, "w l", from.label})
	}
}

func (q *grid) line(l *topology.Link) string {
	from, to := q.of[l.A], q.of[l.B]
	if from.row != to.row { // link of a host
		return segment(to.x+float64(q.box*0.4), to.y+boxHeight, from.x, from.y)
	}
	half, middle := q.box/2, from.y+boxHeight/2
	switch dimension, closes := q.ring(l); {
	case dimension == 0 && closes:
		return segment(from.x+half, middle, from.x+half+stub, middle) + segment(to.x-half, middle, to.x-half-stub,
			middle)
	case dimension == 0:
		return segment(from.x+half, middle, to.x-half, middle)
	case dimension == 1 && closes:
		return segment(from.x, from.y+boxHeight, from.x, from.y+hostDrop+boxHeight+5) + segment(to.x, to.y, to.x,
			to.y-q.above())
	case dimension == 1:
		return segment(from.x, from.y+boxHeight, to.x, to.y)
	case closes:
		return segment(from.x+half-1, from.y, from.x+half+9, from.y-9) + segment(to.x-half+1, to.y, to.x-half-9, to.y-9)
	}
	return q.lane(l)
}

// lane returns the path from a grid to the next: up, along the lane of the column, down. Lanes of
// columns further left are higher, so that two links cross once.
func (q *grid) lane(l *topology.Link) string {
	from, to := q.of[l.A], q.of[l.B]
	_, _, column := q.at(l.A)
	x, w := from.x+q.box/4, to.x-q.box/4
	y := from.y - float64(laneLow+laneGap*(q.columns-1-column))
	return fmt.Sprintf("M%.1f %.1fL%.1f %.1fQ%.1f %.1f %.1f %.1fL%.1f %.1fQ%.1f %.1f %.1f %.1fL%.1f %.1f", x, from.y,
		x, y+corner, x, y, x+corner, y,
		w-corner, y, w, y, w, y+corner, w, to.y)
}

// segment returns a straight line.
func segment(x, y, toX, toY float64) string {
	return fmt.Sprintf("M%.1f %.1fL%.1f %.1f", x, y, toX, toY)
}
