package schedule_test

import (
	"slices"
	"testing"

	"weft/collectives/schedule"
	"weft/collectives/schedule/scheduletest"
	"weft/units"
)

// This file defines collectives independently of package schedule, which is under test: it computes
// blocks, results and messages a second time.

// blockOf returns offset and size of block b of n, in elements. If n does not divide the elements,
// the first blocks are longer by one.
func blockOf(elements, n, b int) (at, size int) {
	each, longer := elements/n, elements%n
	if b < longer {
		return b * (each + 1), each + 1
	}
	return longer*(each+1) + (b-longer)*each, each
}

// resultPart is a part of a result, in elements: the input of a rank from offset from, or the
// reduction of all inputs.
type resultPart struct{ off, size, rank, from int }

// results returns what each collective must leave in the output of a rank (MPI 4.1, chapter 6;
// nccl-tests, doc/PERFORMANCE.md).
func results(s schedule.Spec, rank int) []resultPart {
	n, all := s.Ranks, int(s.Size/s.Type.Size())
	at, own := blockOf(all, n, rank)
	root := rank == s.Root
	every := func(size func(r int) (off, len, from int)) (w []resultPart) {
		for r := range n {
			off, size, from := size(r)
			w = append(w, resultPart{off, size, r, from})
		}
		return w
	}
	switch s.Collective {
	case "all-reduce":
		return []resultPart{{0, all, schedule.All, 0}}
	case "reduce-scatter": // in position: where the block is in the whole
		return []resultPart{{at, own, schedule.All, at}}
	case "all-gather": // of each rank its whole input
		return every(func(r int) (int, int, int) { at, size := blockOf(all, n, r); return at, size, 0 })
	case "all-to-all": // from each rank the block that is for this one
		return every(func(r int) (int, int, int) { return r * own, own, at })
	case "broadcast":
		return []resultPart{{0, all, s.Root, 0}}
	case "scatter":
		return []resultPart{{0, own, s.Root, at}}
	case "permute":
		return []resultPart{{0, all, slices.Index(s.Permute, rank), 0}}
	case "reduce":
		if root {
			return []resultPart{{0, all, schedule.All, 0}}
		}
	case "gather":
		if root {
			return every(func(r int) (int, int, int) { at, size := blockOf(all, n, r); return at, size, 0 })
		}
	case "ps":
		switch {
		case s.Algorithm == "pull":
			return []resultPart{{0, all, s.Root, 0}}
		case s.Algorithm == "both" || root:
			return []resultPart{{0, all, schedule.All, 0}}
		}
	case "incast":
		if root {
			each := all * max(1, s.Flows)
			w := every(func(r int) (int, int, int) {
				if r > s.Root {
					r--
				}
				return r * each, each, 0
			})
			return slices.Delete(w, s.Root, s.Root+1)
		}
	}
	return nil
}

// shapeResults returns the results that Shape declares, in elements.
func shapeResults(s schedule.Spec, rank int) (w []resultPart, err error) {
	l, err := schedule.Shape(s, rank)
	e := s.Type.Size()
	for _, r := range l.Result {
		w = append(w, resultPart{int(r.Off / e), int(r.Len / e), r.Rank, int(r.From / e)})
	}
	return w, err
}

// eachSpec calls f with every algorithm of n ranks, with sizes that n divides and sizes that it
// does not, and for up to 9 ranks with every root.
func eachSpec(n int, f func(schedule.Spec)) {
	for _, elements := range []int{1, n - 1, n, 2*n + n/2, 3*n + 1} {
		scheduletest.Every(n, units.Bytes(elements)*schedule.Element, 0, func(s schedule.Spec) {
			facts, _ := schedule.About(s.Collective, s.Algorithm)
			if !facts.Rooted || n > 9 {
				f(s)
				return
			}
			for s.Root = range n {
				f(s)
			}
		})
	}
}

// Shape asks for exactly the result that defines the collective, at every rank. The proofs and the
// verification of runs rely on it.
func TestResultsDefineTheCollective(t *testing.T) {
	for n := 2; n <= 64; n++ {
		eachSpec(n, func(s schedule.Spec) {
			for rank := range n {
				got, err := shapeResults(s, rank)
				want := slices.DeleteFunc(results(s, rank), func(w resultPart) bool { return w.size == 0 })
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("%s by %s, %d ranks, root %d, %d bytes, rank %d: %v, %v\nwant %v", s.Collective, s.Algorithm, n, s.Root, s.Size, rank, got, err, want)
				}
			}
		})
	}
}

// messages are the sizes in elements of the messages that a rank sends and receives, uncut. Empty
// ones are not sent.
type messages struct{ sent, received []int }

