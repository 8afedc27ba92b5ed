package graph

import (
	"cmp"
	"slices"

	"weft/units"
)

// Facts summarizes a graph.
type Facts struct {
	Ranks        int         `json:"ranks"`
	Ops          int         `json:"operations"`
	Computations int         `json:"computations"`
	Messages     int         `json:"messages"`
	Bytes        units.Bytes `json:"message_bytes"`    // of all messages, without those of collectives
	LongestTime  units.Time  `json:"longest_ps"`       // of computing, of the rank that computes most
	CriticalPath units.Time  `json:"critical_path_ps"` // longest chain of computations: the least time on any network
	Collectives  []Kinds     `json:"collectives"`
}

// Kinds counts collectives that are alike.
type Kinds struct {
	Collective string      `json:"collective"`
	Ranks      int         `json:"ranks"`
	Size       units.Bytes `json:"size_bytes"`
	Count      int         `json:"count"`
}

// About returns the facts of a graph that Compile has accepted.
func About(g *Graph) Facts {
	f := Facts{Ranks: len(g.Ranks), Ops: g.Ops()}
	for _, ops := range g.Ranks {
		var busy units.Time
		for i := range ops {
			switch op := &ops[i]; op.Kind {
			case Compute:
				f.Computations++
				busy += op.Time
			case Send:
				f.Messages++
				f.Bytes += op.Size
			}
		}
		f.LongestTime = max(f.LongestTime, busy)
	}
	count := map[Kinds]int{}
	for i := range g.Calls {
		c := &g.Calls[i]
		count[Kinds{Collective: c.Collective, Ranks: len(c.Members), Size: c.Size}]++
	}
	for k, n := range count {
		k.Count = n
		f.Collectives = append(f.Collectives, k)
	}
	slices.SortFunc(f.Collectives, func(a, b Kinds) int {
		return cmp.Or(cmp.Compare(a.Collective, b.Collective), cmp.Compare(a.Ranks, b.Ranks),
			cmp.Compare(a.Size, b.Size))
	})
	f.CriticalPath = g.criticalPath()
	return f
}

// criticalPath returns the longest chain of computations, through messages and collectives that
// take no time.
func (g *Graph) criticalPath() (longest units.Time) {
	pairs, err := g.match()
	if err != nil {
		return 0
	}
	w := g.waits(pairs)
	order, stuck := Topological(w.n, w.of)
	if stuck >= 0 {
		return 0
	}
	ends := make([]units.Time, w.n)
	for _, i := range order {
		for _, a := range w.of(int(i)) {
			ends[i] = max(ends[i], ends[a])
		}
		if op := w.op(i); op.Kind == Compute {
			ends[i] += op.Time
		}
		longest = max(longest, ends[i])
	}
	return longest
}
