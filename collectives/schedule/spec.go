package schedule

import (
	"fmt"
	"math"

	"weft/units"
)

// Names of collectives and algorithms, as a lab file writes them.
const (
	AllReduce = "all-reduce"
	AllToAll  = "all-to-all"
	Incast    = "incast"
	Permute   = "permute"

	Ring   = "ring"
	Direct = "direct"
)

// Element is the size of a buffer's element, a float32.
const Element units.Bytes = 4

// Spec says which collective is to be done, how, and on how much data.
type Spec struct {
	Collective string
	Algorithm  string
	Ranks      int         // at least 2
	Root       int         // incast: the receiving rank
	Size       units.Bytes // see below; a positive multiple of 4
	Chunk      units.Bytes // messages are cut into pieces of so many bytes; a multiple of 4; 0: not cut
	Flows      int         // incast: messages of Size from each sender, each a flow of its own; 0: one
	Parallel   int         // all-to-all: peers a rank sends to at once; 0: all
	Permute    []int       // permute: rank r sends to Permute[r]; a permutation without fixed points

	// Size is what nccl-tests prints in its size column: all-reduce, the buffer of each rank; all-to-all, the
	// whole send buffer of each rank, the part it keeps included; permute, what each rank sends. Incast, which
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
func Tags(s Spec) (uint32, error) {
	a, err := resolve(s, 0)
	if err != nil {
		return 0, err
	}
	return uint32(a.tags()), nil
}

// An algorithm is one way to do a collective.
type algorithm interface {
	program(rank int) Program
	layout(rank int) Layout
	volume(rank int) Traffic
	tags() int64 // every Tag is below; also bounds the messages between two ranks
}

// resolve checks s and returns its algorithm.
func resolve(s Spec, rank int) (algorithm, error) {
	if err := s.check(rank); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Collective, err)
	}
	var a algorithm
	switch [2]string{s.Collective, s.Algorithm} {
	case [2]string{AllReduce, Ring}:
		a = newRing(s)
	case [2]string{AllToAll, Direct}:
		a = newAllToAll(s)
	case [2]string{Incast, Direct}:
		a = newIncast(s)
	case [2]string{Permute, Direct}:
		a = newPermute(s)
	default:
		return nil, fmt.Errorf("collective %q has no algorithm %q", s.Collective, s.Algorithm)
	}
	if t := a.tags(); t > math.MaxInt32 || t*int64(s.Ranks) > math.MaxInt32/2 { // ops are numbered by int32
		return nil, fmt.Errorf("%s: pieces of %d bytes cut the collective into too many messages", s.Collective, s.Chunk)
	}
	return a, nil
}

// check refuses what no algorithm can do.
func (s Spec) check(rank int) error {
	switch {
	case s.Ranks < 2:
		return fmt.Errorf("%d ranks: at least 2 are needed", s.Ranks)
	case rank < 0 || rank >= s.Ranks:
		return fmt.Errorf("rank %d is not below %d", rank, s.Ranks)
	case s.Size <= 0 || s.Size%Element != 0:
		return fmt.Errorf("size %d is not a positive multiple of %d bytes", s.Size, Element)
	case s.Chunk < 0 || s.Chunk%Element != 0:
		return fmt.Errorf("chunk %d is not a multiple of %d bytes", s.Chunk, Element)
	case s.Flows < 0 || s.Flows > 1 && s.Collective != Incast:
		return fmt.Errorf("%d flows", s.Flows)
	case s.Parallel < 0:
		return fmt.Errorf("parallel %d is negative", s.Parallel)
	case s.Collective == Incast && (s.Root < 0 || s.Root >= s.Ranks):
		return fmt.Errorf("root %d is not below %d ranks", s.Root, s.Ranks)
	case s.Collective == Permute:
		return checkPermutation(s.Permute, s.Ranks)
	}
	return nil
}
