package schedule

import (
	"errors"
	"fmt"
	"math"

	"weft/units"
)

// Graph is the name of the collective that is a job: any operations of the ranks, in any order. It
// has no algorithm of its own, so Spec.Given has its programs.
const Graph = "graph"

// GivenPrograms is the name of the algorithm that every collective has besides its own ones: its
// programs are in Spec.Given.
const GivenPrograms = "given"

var jobOfRanks = collective{
	name: Graph, facts: Facts{Given: true}, bus: unity, // ours: the rate of all ranks together
	due: func(s Spec, rank int) elements {
		if s.Given == nil || rank >= len(s.Given.Parts) || s.Given.Parts[rank] == nil {
			return 0
		}
		return s.Given.Parts[rank].due(s.Type.Size())
	},
	hidden: true,
}

// Given is a collective whose programs are given op by op, such as a job that was imported, instead
// of made by an algorithm.
type Given struct {
	// Tags is an exclusive upper bound of all tags.
	Tags uint32
	// Parts are the parts of the ranks. A host may have only those of its own ranks; the others are
	// nil.
	Parts []*Part
}

// Part is one rank's part of a Given. Beside Send and Recv, its program may have ops of the
// kinds Compute and Call.
type Part struct {
	Program Program
	Layout  Layout
	Traffic Traffic
	Sends   []Lane // the ranks that it sends to, in the order of the first message
	Recvs   []Lane // the ranks that it receives from, likewise
	Inflow  int    // the number of flows that it is known to receive at once; 0: unknown
}

// Lane is a peer of a rank, with the number of flows between them in one direction.
type Lane struct {
	Rank, Flows int
}

// Only returns g with the part of one rank.
func (g *Given) Only(rank int) *Given {
	one := &Given{Tags: g.Tags, Parts: make([]*Part, len(g.Parts))}
	one.Parts[rank] = g.Parts[rank]
	return one
}

// NewPart returns the part of a rank with the given program and layout.
func NewPart(p Program, l Layout) *Part {
	part := &Part{Program: p, Layout: l}
	sends, receives := map[int]int{}, map[int]int{}
	for i := range p {
		o := &p[i]
		switch o.Kind {
		case Send:
			part.Traffic.Sends++
			part.Traffic.Sent += o.Len
			part.Sends = widen(part.Sends, sends, o)
		case Recv:
			part.Traffic.Receives++
			part.Traffic.Received += o.Len
			part.Recvs = widen(part.Recvs, receives, o)
		}
	}
	return part
}

// widen adds the flow of an op to the lanes. at is where in lanes a rank is, plus 1.
func widen(lanes []Lane, at map[int]int, o *Op) []Lane {
	i := at[o.Peer]
	if i == 0 {
		lanes = append(lanes, Lane{Rank: o.Peer})
		i = len(lanes)
		at[o.Peer] = i
	}
	lanes[i-1].Flows = max(lanes[i-1].Flows, int(o.Flow)+1)
	return lanes
}

// due returns the number of whole elements that the rank receives.
func (p *Part) due(element units.Bytes) (n elements) {
	for i := range p.Program {
		if o := &p.Program[i]; o.Kind == Recv && !o.Credit {
			n += elements(o.Len / element)
		}
	}
	return n
}

// Computation returns an op that takes a time, one after the other with those of the same stream.
func Computation(d units.Time, stream int32, after []int32) Op {
	return Op{Kind: Compute, Off: units.Bytes(d), Flow: stream, After: after}
}

// Time returns the duration of a Compute.
func (o *Op) Time() units.Time { return units.Time(o.Off) }

// Stream returns the stream of a Compute.
func (o *Op) Stream() int32 { return o.Flow }

// Lanes returns the number of flows from one rank to another, which is 1 unless a collective has
// several.
func Lanes(s Spec, from, to int) int {
	if s.Given == nil {
		return max(1, s.Flows)
	}
	if from < len(s.Given.Parts) && s.Given.Parts[from] != nil {
		for _, l := range s.Given.Parts[from].Sends {
			if l.Rank == to {
				return l.Flows
			}
		}
	}
	return 1
}

// given is a Given as an algorithm.
type given struct{ *Given }

func (g given) program(rank int) Program { return g.Parts[rank].Program }
func (g given) layout(rank int) Layout   { return g.Parts[rank].Layout }
func (g given) volume(rank int) Traffic  { return g.Parts[rank].Traffic }
func (g given) inflow(rank int) int      { return g.Parts[rank].Inflow }
func (g given) tags() int64              { return int64(g.Tags) }

func (g given) peers(rank int) (sends, receives []int) {
	return ranksOf(g.Parts[rank].Sends), ranksOf(g.Parts[rank].Recvs)
}

func ranksOf(lanes []Lane) []int {
	ranks := make([]int, len(lanes))
	for i := range lanes {
		ranks[i] = lanes[i].Rank
	}
	return ranks
}

// checkGiven returns an error unless s.Given has a program for the rank that can run: its ops wait
// for earlier ones only, and name ranks, tags and regions that there are.
func (s Spec) checkGiven(rank int) error {
	g := s.Given
	switch {
	case named(s.Collective) == nil:
		return fmt.Errorf("collective %q is unknown", s.Collective)
	case s.Ranks < 1 || len(g.Parts) != s.Ranks || rank < 0 || rank >= s.Ranks:
		return fmt.Errorf("rank %d of %d, with parts of %d", rank, s.Ranks, len(g.Parts))
	case g.Parts[rank] == nil:
		return fmt.Errorf("rank %d has no program", rank)
	case g.Tags > math.MaxInt32 || len(g.Parts[rank].Program) > math.MaxInt32/4:
		return errors.New("more ops than can be numbered")
	}
	return nil
}

// Check returns an error unless the part can be the one of a rank among a number of ranks: its ops
// wait for earlier ones only, and name ranks, tags and regions that there are. Execution relies on
// it.
func (g *Given) Check(rank int) error {
	p := g.Parts[rank]
	sizes := [2]units.Bytes{In: p.Layout.In, Out: p.Layout.Out}
	for i := range p.Program {
		o := &p.Program[i]
		for _, a := range o.After {
			if a < 0 || int(a) >= i {
				return fmt.Errorf("op %d waits for op %d, which is not before it", i, a)
			}
		}
		switch o.Kind {
		case Send, Recv:
			if o.Peer < 0 || o.Peer >= len(g.Parts) || o.Peer == rank || o.Tag >= g.Tags || o.Flow < 0 || o.Buf > Out {
				return fmt.Errorf("op %d: %v of tag %d with rank %d", i, o.Kind, o.Tag, o.Peer)
			}
			if o.Off < 0 || o.Len < 1 || o.Off > sizes[o.Buf]-o.Len {
				return fmt.Errorf("op %d: bytes [%d,%d) of a buffer of %d", i, o.Off, o.Off+o.Len, sizes[o.Buf])
			}
		case Compute:
			if o.Time() < 0 || o.Flow < 0 {
				return fmt.Errorf("op %d computes for %v", i, o.Time())
			}
		case Call:
		default:
			return fmt.Errorf("op %d has the unknown kind %d", i, o.Kind)
		}
	}
	return nil
}
