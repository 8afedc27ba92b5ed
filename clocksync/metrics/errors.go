package metrics

import "weft/units"

// maxAll is the largest number of nodes whose pairs are all compared. Beyond it, each node is
// compared with a fixed number of others.
const maxAll = 256

// Pairs calls f with every pair of n nodes, i < j. Of more than 256 nodes, it calls f with 128
// pairs per node, at strides that are spread over all nodes.
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

// Reading is the error of a node's synchronized time at one instant, and the bound that it states.
type Reading struct {
	Error units.Time // synchronized time minus true time
	Bound units.Time // stated bound of the difference from the cluster's time
	Known bool       // it states a bound
}

// Instant summarizes the readings of all nodes at one instant.
type Instant struct {
	Worst   units.Time // largest difference between two nodes
	Pairs   int64      // pairs that were compared, those with a skipped node included
	Bounded int64      // pairs in which both nodes state a bound
	Covered int64      // those of them whose difference is at most the sum of both bounds
}

// Compare compares the readings of all nodes and passes the difference of each pair to record,
// which may be nil. Nodes for which skip returns true are left out of the differences, because
// nothing synchronizes them; their bounds must hold all the same. skip may be nil.
func Compare(nodes []Reading, skip func(i int) bool, record func(d units.Time)) Instant {
	var at Instant
	Pairs(len(nodes), func(i, j int) {
		a, b := &nodes[i], &nodes[j]
		at.Pairs++
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

// Convergence finds the instant since when all clocks have been within a limit of each other.
type Convergence struct {
	Limit units.Time // largest difference that counts as converged
	since units.Time // when the clocks came within it
	in    bool       // they are within it
}

// Add records the largest difference at an instant, which must be later than the last.
func (c *Convergence) Add(at, worst units.Time) {
	switch {
	case worst > c.Limit:
		c.in = false
	case !c.in:
		c.in, c.since = true, at
	}
}

// Since returns the instant since when the largest difference has been within the limit. ok is
// false if it is not.
func (c *Convergence) Since() (at units.Time, ok bool) { return c.since, c.in }
