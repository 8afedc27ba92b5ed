package schedule

import (
	"fmt"

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

// collectives is where every collective is registered, a line each.
var collectives = []collective{
	allReduce, allGather, reduceScatter, allToAllOfRanks, broadcast, reduce, gatherToRoot, scatterOfRoot, permuted, parameterServer, incastOfRoot,
}

// The collectives whose algorithms are each in a file of their own.
var (
	allReduce = collective{
		name: AllReduce, facts: Facts{Reduces: true, Blocks: true}, bus: twice, due: whole,
		variants: []variant{
			{Ring, pipelined, by(func(s Spec) ring { return newRing(s, true, true) })},
			{HalvingDoubling, func(f *Facts) { f.Order = true }, by(newHalving)},
			{DoubleBinaryTree, pipelined, by(newDoubleBinaryTree)},
			{Direct, nil, by(newDirect)},
			{Hierarchical, func(f *Facts) { f.Group, f.Pipelined = true, true }, by(newHierarchical)},
		},
	}
	allGather = collective{
		name: AllGather, facts: Facts{Shared: true, Blocks: true}, bus: others, due: whole,
		variants: []variant{
			{Ring, pipelined, by(func(s Spec) ring { return newRing(s, false, true) })},
			{RecursiveDoubling, powerOfTwo, by(newHalving)},
			{Direct, nil, by(newDirect)},
		},
	}
	reduceScatter = collective{
		name: ReduceScatter, facts: Facts{Reduces: true, Shared: true, Blocks: true}, bus: others, due: ownBlock,
		variants: []variant{
			{Ring, pipelined, by(func(s Spec) ring { return newRing(s, true, false) })},
			{RecursiveHalving, powerOfTwo, by(newHalving)},
			{Direct, nil, by(newDirect)},
		},
	}
	broadcast = collective{
		name: Broadcast, facts: Facts{Rooted: true}, bus: once, due: whole,
		variants: []variant{{Chain, pipelined, by(newChain)}, {Tree, pipelined, by(newBinaryTree)}, {BinomialTree, pipelined, by(newBinomialTree)}},
	}
	reduce = collective{
		name: Reduce, facts: Facts{Rooted: true, Reduces: true}, bus: once, due: atRoot,
		variants: []variant{{Chain, pipelined, by(newChain)}, {Tree, pipelined, by(newBinaryTree)}, {BinomialTree, pipelined, by(newBinomialTree)}},
	}
)

// collective is what a registration says.
type collective struct {
	name     string
	facts    Facts                           // of all its algorithms
	bus      func(ranks float64) float64     // what algorithm bandwidth is multiplied by to get bus bandwidth (nccl-tests)
	due      func(s Spec, rank int) elements // how much of a rank's result is to be compared in the end
	variants []variant                       // the default first
}

// variant is an algorithm of a collective.
type variant struct {
	name  string
	adds  func(*Facts) // to those of the collective; nil: nothing
	build func(Spec) algorithm
}

// elements counts elements of a type.
type elements int64

// by makes a variant of a constructor.
func by[A algorithm](build func(Spec) A) func(Spec) algorithm {
	return func(s Spec) algorithm { return build(s) }
}

func pipelined(f *Facts)  { f.Pipelined = true }
func powerOfTwo(f *Facts) { f.PowerOfTwo = true }

// Factors of bus bandwidth (nccl-tests, doc/PERFORMANCE.md and src/*.cu).
func once(float64) float64         { return 1 }
func others(ranks float64) float64 { return (ranks - 1) / ranks }
func twice(ranks float64) float64  { return 2 * (ranks - 1) / ranks }

// whole is due where every rank has the whole buffer in the end.
func whole(s Spec, _ int) elements { return elements(s.Size / s.Type.Size()) }

// atRoot is due where the root alone has it.
func atRoot(s Spec, rank int) elements {
	if rank != s.Root {
		return 0
	}
	return whole(s, rank)
}

// ownBlock is due where each rank has its block; the first ones are longer by one where ranks do not divide the buffer.
func ownBlock(s Spec, rank int) elements {
	all, n := whole(s, rank), elements(s.Ranks)
	block := all / n
	if elements(rank) < all%n {
		block++
	}
	return block
}

// named returns a collective, or nil.
func named(name string) *collective {
	for i := range collectives {
		if collectives[i].name == name {
			return &collectives[i]
		}
	}
	return nil
}

// variant returns an algorithm of a collective, or nil.
func (c *collective) variant(name string) *variant {
	if c == nil {
		return nil
	}
	for i := range c.variants {
		if c.variants[i].name == name {
			return &c.variants[i]
		}
	}
	return nil
}

// Collectives returns the names of all collectives.
func Collectives() []string {
	var names []string
	for i := range collectives {
		names = append(names, collectives[i].name)
	}
	return names
}

// Algorithms returns the algorithms of a collective, the default first; nil if there is no such collective.
func Algorithms(collective string) []string {
	c := named(collective)
	if c == nil {
		return nil
	}
	var names []string
	for i := range c.variants {
		names = append(names, c.variants[i].name)
	}
	return names
}

// Facts are what a user of an algorithm has to know to fill in a Spec, and to read what comes of it.
type Facts struct {
	Rooted     bool // Root says which rank is special
	RootApart  bool // ... and it is a rank beside those that send to it, or ask it
	Reduces    bool // Op matters
	Shared     bool // the buffer of Size holds a block for every rank
	Blocks     bool // messages are of such blocks, though every rank may end up with all
	Flows      bool // Flows matters
	Permuted   bool // Permute says who sends to whom
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
	c := named(collective)
	v := c.variant(algorithm)
	if v == nil {
		return Facts{}, fmt.Errorf("collective %q has no algorithm %q", collective, algorithm)
	}
	f := c.facts
	if v.adds != nil {
		v.adds(&f)
	}
	return f, nil
}

// Of returns the facts that all algorithms of a collective share; none if there is no such collective.
func Of(collective string) Facts {
	if c := named(collective); c != nil {
		return c.facts
	}
	return Facts{}
}

// BusFactor returns what algorithm bandwidth is multiplied by to get bus bandwidth, for a number of ranks; ok is false if there is no such
// collective.
func BusFactor(collective string, ranks int) (factor float64, ok bool) {
	c := named(collective)
	if c == nil {
		return 0, false
	}
	return c.bus(float64(ranks)), true
}

// Due returns how many elements of a rank's result are to be compared at the end: all that the collective is for. It does not ask the
// Layout by which they are compared, which may be what is wrong.
func Due(s Spec, rank int) int64 {
	c := named(s.Collective)
	if c == nil {
		return 0
	}
	return int64(c.due(s, rank))
}

// find returns the algorithm that s names, or nil.
func find(s Spec) algorithm {
	v := named(s.Collective).variant(s.Algorithm)
	if v == nil {
		return nil
	}
	return v.build(s)
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
