package lab

import (
	"math"

	"weft/collectives/schedule"
	"weft/units"
)

// algorithmNames returns the algorithms of all collectives, each once.
func algorithmNames() []string {
	var names []string
	seen := make(map[string]bool)
	for _, c := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(c) {
			if !seen[a] {
				seen[a] = true
				names = append(names, a)
			}
		}
	}
	return names
}

// collectivesWith returns the collectives that have an algorithm with the given fact.
func collectivesWith(fact func(schedule.Facts) bool) (names []string) {
	for _, c := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(c) {
			if f, err := schedule.About(c, a); err == nil && fact(f) {
				names = append(names, c)
				break
			}
		}
	}
	return names
}

// Spec returns the collective as package schedule takes it, for the given number of ranks, which
// includes the root. The permutation of a permute is missing.
func (it *Item) Spec(ranks, root int) schedule.Spec {
	return schedule.Spec{
		Collective: it.Collective, Algorithm: it.Algorithm, Ranks: ranks, Root: root, Type: it.Type, Op: it.Op,
		Size: it.Size, Chunk: it.Chunk, Flows: it.Flows, Parallel: it.Parallel, Group: it.Group, FarFirst: it.FarFirst,
	}
}

// element returns the size of an element. If the type is not known, it is the smallest, 1 byte.
func (it *Item) element() units.Bytes {
	if it.Type == "" {
		return 1
	}
	return it.Type.Size()
}

// permuted returns the spec of the collective. A permute gets an example of a permutation.
func (it *Item) permuted(ranks int) schedule.Spec {
	s := it.Spec(ranks, 0)
	if schedule.Of(it.Collective).Permuted {
		for r := range ranks {
			s.Permute = append(s.Permute, (r+1)%ranks)
		}
	}
	return s
}

// messages returns the number of messages of a collective, within a factor of two, and the largest
// number that a rank sends or receives.
func (it *Item) messages(facts schedule.Facts, ranks int) (all, most float64) {
	pieces := 1.0
	if it.Chunk > 0 {
		pieces = math.Ceil(float64(it.Size) / float64(it.Chunk))
	}
	switch {
	case facts.Permuted:
		return float64(ranks) * pieces, pieces
	case facts.Flows:
		all = float64(ranks-1) * float64(max(1, it.Flows)) * pieces
		return all, all
	}
	spec := it.Spec(ranks, 0)
	if facts.Blocks { // the buffer is a block for each rank
		pieces = math.Ceil(pieces / float64(ranks))
	}
	root, err := schedule.Volume(spec, 0)
	if err != nil { // more than schedules number
		most = 2 * float64(ranks-1) * pieces
		return float64(ranks) * most, most
	}
	other, err := schedule.Volume(spec, 1)
	if err != nil {
		panic("lab: a schedule for one rank that is none for another: " + err.Error())
	}
	most = float64(max(root.Sends, root.Receives, other.Sends, other.Receives))
	if facts.Rooted {
		return float64(root.Sends) + float64(ranks-1)*float64(max(other.Sends, other.Receives)), most
	}
	return float64(ranks) * float64(max(root.Sends, other.Sends)), most
}

// fits reports whether memory holds the programs of a collective.
func (it *Item) fits(facts schedule.Facts, ranks int) bool {
	all, most := it.messages(facts, ranks)
	return all <= maxMessages && most <= maxRankMessages
}
