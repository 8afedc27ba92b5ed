package metrics

import "weft/units"

// maxAll is up to how many nodes all pairs are compared; beyond, each is with as many others as make about as many pairs.
const maxAll = 256

// Pairs calls f with every pair of n nodes, i < j; of more than 256, with 128 pairs of each node, at strides spread over
// the nodes.
func Pairs(n int, f func(i, j int)) {
	if n <= maxAll {
		for i := range n {
			for j := i + 1; j < n; j++ {
				f(i, j)
			}
		}
		return
	}
	for k := 1; k <= maxAll/2; k++ {
		stride := max(1, k*(n/2)/(maxAll/2))
		for i := range n {
			if j := (i + stride) % n; i < j {
				f(i, j)
			} else {
				f(j, i)
			}
		}
	}
}

// Reading is a node's synchronized time against true time at one instant.
type Reading struct {
	Error units.Time // of its synchronized time
	Bound units.Time // what it says that Error is within, of the cluster's time
	Known bool       // it says a bound
}

// Instant is what the readings of all nodes at one instant come to.
type Instant struct {
	Worst   units.Time // between two nodes
	Bounded int64      // pairs of which both say a bound
	Covered int64      // of these, those that are no farther apart than both bounds together
}

// Compare compares the readings of all nodes, and gives each pair's distance to record, which may be nil. The distances of a
// node of which skip says so, which may be nil, are left out: nothing keeps its clock. What it says of its own bound has to
// hold all the same.
func Compare(nodes []Reading, skip func(i int) bool, record func(d units.Time)) Instant {
	var at Instant
	Pairs(len(nodes), func(i, j int) {
		a, b := &nodes[i], &nodes[j]
		d := a.Error - b.Error
		if d < 0 {
			d = -d
		}
		if a.Known && b.Known {
			at.Bounded++
			if d <= a.Bound+b.Bound {
				at.Covered++
			}
		}
		if skip != nil && (skip(i) || skip(j)) {
			return
		}
		at.Worst = max(at.Worst, d)
		if record != nil {
			record(d)
		}
	})
	return at
}

// Convergence finds out since when the clocks have been within a limit of each other.
type Convergence struct {
	Limit units.Time
	since units.Time
	in    bool
}

// Add takes the worst distance at an instant, later than the last.
func (c *Convergence) Add(at, worst units.Time) {
	switch {
	case worst > c.Limit:
		c.in = false
	case !c.in:
		c.in, c.since = true, at
	}
}

// Since returns the first instant from which the worst distance has stayed within the limit; ok is false when it is not.
func (c *Convergence) Since() (at units.Time, ok bool) { return c.since, c.in }
