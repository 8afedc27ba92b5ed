package schedule

import (
	"fmt"
	"slices"

	"weft/units"
)

// Names of collectives, as a lab file writes them.
const (
	AllReduce     = "all-reduce"
	AllGather     = "all-gather"
	ReduceScatter = "reduce-scatter"
	AllToAll      = "all-to-all"
	Broadcast     = "broadcast"
	Reduce        = "reduce"
	Gather        = "gather"
	Scatter       = "scatter"
	Permute       = "permute"
	Incast        = "incast"

	ParameterServer = "ps"
)

// Names of algorithms, as a lab file writes them.
const (
	Ring              = "ring"
	HalvingDoubling   = "halving-doubling"
	DoubleBinaryTree  = "double-binary-tree"
	Direct            = "direct"
	Hierarchical      = "hierarchical"
	RecursiveDoubling = "recursive-doubling"
	RecursiveHalving  = "recursive-halving"
	Windowed          = "windowed"
	Pairwise          = "pairwise"
	Chain             = "chain"
	Tree              = "tree"
	BinomialTree      = "binomial-tree"
	Both              = "both"
	Push              = "push"
	Pull              = "pull"
)

// Collectives returns the names of all collectives.
func Collectives() []string {
	return []string{
		AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Reduce, Gather, Scatter, Permute, ParameterServer, Incast,
	}
}

// Algorithms returns the algorithms of a collective, the default first; nil if there is no such collective.
func Algorithms(collective string) []string {
	switch collective {
	case AllReduce:
		return []string{Ring, HalvingDoubling, DoubleBinaryTree, Direct, Hierarchical}
	case AllGather:
		return []string{Ring, RecursiveDoubling, Direct}
	case ReduceScatter:
		return []string{Ring, RecursiveHalving, Direct}
	case AllToAll:
		return []string{Direct, Windowed, Pairwise}
	case Broadcast, Reduce:
		return []string{Chain, Tree, BinomialTree}
	case ParameterServer:
		return []string{Both, Push, Pull}
	case Gather, Scatter, Permute, Incast:
		return []string{Direct}
	}
	return nil
}

// Facts are what a user of an algorithm has to know to fill in a Spec.
type Facts struct {
	Rooted     bool // Root says which rank is special
	Reduces    bool // Op matters
	Shared     bool // the buffer of Size holds a block for every rank
	Pipelined  bool // ranks pass on what they receive, piece by piece: Chunk makes long messages much faster
	PowerOfTwo bool // Ranks must be a power of two
	Group      bool // Group must divide Ranks
	Window     bool // Parallel limits something
	Windowed   bool // ... and must be set
	Order      bool // FarFirst matters
	Shuffle    bool // Shuffle matters
}

// About returns the facts of an algorithm of a collective.
func About(collective, algorithm string) (Facts, error) {
	if !slices.Contains(Algorithms(collective), algorithm) {
		return Facts{}, fmt.Errorf("collective %q has no algorithm %q", collective, algorithm)
	}
	f := Facts{
		Rooted:  slices.Contains([]string{Broadcast, Reduce, Gather, Scatter, ParameterServer, Incast}, collective),
		Reduces: slices.Contains([]string{AllReduce, ReduceScatter, Reduce, ParameterServer}, collective),
		Shared:  slices.Contains([]string{AllGather, ReduceScatter, AllToAll, Gather, Scatter}, collective),
	}
	switch algorithm {
	case Ring, Chain, Tree, BinomialTree, DoubleBinaryTree, Both:
		f.Pipelined = true
	case Pull:
		f.Reduces = false
	case RecursiveDoubling, RecursiveHalving:
		f.PowerOfTwo = true
	case HalvingDoubling:
		f.Order = true
	case Hierarchical:
		f.Group, f.Pipelined = true, true
	case Windowed:
		f.Window, f.Windowed = true, true
	case Direct:
		f.Window, f.Shuffle = collective == AllToAll, collective == AllToAll
	}
	return f, nil
}

// find returns the algorithm that s names, or nil.
func find(s Spec) algorithm {
	switch [2]string{s.Collective, s.Algorithm} {
	case [2]string{AllReduce, Ring}:
		return newRing(s, true, true)
	case [2]string{ReduceScatter, Ring}:
		return newRing(s, true, false)
	case [2]string{AllGather, Ring}:
		return newRing(s, false, true)
	case [2]string{AllReduce, HalvingDoubling}, [2]string{ReduceScatter, RecursiveHalving}, [2]string{AllGather, RecursiveDoubling}:
		return newHalving(s)
	case [2]string{AllReduce, DoubleBinaryTree}:
		return newDoubleBinaryTree(s)
	case [2]string{AllReduce, Direct}, [2]string{ReduceScatter, Direct}, [2]string{AllGather, Direct}:
		return newDirect(s)
	case [2]string{AllReduce, Hierarchical}:
		return newHierarchical(s)
	case [2]string{AllToAll, Direct}:
		return newAllToAll(s)
	case [2]string{AllToAll, Windowed}:
		return newWindowed(s)
	case [2]string{AllToAll, Pairwise}:
		return newPairwise(s)
	case [2]string{Broadcast, Chain}, [2]string{Reduce, Chain}:
		return newChain(s)
	case [2]string{Broadcast, Tree}, [2]string{Reduce, Tree}:
		return newBinaryTree(s)
	case [2]string{Broadcast, BinomialTree}, [2]string{Reduce, BinomialTree}:
		return newBinomialTree(s)
	case [2]string{ParameterServer, Both}, [2]string{ParameterServer, Push}, [2]string{ParameterServer, Pull}:
		return newParameterServer(s)
	case [2]string{Gather, Direct}:
		return newGather(s)
	case [2]string{Scatter, Direct}:
		return newScatter(s)
	case [2]string{Incast, Direct}:
		return newIncast(s)
	case [2]string{Permute, Direct}:
		return newPermute(s)
	}
	return nil
}

// pipelineChunk is what NCCL cuts messages into for the network (NCCL_P2P_NET_CHUNKSIZE; STrack, section 4.3).
const pipelineChunk = 128 * units.KB

// DefaultChunk returns the Chunk that suits an algorithm of a collective: 0 unless it is pipelined.
func DefaultChunk(collective, algorithm string) units.Bytes {
	if f, err := About(collective, algorithm); err == nil && f.Pipelined {
		return pipelineChunk
	}
	return 0
}
