package render

import (
	"math"

	"weft/orchestrator/topology"
)

// Point is a place in a drawing, in the units of SVG's picture.
type Point struct{ X, Y float64 }

// Positions returns the centre of every node of g in the arrangement of SVG, and the size of the
// drawing. Hosts that share a box there form a block below its upper edge.
func Positions(g *topology.Graph) (at []Point, width, height float64) {
	p := layout(g)
	p.arrangement.place(margin)
	at = make([]Point, len(g.Nodes))
	height = float64(p.bottom + margin)
	for _, row := range p.rows {
		for _, b := range row {
			columns := int(math.Ceil(math.Sqrt(float64(len(b.nodes)))))
			step := p.box / float64(max(columns, 1))
			for i, n := range b.nodes {
				if len(b.nodes) == 1 {
					at[n] = Point{b.x, b.y + boxHeight/2}
					continue
				}
				at[n] = Point{b.x - p.box/2 + (float64(i%columns)+0.5)*step, b.y + (float64(i/columns)+0.5)*step}
				height = max(height, at[n].Y+step/2+margin)
			}
		}
	}
	return at, max(float64(p.width+2*margin), 480), height
}
