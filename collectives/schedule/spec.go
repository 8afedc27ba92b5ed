package schedule

import (
	"fmt"
	"math"

	"weft/units"
)

// Spec says which collective is to be done, how, and on how much data.
type Spec struct {
	Collective string
	Algorithm  string
	Ranks      int         // at least 2
	Type       Type        // of the elements
	Op         Reduction   // of collectives that reduce
	Root       int         // of collectives that have one (see About): broadcast, reduce, gather, scatter, ps, incast
	Size       units.Bytes // see below; a positive multiple of an element
	Chunk      units.Bytes // messages are cut into pieces of so many bytes; a multiple of an element; 0: not cut
	Flows      int         // incast: messages of Size from each sender, each a flow of its own; 0: one
	Parallel   int         // all-to-all, direct and windowed: peers a rank exchanges with at once; 0: all (not windowed)
	Group      int         // hierarchical: ranks per group, a divisor of Ranks
	FarFirst   bool        // halving-doubling: the first exchange is with the farthest peer, not the nearest
	Shuffle    uint64      // all-to-all, direct: each rank goes through its peers in an order of its own, drawn with it; 0: around from its neighbour
	Permute    []int       // permute: rank r sends to Permute[r]; a permutation without fixed points

	// Size is what nccl-tests prints in its size column: all-reduce, broadcast, reduce and permute, the buffer
	// of each rank; reduce-scatter, all-gather, gather and scatter, the buffer that holds a block of every
	// rank; all-to-all, the whole send buffer of each rank, the part it keeps included. Incast and ps, which
	// nccl-tests does not have: what each sender sends, on each of its flows.
}

// Build returns the program of one rank.
func Build(s Spec, rank int) (Program, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return nil, err
	}
	return a.program(rank), nil
}

// Shape returns what the buffers of one rank are.
func Shape(s Spec, rank int) (Layout, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return Layout{}, err
	}
	return a.layout(rank), nil
}

// Volume returns how much one rank sends and receives, without building its program.
func Volume(s Spec, rank int) (Traffic, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return Traffic{}, err
	}
	return a.volume(rank), nil
}

// Tags returns a bound that every Tag of the collective is below. It is the same for all ranks.
func Tags(s Spec) (uint32, error) { return TagsOf(s, 0) }

// TagsOf is Tags for a caller that needs them for one rank.
func TagsOf(s Spec, rank int) (uint32, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return 0, err
	}
	return uint32(a.tags()), nil
}

// Peers returns the ranks that one rank sends to and those it receives from, each once, in the order in which
// data first goes to them and comes from them, without building the program. Where a block of the buffer is empty, because there are
// fewer elements than ranks, a peer may be named that no message goes to. For all ranks together, each
// sender's sends and its peers' receives are the same pairs.
func Peers(s Spec, rank int) (sends, receives []int, err error) {
	a, err := resolve(s, rank)
	if err != nil {
		return nil, nil, err
	}
	sends, receives = a.peers(rank)
	return sends, receives, nil
}

// Inflow returns how many flows come to one rank at once, at most: one from each of so many ranks, or Flows. It
// is what PC4's controller divides the line of a receiver by (PC4, Table I).
func Inflow(s Spec, rank int) (int, error) {
	a, err := resolve(s, rank)
	if err != nil {
		return 0, err
	}
	return a.inflow(rank), nil
}

// An algorithm is one way to do a collective.
type algorithm interface {
	program(rank int) Program
	layout(rank int) Layout
	volume(rank int) Traffic
	peers(rank int) (sends, receives []int)
	inflow(rank int) int
	tags() int64 // every Tag is below; also bounds the messages from one rank to another
}

// resolve checks s and returns its algorithm.
func resolve(s Spec, rank int) (algorithm, error) {
	if err := s.check(rank); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Collective, err)
	}
	a := find(s)
	if a == nil {
		return nil, fmt.Errorf("collective %q has no algorithm %q", s.Collective, s.Algorithm)
	}
	if t := a.tags(); t > math.MaxInt32 || t*int64(s.Ranks) > math.MaxInt32/2 { // ops are numbered by int32
		return nil, fmt.Errorf("%s: pieces of %d bytes cut the collective into too many messages", s.Collective, s.Chunk)
	}
	return a, nil
}

// check refuses what no algorithm can do, or not this one.
func (s Spec) check(rank int) error {
	if err := s.Type.check(); err != nil {
		return err
	}
	if err := s.Op.check(); err != nil {
		return err
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
	case s.Flows < 0 || s.Flows > 1 && s.Collective != Incast:
		return fmt.Errorf("%d flows", s.Flows)
	case s.Parallel < 0:
		return fmt.Errorf("parallel %d is negative", s.Parallel)
	case s.Collective == Permute:
		return checkPermutation(s.Permute, s.Ranks, rank)
	}
	f, err := About(s.Collective, s.Algorithm)
	switch {
	case err != nil:
		return nil // resolve says so
	case f.Rooted && (s.Root < 0 || s.Root >= s.Ranks):
		return fmt.Errorf("root %d is not below %d ranks", s.Root, s.Ranks)
	case f.PowerOfTwo && s.Ranks&(s.Ranks-1) != 0:
		return fmt.Errorf("%s needs a power of two as the number of ranks, not %d", s.Algorithm, s.Ranks)
	case f.Group && (s.Group < 1 || s.Ranks%s.Group != 0):
		return fmt.Errorf("groups of %d ranks do not divide %d ranks", s.Group, s.Ranks)
	case f.Windowed && s.Parallel == 0:
		return fmt.Errorf("%s needs parallel, the number of peers at once", s.Algorithm)
	}
	return nil
}