// exchange adds messages of the given sizes in both directions.
func (m *messages) exchange(sizes ...int) {
	m.sent, m.received = append(m.sent, sizes...), append(m.received, sizes...)
}

// expectedMessages returns the messages of each algorithm by docs/collectives.md, with the exact
// size of every block.
func expectedMessages(s schedule.Spec, rank int) (m messages) {
	n, all := s.Ranks, int(s.Size/s.Type.Size())
	block := func(b int) int { _, size := blockOf(all, n, (b+n)%n); return size }
	but := func(keep int) (sizes []int) { // all blocks but one
		for b := range n {
			if b != (keep+n)%n {
				sizes = append(sizes, block(b))
			}
		}
		return sizes
	}
	times := func(k, size int) []int { return slices.Repeat([]int{size}, k) }
	position, root := (rank-s.Root+n)%n, rank == s.Root
	// along adds the messages up a tree, from children to parents, and those down it.
	along := func(up, down bool, above, below, size int) {
		if up {
			m.sent, m.received = append(m.sent, times(above, size)...), append(m.received, times(below, size)...)
		}
		if down {
			m.sent, m.received = append(m.sent, times(below, size)...), append(m.received, times(above, size)...)
		}
	}
	up, down := s.Collective == "reduce", s.Collective == "broadcast"
	switch s.Collective + " " + s.Algorithm {
	case "all-reduce ring": // 2(n−1) blocks: first all but its own, then all but the next rank's
		m.sent, m.received = slices.Concat(but(rank), but(rank+1)), slices.Concat(but(rank-1), but(rank))
	case "reduce-scatter ring":
		m.sent, m.received = but(rank), but(rank-1)
	case "all-gather ring":
		m.sent, m.received = but(rank+1), but(rank)
	case "all-reduce direct": // a block to each, and its own to each
		m.exchange(slices.Concat(but(rank), times(n-1, block(rank)))...)
	case "reduce-scatter direct", "all-to-all direct", "all-to-all pairwise":
		m.sent, m.received = but(rank), times(n-1, block(rank))
	case "all-gather direct":
		m.sent, m.received = times(n-1, block(rank)), but(rank)
	case "all-to-all windowed": // and credits of one element, unless the block is empty
		m.sent, m.received = but(rank), times(n-1, block(rank))
		for i := s.Parallel + 1; i < n; i++ {
			m.sent = append(m.sent, min(1, block(rank)))
			m.received = append(m.received, min(1, block(rank+i)))
		}
	case "all-reduce halving-doubling", "reduce-scatter recursive-halving", "all-gather recursive-doubling":
		return halvingDoubling(s, rank)
	case "all-reduce hierarchical": // two rings: inside the group, and of the same member of all groups
		g := s.Group
		member, group := rank%g, rank/g
		ringAllReduce(&m, all, g, member)
		_, own := blockOf(all, g, member)
		ringAllReduce(&m, own, n/g, group)
	case "all-reduce double-binary-tree": // half of the buffer along each of two trees, up and down
		second := n - 1 - rank
		if n%2 == 1 {
			second = (rank - 1 + n) % n
		}
		above, below := binaryTree(n, rank)
		along(true, true, above, below, (all+1)/2)
		above, below = binaryTree(n, second)
		along(true, true, above, below, all/2)
	case "broadcast chain", "reduce chain":
		along(up, down, min(1, position), min(1, n-1-position), all)
	case "broadcast tree", "reduce tree":
		above, below := binaryTree(n, position)
		along(up, down, above, below, all)
	case "broadcast binomial-tree", "reduce binomial-tree": // a child for every power of two below the lowest set bit
		below := 0
		for bit := 1; position&bit == 0 && position+bit < n; bit *= 2 {
			below++
		}
		along(up, down, min(1, position), below, all)
	case "ps push", "ps pull", "ps both":
		below := 0
		if root {
			below = n - 1
		}
		along(s.Algorithm != "pull", s.Algorithm != "push", min(1, position), below, all)
	case "gather direct", "scatter direct":
		m = messages{sent: []int{block(rank)}}
		if root {
			m = messages{received: but(rank)}
		}
		if s.Collective == "scatter" {
			m.sent, m.received = m.received, m.sent
		}
	case "permute direct":
		m.exchange(all)
	case "incast direct":
		m.sent = times(max(1, s.Flows), all)
		if root {
			m = messages{received: times((n-1)*max(1, s.Flows), all)}
		}
	default:
		panic(s.Collective + " by " + s.Algorithm + " has no closed form here")
	}
	return m
}

// ringAllReduce adds the messages of a ring all-reduce of a number of elements among count ranks.
func ringAllReduce(m *messages, elements, count, position int) {
	for b := range count {
		_, size := blockOf(elements, count, b)
		for _, half := range []int{0, 1} { // first all but its own, then all but the next one's
			if b != (position+half)%count {
				m.sent = append(m.sent, size)
			}
			if b != (position-1+half+count)%count {
				m.received = append(m.received, size)
			}
		}
	}
}

