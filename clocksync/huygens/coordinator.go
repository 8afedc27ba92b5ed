package huygens

import (
	"math"

	"weft/clocksync"
	"weft/units"
)

// coordinator collects the reports of a window and solves them. It remembers nothing from one window to the next, so
// another one can take over at any time.
type coordinator struct {
	window  uint32 // that is collected
	solveAt units.Time
	nodes   []reported
	edges   []measuredEdge
	owned   map[Edge]int // edges of the mesh: each is reported by its owner
	had     []bool       // by that number: it was reported
	least   units.Time   // standard deviation of an edge that counts
	solver  solver
	last    Health
}

// reported is what a node reported of itself.
type reported struct {
	ok     bool
	parts  uint64 // of its report that came
	anchor bool
	lone   bool
	x0     units.Time
	rate   float64
}

type measuredEdge struct {
	from clocksync.Node
	edgeFit
}

// Health says how well the edges of a window agreed.
type Health struct {
	Window  uint32  // counted from 2^31, which begins at time 0
	Nodes   int     // that could be solved: those connected to the anchor, or the most that are
	Edges   int     // reported
	Dropped int     // of these, since they did not fit
	Chi2    float64 // squared standardized residuals per degree of freedom: about 1, or the bounds of edges are wrong
}

// Health returns that of the last window; ok is false at a node that solves none.
func (a *Agent) Health() (h Health, ok bool) {
	if a.coordinator == nil {
		return Health{}, false
	}
	return a.coordinator.last, true
}

func newCoordinator(nodes int, mesh []Edge, least units.Time) *coordinator {
	c := &coordinator{nodes: make([]reported, nodes), owned: make(map[Edge]int, len(mesh)), had: make([]bool, len(mesh)), least: least, solveAt: units.Never}
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

// take keeps a report. It returns false for one that came already or is of another window.
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

// onReport takes a report. A node reports edges that are its own, and no others: what it says of them is held against
// the edges that the rest of the mesh reports.
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

// solve makes the edges of the window agree and tells every node what that says of it.
func (a *Agent) solve(now clocksync.Now) {
	c := a.coordinator
	edges := c.measured()
	anchor := c.anchor(a)
	anchorLone := anchor >= 0 && c.nodes[anchor].lone
	window := c.window
	result, ok := c.solver.solve(len(c.nodes), edges, anchor)
	c.last = Health{Window: window, Edges: len(edges), Dropped: result.dropped, Chi2: result.health}
	for _, in := range result.in {
		if in {
			c.last.Nodes++
		}
	}
	a.counters.Filtered += int64(result.dropped)
	c.begin(max(window+1, uint32((a.correction.At(now.Hard)-a.cfg.Window/solveAfter)/a.cfg.Window+windowBase)))
	a.armSolve(now)
	tied := ok && anchor >= 0 && result.in[anchor]
	if !ok || !tied && (a.anchor || a.yielded) { // what is not connected to the reference is not for who knows that it is there
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
		s := solution{window: window, lone: lone, adrift: adrift, err: units.Time(math.Round(result.x[i])), skew: result.s[i], sigma: units.Time(math.Ceil(scale * result.sigma[i]))}
		if to := clocksync.Node(i); to != a.setup.Self {
			a.post(to, false, s.encode)
			a.again.keep(now, to, a.cfg.Window, s.encode)
		} else if err := a.apply(now, a.rank(to), &s); err != nil {
			a.counters.Stale++
		}
	}
}

// anchor returns the node whose line the others are held against, or -1.
func (c *coordinator) anchor(a *Agent) (node int) {
	node = -1
	for rank := min(a.cfg.Coordinators, a.setup.Nodes) - 1; rank >= 0; rank-- {
		if n := a.coordinatorOf(rank); c.nodes[n].ok && c.nodes[n].anchor {
			node = int(n)
		}
	}
	return node
}

// measured returns the edges whose both ends have reported, as errors of the lines by which the nodes go: node j's less
// node i's.
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
