package graph

import (
	"errors"
	"fmt"

	"weft/collectives/schedule"
	"weft/units"
)

// Kind is the kind of an Op.
type Kind uint8

// Kinds of Op.
const (
	Compute Kind = iota + 1
	Send
	Recv
	Collective
)

// String returns the kind as a word for messages.
func (k Kind) String() string {
	switch k {
	case Compute:
		return "computation"
	case Send:
		return "send"
	case Recv:
		return "receive"
	}
	return "collective"
}

// Op is an operation of a rank.
type Op struct {
	Kind Kind
	// Stream of a Compute: those of one stream run one after the other. Of a message, it numbers
	// the flows between the two ranks: messages of different flows do not wait for each other.
	Stream int32
	// Peer is the rank at the other end of a message.
	Peer int32
	// Call is the index in Graph.Calls of a Collective.
	Call int32
	// Place is where in the file the op is: see Graph.Where.
	Place int64
	// Tag tells the messages between two ranks apart. Those with the same tag match in order.
	Tag uint64
	// Size of a message, at least 1.
	Size units.Bytes
	// Time of a Compute.
	Time units.Time
	// After lists the ops of this rank, by index, that must be complete before this one begins.
	After []int32
}

// Call is a collective of a graph. Its members take part by one Op each.
type Call struct {
	Name       string // as in the file; "": none
	Collective string
	Type       schedule.Type
	Size       units.Bytes // as in schedule.Spec
	Root       int         // index in Members
	Members    []int32     // ranks
	Place      int64
}

// Graph is a job.
type Graph struct {
	Files []string // the file, or the file of each rank
	Word  string   // what Op.Place counts, such as node; "": lines
	Ranks [][]Op
	Calls []Call
	Notes Notes // of what the file says and the graph does not need
}

// Bounds of a graph.
const (
	MaxRanks  = 1 << 16
	MaxOps    = 1 << 24
	MaxSize   = 1000 * units.GB
	MaxTime   = 1000 * units.Second
	MaxStream = 1 << 20
	MaxCalls  = 20_000 // parts of collectives are items of a host's plan
)

// Error is an error at a place of a file.
type Error struct {
	At  string // file:line, or file: node 7
	Err error
}

func (e *Error) Error() string { return e.At + ": " + e.Err.Error() }

// Unwrap returns the error without its place.
func (e *Error) Unwrap() error { return e.Err }

// At returns err as an Error at a place, or as it is if it is one already.
func At(place string, err error) error {
	if at := (*Error)(nil); errors.As(err, &at) {
		return err
	}
	return &Error{place, err}
}

// Errorf returns an Error at a line of a file.
func Errorf(file string, line int, format string, args ...any) error {
	return &Error{fmt.Sprintf("%s:%d", file, line), fmt.Errorf(format, args...)}
}

// Where returns the place of an op in its file.
func (g *Graph) Where(rank int, op *Op) string { return g.where(rank, op.Place) }

func (g *Graph) where(rank int, place int64) string {
	file := ""
	switch {
	case len(g.Files) == len(g.Ranks) && rank >= 0 && rank < len(g.Files):
		file = g.Files[rank]
	case len(g.Files) > 0:
		file = g.Files[0]
	}
	if g.Word == "" {
		return fmt.Sprintf("%s:%d", file, place)
	}
	return fmt.Sprintf("%s: %s %d", file, g.Word, place)
}

// Errorf returns an Error at an op.
func (g *Graph) Errorf(rank int, op *Op, format string, args ...any) error {
	return &Error{g.Where(rank, op), fmt.Errorf(format, args...)}
}

// Ops returns the number of ops of all ranks.
func (g *Graph) Ops() (n int) {
	for _, ops := range g.Ranks {
		n += len(ops)
	}
	return n
}

// Round makes the time of every computation a multiple of unit, and notes it. What a stream of a
// rank computes in all changes by at most half a unit.
func (g *Graph) Round(unit units.Time) {
	count, rank := 0, 0
	var first *Op
	for r, ops := range g.Ranks {
		exact, rounded := map[int32]units.Time{}, map[int32]units.Time{} // sums, by stream
		for i := range ops {
			op := &ops[i]
			if op.Kind != Compute {
				continue
			}
			exact[op.Stream] += op.Time
			time := (exact[op.Stream]+unit/2)/unit*unit - rounded[op.Stream]
			rounded[op.Stream] += time
			if time == op.Time {
				continue
			}
			op.Time = time
			if count++; count == 1 {
				first, rank = op, r
			}
		}
	}
	if count > 0 {
		g.Notes.Changed(
			fmt.Sprintf("times of computations are rounded to multiples of %v, so that sums are kept", unit), count,
			func() string { return g.Where(rank, first) })
	}
}

// Scale multiplies the time of every computation.
func (g *Graph) Scale(by float64) {
	for _, ops := range g.Ranks {
		for i := range ops {
			ops[i].Time = units.Time(float64(ops[i].Time) * by)
		}
	}
}