// binaryTree returns the numbers of parents and children of a position in NCCL's binary tree. Odd
// positions are leaves. Even ones have a child to the left, and one to the right if there are
// positions.
func binaryTree(n, position int) (above, below int) {
	switch {
	case position == 0:
		return 0, 1
	case position%2 == 1:
		return 1, 0
	case position+1 < n:
		return 1, 2
	}
	return 1, 1
}

// halvingDoubling returns the messages of recursive halving and doubling. Let p be the largest
// power of two that is at most n. A rank that ends with a block has worked on the p, p/2, p/4, ...
// 2 blocks around it; in each step it gives away the half without that block. Folded ranks send the
// whole buffer and get it back.
func halvingDoubling(s schedule.Spec, rank int) (m messages) {
	n, all := s.Ranks, int(s.Size/s.Type.Size())
	p, log := 1, 0
	for 2*p <= n {
		p, log = 2*p, log+1
	}
	part := rank - (n - p)
	if rank < 2*(n-p) {
		if m.exchange(all); rank%2 == 0 {
			return m
		}
		part = rank / 2
	}
	if s.Collective == "all-reduce" && !s.FarFirst { // the first step is about the last bit
		reversed := 0
		for k := range log {
			reversed |= part >> k & 1 << (log - 1 - k)
		}
		part = reversed
	}
	span := func(first, count int) (sum int) {
		for b := first; b < first+count; b++ {
			_, size := blockOf(all, p, b)
			sum += size
		}
		return sum
	}
	for width := p; width > 1; width /= 2 {
		kept := span(part-part%(width/2), width/2)
		given := span(part-part%width, width) - kept
		if s.Collective != "all-gather" {
			m.sent, m.received = append(m.sent, given), append(m.received, kept)
		}
		if s.Collective != "reduce-scatter" {
			m.sent, m.received = append(m.sent, kept), append(m.received, given)
		}
	}
	return m
}

// traffic sums up messages whose sizes are in elements.
func traffic(s schedule.Spec, m messages) (v schedule.Traffic) {
	count := func(sizes []int) (n int, sum units.Bytes) {
		for _, size := range sizes {
			if size > 0 {
				n, sum = n+1, sum+units.Bytes(size)*s.Type.Size()
			}
		}
		return n, sum
	}
	v.Sends, v.Sent = count(m.sent)
	v.Receives, v.Received = count(m.received)
	return v
}

// programTraffic returns the traffic of a program.
func programTraffic(p schedule.Program) (v schedule.Traffic) {
	for _, op := range p {
		if op.Kind == schedule.Send {
			v.Sends, v.Sent = v.Sends+1, v.Sent+op.Len
		} else {
			v.Receives, v.Received = v.Receives+1, v.Received+op.Len
		}
	}
	return v
}

// Every program has exactly the messages of its algorithm, and Volume agrees.
func TestProgramsHaveTheirMessages(t *testing.T) {
	for n := 2; n <= 64; n++ {
		eachSpec(n, func(s schedule.Spec) {
			for rank := range n {
				want := traffic(s, expectedMessages(s, rank))
				volume, err := schedule.Volume(s, rank)
				if got := programTraffic(buildProgram(t, s, rank)); err != nil || got != want || volume != want {
					t.Fatalf("%s by %s, %d ranks, root %d, %d bytes, rank %d: %+v, volume %+v, %v\nwant %+v", s.Collective, s.Algorithm, n, s.Root, s.Size, rank, got, volume, err, want)
				}
			}
		})
	}
}

// If the pieces divide every block, each message is one whole piece.
func TestPiecesAreWholeWhereTheyDivide(t *testing.T) {
	const chunk = 3 * schedule.Element
	for n := 2; n <= 64; n++ {
		p := 1
		for 2*p <= n {
			p *= 2
		}
		scheduletest.Every(n, 2*units.Bytes(n*p)*chunk, chunk, func(s schedule.Spec) {
			pieces := func(uncut []int) (count int) {
				for _, size := range uncut {
					count += max(1, size/3) // a credit is one element
				}
				return count
			}
			for rank := range n {
				m := expectedMessages(s, rank)
				want := traffic(s, m)
				want.Sends, want.Receives = pieces(m.sent), pieces(m.received)
				if got, err := schedule.Volume(s, rank); err != nil || got != want {
					t.Fatalf("%s by %s, %d ranks, rank %d: %+v, %v, want %+v", s.Collective, s.Algorithm, n, rank, got, err, want)
				}
			}
		})
	}
}
