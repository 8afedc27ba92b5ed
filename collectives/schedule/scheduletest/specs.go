// Package scheduletest generates specs of every algorithm of every collective, for tests of
// packages that execute them: Any draws a random one, Every enumerates them, Execute runs one.
package scheduletest

import (
	"errors"
	"slices"

	"pgregory.net/rapid"

	"weft/collectives/schedule"
	"weft/units"
)

// Bounds limits the specs that Any draws.
type Bounds struct {
	Ranks    int             // maximum number of ranks
	Elements int             // maximum of Size in elements
	Chunks   []int           // values of Chunk in elements
	Types    []schedule.Type // nil means all
}

// Any draws a valid spec.
func Any(t *rapid.T, b Bounds) schedule.Spec {
	c := rapid.SampledFrom(schedule.Collectives()).Draw(t, "collective")
	a := rapid.SampledFrom(schedule.Algorithms(c)).Draw(t, "algorithm")
	if b.Types == nil {
		b.Types = schedule.Types()
	}
	s := schedule.Spec{
		Collective: c, Algorithm: a,
		Ranks:    rapid.IntRange(2, b.Ranks).Draw(t, "ranks"),
		Type:     rapid.SampledFrom(b.Types).Draw(t, "type"),
		FarFirst: rapid.Bool().Draw(t, "far first"),
		Parallel: rapid.IntRange(0, 9).Draw(t, "parallel"),
	}
	element := s.Type.Size()
	s.Size = element * units.Bytes(rapid.IntRange(1, b.Elements).Draw(t, "elements"))
	s.Chunk = element * units.Bytes(rapid.SampledFrom(b.Chunks).Draw(t, "chunk elements"))
	f, err := schedule.About(c, a)
	if err != nil {
		t.Fatal(err)
	}
	if f.Reduces {
		s.Op = rapid.SampledFrom(schedule.Reductions()).Draw(t, "op")
	}
	if f.PowerOfTwo {
		for s.Ranks&(s.Ranks-1) != 0 {
			s.Ranks &= s.Ranks - 1
		}
	}
	s.Root = rapid.IntRange(0, s.Ranks-1).Draw(t, "root")
	if f.Group {
		s.Group = rapid.SampledFrom(divisors(s.Ranks)).Draw(t, "group")
	}
	if f.Windowed {
		s.Parallel = max(1, s.Parallel)
	}
	if f.Shuffle {
		s.Shuffle = rapid.Uint64().Draw(t, "shuffle")
	}
	switch c {
	case schedule.Permute:
		s.Permute, _ = schedule.Derangement(s.Ranks, rapid.Uint64().Draw(t, "permutation"))
	case schedule.Incast:
		s.Flows = rapid.IntRange(0, 3).Draw(t, "flows")
	}
	return s
}

// Every calls f with a spec of every algorithm of n ranks, with every option that changes its
// messages: groups of every size, windows of 1, 3 and n, both orders of peers, a shuffled order,
// and several roots and flows. Algorithms that do not support n ranks are left out.
func Every(n int, size, chunk units.Bytes, f func(schedule.Spec)) {
	for _, c := range schedule.Collectives() {
		for _, a := range schedule.Algorithms(c) {
			s := schedule.Spec{Collective: c, Algorithm: a, Ranks: n, Size: size, Chunk: chunk}
			for _, s := range variants(s) {
				f(s)
			}
		}
	}
}

// variants returns s with every option of its algorithm.
func variants(s schedule.Spec) (all []schedule.Spec) {
	facts, err := schedule.About(s.Collective, s.Algorithm)
	if err != nil {
		panic(err)
	}
	if s.Collective == schedule.Permute {
		s.Permute, _ = schedule.Derangement(s.Ranks, 1)
	}
	switch n := s.Ranks; {
	case facts.PowerOfTwo && n&(n-1) != 0:
		return nil
	case facts.Group:
		for _, s.Group = range divisors(n) {
			all = append(all, s)
		}
	case facts.Window:
		for _, s.Parallel = range []int{0, 1, 3, n} {
			if !facts.Windowed || s.Parallel > 0 {
				all = append(all, s)
			}
		}
		if facts.Shuffle {
			s.Parallel, s.Shuffle = 3, 1
			all = append(all, s)
		}
	case facts.Order:
		for _, s.FarFirst = range []bool{false, true} {
			all = append(all, s)
		}
	case facts.Rooted:
		for i, root := range []int{0, n / 2} {
			if s.Root = root; s.Collective == schedule.Incast {
				s.Flows = 3 * i
			}
			all = append(all, s)
		}
	default:
		all = []schedule.Spec{s}
	}
	return all
}

// divisors returns the divisors of n in ascending order.
func divisors(n int) (d []int) {
	for i := 1; i <= n; i++ {
		if n%i == 0 {
			d = append(d, i)
		}
	}
	return d
}

// Execute runs the programs of a collective until all ops are done, or returns an error. In each
// round it visits the ranks in the order that order returns. send returns the message of a send op,
// and receive takes the message of op i of a rank.
func Execute[M any](
	s schedule.Spec, order func() []int, send func(rank int, op *schedule.Op) M,
	receive func(rank, i int, op *schedule.Op, m M) error,
) error {
	type key struct {
		from, to int
		tag      uint32
	}
	wire := map[key]M{}
	programs, done, left := make([]schedule.Program, s.Ranks), make([][]bool, s.Ranks), 0
	for r := range s.Ranks {
		p, err := schedule.Build(s, r)
		if err != nil {
			return err
		}
		programs[r], done[r] = p, make([]bool, len(p))
		left += len(p)
	}
	for left > 0 {
		before := left
		for _, r := range order() {
			for i := range programs[r] {
				op := &programs[r][i]
				if done[r][i] || slices.ContainsFunc(op.After, func(a int32) bool { return !done[r][a] }) {
					continue
				}
				if op.Kind == schedule.Send {
					wire[key{r, op.Peer, op.Tag}] = send(r, op)
				} else {
					k := key{op.Peer, r, op.Tag}
					m, sent := wire[k]
					if !sent {
						continue
					}
					delete(wire, k)
					if err := receive(r, i, op, m); err != nil {
						return err
					}
				}
				done[r][i] = true
				left--
			}
		}
		if left == before {
			return errors.New("no op can start")
		}
	}
	return nil
}
