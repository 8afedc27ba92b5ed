package schedule

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// permute sends Size bytes from each rank r to Permute[r]. So each rank receives from exactly one
// other. The sendrecv test of nccl-tests is r → r+1; STrack, section 4.2, uses a random
// derangement.
type permute struct{ Spec }

var permuted = collective{
	name: Permute, facts: Facts{Permuted: true}, bus: unity, due: whole, // as for nccl-tests sendrecv
	variants: []variant{{Direct, nil, by(newPermute)}},
}

func newPermute(s Spec) permute { return permute{s} }

func (c permute) tags() int64 { return int64(pieces(c.Size, c.Chunk)) }

// from returns the rank that sends to rank.
func (c permute) from(rank int) int { return slices.Index(c.Permute, rank) }

func (c permute) layout(rank int) Layout {
	return Layout{
		In: c.Size, Out: c.Size,
		Result: []Want{{Len: c.Size, Rank: c.from(rank)}},
	}
}

func (c permute) program(rank int) Program {
	v := c.volume(rank)
	p := make(Program, 0, v.Sends+v.Receives)
	p = appendPieces(p, Op{Kind: Send, Peer: c.Permute[rank]}, region{In, 0, c.Size}, c.Chunk, nil)
	return appendPieces(p, Op{Kind: Recv, Peer: c.from(rank), Final: true}, region{Out, 0, c.Size}, c.Chunk, nil)
}

func (c permute) volume(int) Traffic {
	each := pieces(c.Size, c.Chunk)
	return Traffic{Sends: each, Receives: each, Sent: c.Size, Received: c.Size}
}

func (c permute) peers(rank int) (sends, receives []int) {
	return []int{c.Permute[rank]}, []int{c.from(rank)}
}

func (c permute) inflow(int) int { return 1 }

// checkPermutation returns an error unless to is a permutation of n ranks without fixed points. For
// rank 0 it checks all of it. For other ranks it checks only their own entry and that some rank
// sends to them, because building all programs would otherwise take quadratic time.
func checkPermutation(to []int, n, rank int) error {
	if len(to) != n {
		return fmt.Errorf("the permutation has %d entries for %d ranks", len(to), n)
	}
	if d := to[rank]; rank > 0 && d >= 0 && d < n && d != rank && slices.Contains(to, rank) {
		return nil
	}
	seen := make([]bool, n)
	for r, d := range to {
		switch {
		case d < 0 || d >= n:
			return fmt.Errorf("rank %d would send to rank %d of %d", r, d, n)
		case d == r:
			return fmt.Errorf("rank %d would send to itself", r)
		case seen[d]:
			return fmt.Errorf("two ranks would send to rank %d", d)
		}
		seen[d] = true
	}
	return nil
}

// Shift returns the permutation in which rank r sends to r + by modulo n. by may be negative, but
// not a multiple of n.
func Shift(n, by int) ([]int, error) {
	if n < 2 || by%n == 0 {
		return nil, fmt.Errorf("shifted by %d, each of %d ranks would send to itself", by, n)
	}
	p := make([]int, n)
	for r := range p {
		p[r] = mod(r+by, n)
	}
	return p, nil
}

// Derangement returns a random permutation of n ranks without fixed points, uniformly distributed
// and determined by the seed. It draws permutations until one has no fixed point: 2.7 on average. n
// must be at least 2.
func Derangement(n int, seed uint64) ([]int, error) {
	if n < 2 {
		return nil, errors.New("fewer than 2 ranks cannot be permuted without one sending to itself")
	}
	rng := rand.New(rand.NewPCG(seed, 0x6465_7261_6e67_6564)) // "deranged"
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	for {
		rng.Shuffle(n, func(i, j int) { p[i], p[j] = p[j], p[i] })
		if !slices.ContainsFunc(p, func(d int) bool { return p[d] == d }) {
			return p, nil
		}
	}
}
