package schedule

import (
	"fmt"
	"math"

	"weft/units"
)

// Spec specifies a collective: which one, by which algorithm, among how many ranks, on how much
// data.
type Spec struct {
	Collective string // one of Collectives
	Algorithm  string // one of Algorithms(Collective)
	Ranks      int    // at least 2

	Type Type      // type of the elements
	Op   Reduction // reduction, for collectives that reduce
	Root int       // root rank of broadcast, reduce, gather, scatter, ps and incast

	// Size is what nccl-tests prints in its size column. It is a positive multiple of an element.
	//
	//	all-reduce, broadcast, reduce, permute        the buffer of each rank
	//	reduce-scatter, all-gather, gather, scatter   the buffer with a block of every rank
	//	all-to-all                                    the send buffer of each rank
	//	incast, ps (not in nccl-tests)                what each sender sends, per flow
	//
	// The send buffer of an all-to-all includes the block that the rank keeps.
	Size units.Bytes

	// Chunk is the size of the pieces that messages are cut into, a multiple of an element. 0 means
	// that messages are not cut.
	Chunk units.Bytes

	// Flows is the number of messages of Size from each sender of an incast, each a flow of its
	// own. 0 means 1.
	Flows int

	// Parallel is the number of peers that a rank of a direct or windowed all-to-all exchanges with
	// at once. 0 means all, and is not allowed for windowed.
	Parallel int

	// Group is the number of ranks per group of a hierarchical all-reduce, a divisor of Ranks.
	Group int

	// FarFirst makes a halving-doubling all-reduce begin with the farthest peer, not with the
	// nearest.
	FarFirst bool

	// Shuffle seeds the order in which each rank of a direct all-to-all serves its peers. With 0
	// each rank begins with its successor and goes around.
	Shuffle uint64

	// Permute lists the receivers of a permute: rank r sends to Permute[r]. It is a permutation
	// without fixed points.
	Permute []int

	// Given has the programs if no algorithm makes them; Size is then their traffic, and what else
	// an algorithm would use is ignored.
	Given *Given
}

// Build returns the program of a rank.
func Build(s Spec, rank int) (Program, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return nil, err
	}
	return a.program(rank), nil
}

// Shape returns the layout of the buffers of a rank.
func Shape(s Spec, rank int) (Layout, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return Layout{}, err
	}
	return a.layout(rank), nil
}

// Volume returns the traffic of a rank, without building its program.
func Volume(s Spec, rank int) (Traffic, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return Traffic{}, err
	}
	return a.volume(rank), nil
}

// Tags returns an exclusive upper bound of all tags of the collective. It is the same for all
// ranks.
func Tags(s Spec) (uint32, error) { return TagsOf(s, 0) }

// TagsOf is like Tags, but checks s for one rank only, which is cheaper if every rank of a large
// permute asks.
func TagsOf(s Spec, rank int) (uint32, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return 0, err
	}
	return uint32(a.tags()), nil
}

// Peers returns the ranks that a rank sends to and those that it receives from, without building
// the program. Each peer is listed once, in the order of its first message. If there are fewer
// elements than ranks, some blocks are empty, and a peer may be listed without exchanging a
// message. The lists of all ranks are consistent: r lists q in sends if and only if q lists r in
// receives.
func Peers(s Spec, rank int) (sends, receives []int, err error) {
	a, err := resolve(s, rank)
	if err != nil {
		return nil, nil, err
	}
	sends, receives = a.peers(rank)
	return sends, receives, nil
}

// Inflow returns the largest number of flows that a rank receives at once. PC4's controller divides
// the receiver's line rate by it (PC4, Table I).
func Inflow(s Spec, rank int) (int, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return 0, err
	}
	return a.inflow(rank), nil
}

// algorithm is a collective that one algorithm performs, for a given Spec. Its methods implement
// the exported functions of the same name.
type algorithm interface {
	program(rank int) Program               // Build
	layout(rank int) Layout                 // Shape
	volume(rank int) Traffic                // Volume
	peers(rank int) (sends, receives []int) // Peers
	inflow(rank int) int                    // Inflow
	tags() int64                            // Tags; also bounds the messages from one rank to another
}

// resolve checks s, as far as it concerns rank, and returns its algorithm.
func resolve(s Spec, rank int) (algorithm, error) {
	if err := s.check(rank); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Collective, err)
	}
	a := find(s)
	if a == nil {
		return nil, fmt.Errorf("collective %q has no algorithm %q", s.Collective, s.Algorithm)
	}
	t := a.tags() // ops are numbered by int32
	if s.Given == nil && (t > math.MaxInt32 || t*int64(s.Ranks) > math.MaxInt32/2) {
		return nil, fmt.Errorf("%s: pieces of %d bytes cut the collective into too many messages",
			s.Collective, s.Chunk)
	}
	return a, nil
}

// check returns an error if s is invalid in general or for its algorithm, or rank is. An unknown
// algorithm is left to resolve.
func (s Spec) check(rank int) error {
	if err := s.Type.check(); err != nil {
		return err
	}
	if err := s.Op.check(); err != nil {
		return err
	}
	if s.Given != nil {
		return s.checkGiven(rank)
	}
	element := s.Type.Size()
	switch {
	case s.Ranks < 2:
		return fmt.Errorf("%d ranks: at least 2 are needed", s.Ranks)
	case rank < 0 || rank >= s.Ranks:
		return fmt.Errorf("rank %d is not below %d", rank, s.Ranks)
	case s.Size <= 0 || s.Size%element != 0:
		return fmt.Errorf("size %d is not a positive multiple of %d bytes", s.Size, element)
	case s.Chunk < 0 || s.Chunk%element != 0:
		return fmt.Errorf("chunk %d is not a multiple of %d bytes", s.Chunk, element)
	case s.Parallel < 0:
		return fmt.Errorf("parallel %d is negative", s.Parallel)
	}
	f, err := About(s.Collective, s.Algorithm)
	switch {
	case err != nil:
		return nil // resolve reports it
	case s.Flows < 0 || s.Flows > 1 && !f.Flows:
		return fmt.Errorf("%d flows", s.Flows)
	case f.Permuted:
		return checkPermutation(s.Permute, s.Ranks, rank)
	case f.Rooted && (s.Root < 0 || s.Root >= s.Ranks):
		return fmt.Errorf("root %d is not below %d ranks", s.Root, s.Ranks)
	case f.PowerOfTwo && s.Ranks&(s.Ranks-1) != 0:
		return fmt.Errorf("%s needs a power of two as the number of ranks, not %d", s.Algorithm, s.Ranks)
	case f.Group && (s.Group < 1 || s.Ranks%s.Group != 0):
		return fmt.Errorf("%d ranks cannot be divided into groups of %d", s.Ranks, s.Group)
	case f.Windowed && s.Parallel == 0:
		return fmt.Errorf("%s needs parallel, the number of peers at once", s.Algorithm)
	}
	return nil
}
