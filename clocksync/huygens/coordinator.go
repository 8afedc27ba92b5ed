package huygens

import (
	"math"

	"weft/clocksync"
	"weft/units"
)

// coordinator collects the reports of a window and solves them. It keeps no state between windows,
// so that the other coordinator can take over at any time.
type coordinator struct {
	window  uint32         // the window that is collected
	solveAt units.Time     // when it is solved, by the monotonic clock
	nodes   []reported     // by node
	edges   []measuredEdge // reported so far
	owned   map[Edge]int   // number of each edge of the mesh, which its owner reports
	had     []bool         // by that number: it was reported
	least   units.Time     // minimum standard deviation of an edge
	solver  solver
}

// reported is a node's report about itself. Its fields are those of report.
type reported struct {
	ok     bool   // a report has come
	parts  uint64 // bitmap of the parts that have come
	anchor bool
	lone   bool
	x0     units.Time
	rate   float64
}

// measuredEdge is a reported edge with its owner.
type measuredEdge struct {
	from clocksync.Node
	edgeFit
}

// newCoordinator returns a coordinator of a mesh. No edge gets a standard deviation below least.
func newCoordinator(nodes int, mesh []Edge, least units.Time) *coordinator {
	c := &coordinator{nodes: make([]reported, nodes), owned: make(map[Edge]int, len(mesh)),
		had: make([]bool, len(mesh)), least: least, solveAt: units.Never}
	for i, e := range mesh {
		c.owned[e] = i
	}
	return c
}

// begin starts collecting a window.
func (c *coordinator) begin(w uint32) {
	c.window = w
	clear(c.nodes)
	c.edges = c.edges[:0]
	clear(c.had)
}

// take keeps a report. It returns false for a duplicate, and for one of another window.
func (c *coordinator) take(from clocksync.Node, r *report) bool {
	n := &c.nodes[from]
	if r.window != c.window || n.parts>>r.part&1 == 1 || n.ok && (n.x0 != r.x0 || n.rate != r.rate) {
		return false
	}
	n.ok, n.anchor, n.lone, n.x0, n.rate = true, r.anchor, r.lone, r.x0, r.rate
	n.parts |= 1 << r.part
	for _, e := range r.edges {
		k := c.owned[Edge{from, e.to}]
		if c.had[k] {
			continue
		}
		c.had[k] = true
		e.sigma = max(e.sigma, c.least)
		c.edges = append(c.edges, measuredEdge{from: from, edgeFit: e})
	}
	return true
}

// onReport handles a report. A node may report only the edges that it owns; the edges of other
// nodes then expose false ones.
func (a *Agent) onReport(now clocksync.Now, in *clocksync.Message) error {
	if a.coordinator == nil {
		return ErrForeign
	}
	var r report
	if err := r.decode(in.Data); err != nil {
		return err
	}
	for _, e := range r.edges {
		if _, ok := a.coordinator.owned[Edge{in.From, e.to}]; !ok {
			return ErrForeign
		}
	}
	if rank := a.rank(in.From); r.anchor && !r.lone && rank >= 0 && rank < a.rank(a.setup.Self) {
		a.yield(now)
	}
	if !a.coordinator.take(in.From, &r) {
		return ErrStale
	}
	return nil
}

// solve solves the window and sends every node its error. Without an anchor in the solved component
// the nodes follow their mean, but only if no reference is known: then they are lone, or bound how
// far they have drifted from the reference's time.
func (a *Agent) solve(now clocksync.Now) {
	c := a.coordinator
	edges := c.measured()
	anchor := c.anchor(a)
	anchorLone := anchor >= 0 && c.nodes[anchor].lone
	window := c.window
	result, ok := c.solver.solve(len(c.nodes), edges, anchor)
	a.counters.Filtered += int64(result.dropped)
	c.begin(max(window+1, uint32((a.correction.At(now.Hard)-a.cfg.Window/solveAfter)/a.cfg.Window+windowBase)))
	a.armSolve(now)
	tied := ok && anchor >= 0 && result.in[anchor]
	if !ok || !tied && (a.anchor || a.yielded) { // there is a reference, and it is not connected to these nodes
		return
	}
	lone, adrift := a.lone, a.doubt(now)
	if tied && !anchorLone {
		lone, adrift = false, 0
	}
	a.again.begin(a.again.lossy)
	scale := math.Sqrt(max(1, result.health))
	for i := range c.nodes {
		if !result.in[i] {
			continue
		}
		s := solution{window: window, lone: lone, adrift: adrift, err: units.Time(math.Round(result.x[i])),
			skew: result.s[i], sigma: units.Time(math.Ceil(scale * result.sigma[i]))}
		if to := clocksync.Node(i); to != a.setup.Self {
			a.post(to, false, s.encode)
			a.again.keep(now, to, a.cfg.Window, s.encode)
		} else if err := a.apply(now, a.rank(to), &s); err != nil {
			a.counters.Stale++
		}
	}
}

// anchor returns the node that the others follow, or -1.
func (c *coordinator) anchor(a *Agent) (node int) {
	node = -1
	for rank := min(a.cfg.Coordinators, a.setup.Nodes) - 1; rank >= 0; rank-- {
		if n := a.coordinatorOf(rank); c.nodes[n].ok && c.nodes[n].anchor {
			node = int(n)
		}
	}
	return node
}

// measured returns the edges with reports of both ends, as the error of the line of node j minus
// that of node i, where a line is the time that a node follows.
func (c *coordinator) measured() []measured {
	var edges []measured
	for _, e := range c.edges {
		i, j := &c.nodes[e.from], &c.nodes[e.to]
		if !i.ok || !j.ok {
			continue
		}
		edges = append(edges, measured{
			from: int(e.from), to: int(e.to),
			d:     float64(e.beta + i.x0 - j.x0),
			s:     math.Log1p(e.alpha) + math.Log1p(j.rate) - math.Log1p(i.rate),
			sigma: float64(e.sigma),
		})
	}
	return edges
}
