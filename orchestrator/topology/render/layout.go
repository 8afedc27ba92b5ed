package render

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"weft/orchestrator/topology"
)

// separateHosts is the largest number of hosts with a box each. Ours.
const separateHosts = 64

// picture is a graph laid out in rows.
type picture struct {
	// share of a link's capacity that was used; nil: not drawn
	share  func(*topology.Link) float64
	events map[string][]Event // by name of link or node
	g      *topology.Graph
	rows   [][]*box // hosts first
	of     []*box   // per node
	box    float64  // width of a box
	width  int      // without margins
	// lower end of the drawing, known after place
	bottom int

	arrangement arrangement
	frames      []frame
	notes       []label
}

// arrangement places the boxes of a picture: in layers, in frames, or on a grid.
type arrangement interface {
	// gives every box its coordinates, none above top, and sets the picture's bottom
	place(top float64)
	line(l *topology.Link) string // the path of a link, in SVG's syntax
}

// frame is a named rectangle around nodes that belong together.
type frame struct {
	name                string
	x, y, width, height float64
	above               bool // the name stands above the contents, not below
}

// label is a small text outside the boxes.
type label struct {
	x, y float64
	// class of the text: "w" centred at x, "w l" ending there, "w r" beginning there
	side string
	text string
}

// box is a node, or all hosts of one switch.
type box struct {
	nodes []topology.NodeID
	kind  topology.NodeKind
	label string
	about string  // tooltip
	x, y  float64 // middle of the top edge
	row   int
	order float64 // place in its row
}

// hosts returns the number of hosts in the box; 0 for a switch.
func (b *box) hosts() int {
	if b.kind == topology.Switch {
		return 0
	}
	return len(b.nodes)
}

// layout chooses the arrangement of g by its kind, and lays it out.
func layout(g *topology.Graph) *picture {
	switch {
	case g.Grid != nil:
		return gridded(g)
	case g.Nodes[g.Hosts].Group != "":
		return framed(g)
	}
	return layered(g)
}

// boxed returns a picture with a box for every switch, in rows by distance from the hosts, and
// boxes for the hosts.
func boxed(g *topology.Graph, joinHosts bool) *picture {
	p := &picture{g: g, of: make([]*box, len(g.Nodes))}
	level := levels(g)
	p.rows = make([][]*box, slices.Max(level)+1)
	for s := g.Hosts; s < len(g.Nodes); s++ {
		n := &g.Nodes[s]
		p.add(level[s], &box{nodes: []topology.NodeID{n.ID}, kind: topology.Switch, label: n.Name, about: n.Name +
			" (" + n.Tier + ")"})
	}
	p.addHosts(joinHosts)
	longest := 0
	for _, row := range p.rows {
		for _, b := range row {
			longest = max(longest, utf8.RuneCountInString(cut(b.label)))
		}
	}
	p.box = max(minBox, float64(longest)*charWidth+8)
	return p
}

// layers is the usual arrangement: rows, each ordered so that neighbours stand near each other.
type layers struct{ *picture }

func layered(g *topology.Graph) *picture {
	p := boxed(g, g.Hosts > separateHosts)
	for _, row := range p.rows[2:] {
		p.arrange(row)
	}
	widest := 0
	for _, row := range p.rows {
		widest = max(widest, len(row))
	}
	p.arrangement = layers{p}
	p.width = int(float64(widest) * (p.box + slotGap))
	return p
}

func (p *picture) add(row int, b *box) {
	b.row, b.order = row, float64(len(p.rows[row]))
	p.rows[row] = append(p.rows[row], b)
	for _, n := range b.nodes {
		p.of[n] = b
	}
}

// addHosts fills the lowest row, in the order of the switches above. If joined, hosts of a switch
// share a box.
func (p *picture) addHosts(joined bool) {
	g := p.g
	behind := make([][]topology.NodeID, len(g.Nodes))
	for h := range topology.NodeID(g.Hosts) {
		home := g.Home(h)
		behind[home] = append(behind[home], h)
	}
	for _, sw := range p.rows[1] {
		hosts := behind[sw.nodes[0]]
		if joined && len(hosts) > 1 {
			about := fmt.Sprintf("%d hosts: %s (%s)", len(hosts), span(g, hosts), addresses(g, hosts))
			p.add(0, &box{nodes: hosts, kind: topology.Host, label: span(g, hosts), about: about})
			continue
		}
		for _, h := range hosts {
			n := &g.Nodes[h]
			p.add(0, &box{nodes: []topology.NodeID{h}, kind: topology.Host, label: n.Name, about: n.Name + " " +
				n.Addr})
		}
	}
}

// arrange orders a row of switches by the mean place of their neighbours in the row below.
func (p *picture) arrange(row []*box) {
	sum := make(map[*box]float64)
	number := make(map[*box]float64)
	for _, l := range p.g.Links {
		above, below := p.of[l.A], p.of[l.B]
		if above.row < below.row {
			above, below = below, above
		}
		if above.row == row[0].row && below.row < above.row {
			sum[above] += below.order
			number[above]++
		}
	}
	mean := func(b *box) float64 { return sum[b] / max(number[b], 1) }
	slices.SortStableFunc(row, func(a, b *box) int {
		switch d := mean(a) - mean(b); {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	for i, b := range row {
		b.order = float64(i)
	}
}

// place spreads the rows evenly over the width, with the highest at top.
func (p layers) place(top float64) {
	for i, row := range p.rows {
		slot := float64(p.width) / float64(len(row))
		for j, b := range row {
			// no fused multiply-add: the same bytes on every processor
			b.x = margin + float64((float64(j)+0.5)*slot)
			b.y = top + float64(rowGap*(len(p.rows)-1-i))
		}
	}
	p.bottom = int(top) + rowGap*(len(p.rows)-1) + boxHeight
}

func (p layers) line(l *topology.Link) string { return curve(p.of[l.A], p.of[l.B]) }

// levels returns each node's distance in hops to the nearest host over any link, up or down: 0 for
// hosts, 1 for the switches they are attached to. Isolated switches are put at 1.
func levels(g *topology.Graph) []int {
	near := make([][]topology.NodeID, len(g.Nodes))
	for _, l := range g.Links {
		near[l.A] = append(near[l.A], l.B)
		near[l.B] = append(near[l.B], l.A)
	}
	level := make([]int, len(g.Nodes))
	queue := make([]topology.NodeID, 0, len(g.Nodes))
	for h := range topology.NodeID(g.Hosts) {
		queue = append(queue, h)
	}
	for head := 0; head < len(queue); head++ {
		n := queue[head]
		for _, m := range near[n] {
			if level[m] == 0 && g.Nodes[m].Kind == topology.Switch {
				level[m] = level[n] + 1
				queue = append(queue, m)
			}
		}
	}
	for s := g.Hosts; s < len(g.Nodes); s++ {
		level[s] = max(level[s], 1)
	}
	return level
}

// byLevel lists the nodes of each level.
func byLevel(g *topology.Graph) [][]topology.NodeID {
	level := levels(g)
	rows := make([][]topology.NodeID, slices.Max(level)+1)
	for n, l := range level {
		rows[l] = append(rows[l], topology.NodeID(n))
	}
	return rows
}
