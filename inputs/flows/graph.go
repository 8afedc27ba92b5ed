package flows

import (
	"fmt"

	"weft/collectives/graph"
	"weft/units"
)

// Flow is one flow.
type Flow struct {
	ID       string // "": none
	From, To int    // ranks
	Size     units.Bytes
	At       units.Time // when it starts: from the start of the job, or from when those before it are done
	After    []After
	Line     int // in the file, or position in the list

	// Message means that the flow is a message of the connection that its ID names. Others have a
	// connection of their own.
	Message bool
}

// After is the end of a flow, which another waits for.
type After struct {
	Flow int // index of a flow
	// Received means that the receiver has it all; otherwise the sender has the last
	// acknowledgement.
	Received bool
}

// List is the flows of a file.
type List struct {
	File  string
	Word  string // what Line counts; "": lines
	Nodes int
	Flows []Flow
	Notes graph.Notes
}

// maxFlows bounds a list.
const maxFlows = 4 << 20

// errorf returns an error at a line of a file.
func (l *List) errorf(line int, format string, args ...any) error {
	if l.Word == "" {
		return graph.Errorf(l.File, line, format, args...)
	}
	return &graph.Error{At: fmt.Sprintf("%s %d", l.Word, line), Err: fmt.Errorf(format, args...)}
}

// Compact renumbers the nodes such that those with flows are the ranks 0, 1, ... It returns their
// numbers in the file, in order.
func (l *List) Compact() (nodes []int) {
	used := make([]bool, l.Nodes)
	for i := range l.Flows {
		used[l.Flows[i].From], used[l.Flows[i].To] = true, true
	}
	to := make([]int, l.Nodes)
	for n, is := range used {
		if is {
			to[n] = len(nodes)
			nodes = append(nodes, n)
		}
	}
	for i := range l.Flows {
		f := &l.Flows[i]
		f.From, f.To = to[f.From], to[f.To]
	}
	l.Nodes = len(nodes)
	return nodes
}

// Graph returns the flows as a graph.
func (l *List) Graph() (*graph.Graph, error) {
	if len(l.Flows) == 0 {
		return nil, l.errorf(1, "a list without flows; expected at least one")
	}
	g := &graph.Graph{Files: []string{l.File}, Word: l.Word, Ranks: make([][]graph.Op, l.Nodes), Notes: l.Notes}
	type ends struct{ send, recv int32 }
	ops := make([]ends, len(l.Flows)) // by flow: the ops at its ends
	lanes := map[[2]int]int32{}
	order, err := l.order()
	if err != nil {
		return nil, err
	}
	add := func(rank int, op graph.Op) int32 {
		g.Ranks[rank] = append(g.Ranks[rank], op)
		return int32(len(g.Ranks[rank]) - 1)
	}
	for i := range l.Flows { // lanes in the order of the file
		f := &l.Flows[i]
		if f.From < 0 || f.To < 0 || f.From >= l.Nodes || f.To >= l.Nodes || f.From == f.To {
			return nil, l.errorf(f.Line, "a flow from node %d to node %d of %d", f.From, f.To, l.Nodes)
		}
	}
	lane := make([]int32, len(l.Flows))
	named := map[string]int32{} // lanes of connections with several messages
	for i := range l.Flows {
		f := &l.Flows[i]
		key := [2]int{f.From, f.To}
		if f.Message {
			name := fmt.Sprint(f.From, f.To, f.ID)
			if n, ok := named[name]; ok {
				lane[i] = n
				continue
			}
			named[name] = lanes[key]
		}
		lane[i] = lanes[key]
		lanes[key]++
	}
	for _, i := range order {
		f := &l.Flows[i]
		var after []int32
		for _, a := range f.After {
			before := &l.Flows[a.Flow]
			switch {
			case !a.Received && before.From == f.From:
				after = append(after, ops[a.Flow].send)
			case a.Received && before.To == f.From:
				after = append(after, ops[a.Flow].recv)
			default:
				return nil, l.errorf(f.Line,
					"the flow from %d to %d starts after one from %d to %d: node %d cannot know when that %s", f.From,
					f.To, before.From, before.To, f.From, done(a.Received))
			}
		}
		if f.At > 0 {
			op := graph.Op{Kind: graph.Compute, Stream: int32(len(g.Ranks[f.From])), Time: f.At, After: after,
				Place: int64(f.Line)}
			after = []int32{add(f.From, op)}
		}
		m := graph.Op{Kind: graph.Send, Peer: int32(f.To), Stream: lane[i], Tag: uint64(i), Size: f.Size,
			Place: int64(f.Line), After: after}
		ops[i].send = add(f.From, m)
		m.Kind, m.Peer, m.After = graph.Recv, int32(f.From), nil
		ops[i].recv = add(f.To, m)
	}
	return g, nil
}

func done(received bool) string {
	if received {
		return "has arrived"
	}
	return "is acknowledged"
}

// order returns the flows in an order in which each stands behind those that it waits for.
func (l *List) order() ([]int32, error) {
	for i := range l.Flows {
		for _, a := range l.Flows[i].After {
			if a.Flow < 0 || a.Flow >= len(l.Flows) {
				return nil, l.errorf(l.Flows[i].Line, "a flow after one that is not there")
			}
		}
	}
	var before []int32 // reused
	order, stuck := graph.Topological(len(l.Flows), func(i int) []int32 {
		before = before[:0]
		for _, a := range l.Flows[i].After {
			before = append(before, int32(a.Flow))
		}
		return before
	})
	if stuck >= 0 {
		f := &l.Flows[stuck]
		return nil, l.errorf(f.Line, "the flow from %d to %d waits for itself, through others", f.From, f.To)
	}
	return order, nil
}
