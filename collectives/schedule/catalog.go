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

// collectives registers all collectives.
var collectives = []collective{
	allReduce, allGather, reduceScatter, allToAllOfRanks, broadcast, reduce, gatherToRoot, scatterOfRoot,
	permuted, parameterServer, incastOfRoot, jobOfRanks,
}

// The collectives that have several algorithms, each with a file of its own. The others are
// registered next to their algorithm.
var (
	allReduce = collective{
		name: AllReduce, facts: Facts{Reduces: true, Blocks: true}, bus: twiceAllButOne, due: whole,
		variants: []variant{
			{Ring, pipelined, halvesBy(scatterAndGather, newRing)},
			{HalvingDoubling, func(f *Facts) { f.Order = true }, halvesBy(scatterAndGather, newHalving)},
			{DoubleBinaryTree, pipelined, by(newDoubleBinaryTree)},
			{Direct, nil, halvesBy(scatterAndGather, newDirect)},
			{Hierarchical, func(f *Facts) { f.Group, f.Pipelined = true, true }, by(newHierarchical)},
		},
	}
	allGather = collective{
		name: AllGather, facts: Facts{Shared: true, Blocks: true}, bus: allButOne, due: whole,
		variants: []variant{
			{Ring, pipelined, halvesBy(onlyGather, newRing)},
			{RecursiveDoubling, powerOfTwo, halvesBy(onlyGather, newHalving)},
			{Direct, nil, halvesBy(onlyGather, newDirect)},
		},
	}
	reduceScatter = collective{
		name: ReduceScatter, facts: Facts{Reduces: true, Shared: true, Blocks: true}, bus: allButOne, due: ownBlock,
		variants: []variant{
			{Ring, pipelined, halvesBy(onlyScatter, newRing)},
			{RecursiveHalving, powerOfTwo, halvesBy(onlyScatter, newHalving)},
			{Direct, nil, halvesBy(onlyScatter, newDirect)},
		},
	}
	broadcast = collective{
		name: Broadcast, facts: Facts{Rooted: true}, bus: unity, due: whole,
		variants: []variant{
			{Chain, pipelined, by(down(newChain))},
			{Tree, pipelined, by(down(newBinaryTree))},
			{BinomialTree, pipelined, by(down(newBinomialTree))},
		},
	}
	reduce = collective{
		name: Reduce, facts: Facts{Rooted: true, Reduces: true}, bus: unity, due: atRoot,
		variants: []variant{
			{Chain, pipelined, by(up(newChain))},
			{Tree, pipelined, by(up(newBinaryTree))},
			{BinomialTree, pipelined, by(up(newBinomialTree))},
		},
	}
)

// collective is the registration of a collective.
type collective struct {
	name     string
	facts    Facts                           // facts that all its algorithms share
	bus      func(ranks float64) float64     // bus bandwidth divided by algorithm bandwidth (nccl-tests)
	due      func(s Spec, rank int) elements // elements of a rank's result that must be verified
	variants []variant                       // its algorithms, the default first
	hidden   bool                            // it has no algorithm and is in no list of collectives
}

// variant is the registration of an algorithm of a collective.
type variant struct {
	name  string
	adds  func(*Facts)         // changes the facts of the collective; may be nil
	build func(Spec) algorithm // its argument has passed check
}

// elements is a number of elements.
type elements int64

// by adapts the constructor of an algorithm to variant.build.
func by[A algorithm](build func(Spec) A) func(Spec) algorithm {
	return func(s Spec) algorithm { return build(s) }
}

// halves says which halves of an all-reduce a collective consists of: the reduce-scatter, the
// all-gather, or both.
type halves struct{ scatter, gather bool }

var (
	scatterAndGather = halves{scatter: true, gather: true}
	onlyScatter      = halves{scatter: true}
	onlyGather       = halves{gather: true}
)

func (h halves) both() bool { return h.scatter && h.gather }

// halvesBy adapts the constructor of an algorithm for all-reduces and their halves.
func halvesBy[A algorithm](h halves, build func(Spec, halves) A) func(Spec) algorithm {
	return func(s Spec) algorithm { return build(s, h) }
}

// pipelined and powerOfTwo are values of variant.adds.
func pipelined(f *Facts)  { f.Pipelined = true }
func powerOfTwo(f *Facts) { f.PowerOfTwo = true }

// unity, allButOne and twiceAllButOne are values of collective.bus (nccl-tests, doc/PERFORMANCE.md
// and src/*.cu).
func unity(float64) float64                { return 1 }
func allButOne(ranks float64) float64      { return (ranks - 1) / ranks }
func twiceAllButOne(ranks float64) float64 { return 2 * (ranks - 1) / ranks }

// whole is the collective.due of collectives that leave the whole buffer at every rank.
func whole(s Spec, _ int) elements { return elements(s.Size / s.Type.Size()) }

// atRoot is the collective.due of collectives that leave the whole buffer at the root.
func atRoot(s Spec, rank int) elements {
	if rank != s.Root {
		return 0
	}
	return whole(s, rank)
}

// ownBlock is the collective.due of collectives that leave each rank its block. If the ranks do not
// divide the buffer, the first blocks are longer by one element.
func ownBlock(s Spec, rank int) elements {
	all, n := whole(s, rank), elements(s.Ranks)
	block := all / n
	if elements(rank) < all%n {
		block++
	}
	return block
}

// named returns the collective of the given name, or nil.
func named(name string) *collective {
	for i := range collectives {
		if collectives[i].name == name {
			return &collectives[i]
		}
	}
	return nil
}

// variant returns the algorithm of the given name, or nil. c may be nil.
func (c *collective) variant(name string) *variant {
	if c == nil {
		return nil
	}
	if name == GivenPrograms {
		return &variant{name: name, adds: func(f *Facts) { f.Given = true }}
	}
	for i := range c.variants {
		if c.variants[i].name == name {
			return &c.variants[i]
		}
	}
	return nil
}

// Collectives returns the names of all collectives that have algorithms.
func Collectives() []string {
	var names []string
	for i := range collectives {
		if !collectives[i].hidden {
			names = append(names, collectives[i].name)
		}
	}
	return names
}

// Algorithms returns the names of the algorithms of a collective, the default first. It is nil if
// there is no such collective.
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

// Facts tell a caller which fields of a Spec an algorithm uses, and how it moves data.
type Facts struct {
	Rooted     bool // uses Root
	RootApart  bool // the root is an extra rank beside those that send to it or fetch from it
	Reduces    bool // uses Op
	Shared     bool // the buffer of Size has a block for every rank
	Blocks     bool // messages carry such blocks, though a rank may end up with the whole buffer
	Flows      bool // uses Flows
	Permuted   bool // uses Permute
	Pipelined  bool // ranks forward piece by piece, so that Chunk makes long messages much faster
	PowerOfTwo bool // Ranks must be a power of two
	Group      bool // uses Group, which must divide Ranks
	Window     bool // uses Parallel
	Windowed   bool // Parallel must be set
	Order      bool // uses FarFirst
	Shuffle    bool // uses Shuffle
	Given      bool // uses Given, and nothing else
}

// About returns the facts of an algorithm of a collective. Unknown names are an error.
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

// Of returns the facts that all algorithms of a collective share, or zero Facts if there is no such
// collective.
func Of(collective string) Facts {
	if c := named(collective); c != nil {
		return c.facts
	}
	return Facts{}
}

// BusFactor returns the ratio of bus bandwidth to algorithm bandwidth for a number of ranks, as
// nccl-tests defines it. ok is false if there is no such collective.
func BusFactor(collective string, ranks int) (factor float64, ok bool) {
	c := named(collective)
	if c == nil {
		return 0, false
	}
	return c.bus(float64(ranks)), true
}

// Due returns the number of elements of a rank's result that a run must verify. It follows from the
// definition of the collective, not from Shape, so that an error in Shape cannot hide itself.
func Due(s Spec, rank int) int64 {
	c := named(s.Collective)
	if c == nil {
		return 0
	}
	return int64(c.due(s, rank))
}

// find returns the algorithm that s selects, or nil.
func find(s Spec) algorithm {
	if s.Given != nil {
		return given{s.Given}
	}
	v := named(s.Collective).variant(s.Algorithm)
	if v == nil || v.build == nil {
		return nil
	}
	return v.build(s)
}

// pipelineChunk is the size of the pieces in which NCCL sends messages over the network
// (NCCL_P2P_NET_CHUNKSIZE; STrack, section 4.3).
const pipelineChunk = 128 * units.KB

// DefaultChunk returns the default of Spec.Chunk for an algorithm: 0 unless it is pipelined.
func DefaultChunk(collective, algorithm string) units.Bytes {
	if f, err := About(collective, algorithm); err == nil && f.Pipelined {
		return pipelineChunk
	}
	return 0
}
