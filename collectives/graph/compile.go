package graph

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"weft/collectives/schedule"
	"weft/internal/plural"
	"weft/units"
)

// Compile returns what hosts execute for a graph, and the number of bytes of all messages. It
// reorders the ops of ranks that list an op before one that it waits for.
func Compile(g *Graph) (*schedule.Given, units.Bytes, error) {
	if err := g.check(); err != nil {
		return nil, 0, err
	}
	for rank := range g.Ranks {
		if err := g.sort(rank); err != nil {
			return nil, 0, err
		}
	}
	pairs, err := g.match()
	if err != nil {
		return nil, 0, err
	}
	if err := g.checkOrder(pairs); err != nil {
		return nil, 0, err
	}
	given, total := g.lay(pairs)
	return given, total, nil
}

// check returns an error unless every op is within the bounds.
func (g *Graph) check() error {
	if len(g.Ranks) < 2 || len(g.Ranks) > MaxRanks {
		return errors.New(g.file() + ": a job of " + plural.Count(len(g.Ranks), "rank") + "; expected 2 to " +
			strconv.Itoa(MaxRanks))
	}
	if n := g.Ops(); n > MaxOps {
		return errors.New(g.file() + ": " + plural.Count(n, "operation") + "; expected at most " + strconv.Itoa(MaxOps))
	}
	for rank, ops := range g.Ranks {
		for i := range ops {
			op := &ops[i]
			switch {
			case op.Stream < 0 || op.Stream > MaxStream:
				return g.Errorf(rank, op, "stream %d; expected from 0 to %d", op.Stream, MaxStream)
			case op.Kind == Compute && (op.Time < 0 || op.Time > MaxTime):
				return g.Errorf(rank, op, "computes for %v; expected from 0s to %v", op.Time, units.Time(MaxTime))
			case op.Kind == Collective && (op.Call < 0 || int(op.Call) >= len(g.Calls)):
				return g.Errorf(rank, op, "takes part in collective %d of %d", op.Call, len(g.Calls))
			case op.Kind != Send && op.Kind != Recv:
			case op.Peer < 0 || int(op.Peer) >= len(g.Ranks):
				return g.Errorf(rank, op, "%v with rank %d; there are %d ranks", op.Kind, op.Peer, len(g.Ranks))
			case int(op.Peer) == rank:
				return g.Errorf(rank, op, "rank %d exchanges a message with itself", rank)
			case op.Size < 1 || op.Size > MaxSize:
				return g.Errorf(rank, op, "message of %d bytes; expected from 1 to %v", op.Size, units.Bytes(MaxSize))
			}
			for _, a := range op.After {
				if a < 0 || int(a) >= len(ops) {
					return g.Errorf(rank, op, "waits for operation %d of %d", a, len(ops))
				}
			}
		}
	}
	return g.checkCalls()
}

// checkCalls returns an error unless each member of a collective takes part once, and nobody else.
func (g *Graph) checkCalls() error {
	if len(g.Calls) > MaxCalls {
		return errors.New(g.file() + ": " + plural.Count(len(g.Calls), "collective") + "; expected at most " +
			strconv.Itoa(MaxCalls))
	}
	parts := make([]int, len(g.Calls))
	for i := range g.Calls {
		members := slices.Clone(g.Calls[i].Members)
		slices.Sort(members)
		if n := len(slices.Compact(members)); n < 2 || n != len(g.Calls[i].Members) {
			return &Error{g.where(0, g.Calls[i].Place), errors.New("a collective of " + plural.Count(n, "rank") +
				"; expected at least 2, each once")}
		}
	}
	seen := make([]int32, len(g.Calls)) // by call: 1 + the last rank with an op
	for rank, ops := range g.Ranks {
		for i := range ops {
			op := &ops[i]
			if op.Kind != Collective {
				continue
			}
			if !slices.Contains(g.Calls[op.Call].Members, int32(rank)) || seen[op.Call] == int32(rank)+1 {
				return g.Errorf(rank, op, "rank %d is no member of the collective, or takes part twice", rank)
			}
			seen[op.Call] = int32(rank) + 1
			parts[op.Call]++
		}
	}
	for i, n := range parts {
		if c := &g.Calls[i]; n != len(c.Members) {
			return &Error{g.where(int(c.Members[0]), c.Place), errors.New(c.Collective + " of " +
				plural.Count(len(c.Members), "rank") + ", in which only " + strconv.Itoa(n) + " of them take part")}
		}
	}
	return nil
}

func (g *Graph) file() string {
	if len(g.Files) == 0 {
		return "job"
	}
	return g.Files[0]
}

// sort orders the ops of a rank so that each waits for earlier ones only, and changes nothing if
// they are ordered.
func (g *Graph) sort(rank int) error {
	ops := g.Ranks[rank]
	sorted := true
	for i := range ops {
		for _, a := range ops[i].After {
			sorted = sorted && int(a) < i
		}
	}
	if sorted {
		return nil
	}
	order, stuck := Topological(len(ops), func(i int) []int32 { return ops[i].After })
	if stuck >= 0 {
		return g.Errorf(rank, &ops[stuck], "the %v waits for itself, through others", ops[stuck].Kind)
	}
	to := make([]int32, len(ops))
	for at, i := range order {
		to[i] = int32(at)
	}
	moved := make([]Op, len(ops))
	for i := range ops {
		op := ops[i]
		op.After = slices.Clone(op.After)
		for k, a := range op.After {
			op.After[k] = to[a]
		}
		moved[to[i]] = op
	}
	g.Ranks[rank] = moved
	return nil
}

// Topological returns an order of n nodes in which each stands behind those that it waits for, the
// lowest first. after returns what a node waits for, which is valid until the next call. stuck is a
// node that waits for itself, through others, so that there is no order; otherwise it is -1.
func Topological(n int, after func(int) []int32) (order []int32, stuck int) {
	waits, from := make([]int32, n), make([]int32, n+2)
	for i := range n {
		for _, a := range after(i) {
			waits[i]++
			from[a+2]++
		}
	}
	for i := 2; i < len(from); i++ {
		from[i] += from[i-1]
	}
	next := make([]int32, from[n+1])
	for i := range n {
		for _, a := range after(i) {
			next[from[a+1]] = int32(i)
			from[a+1]++
		}
	}
	order = make([]int32, 0, n)
	for i := range n {
		if waits[i] == 0 {
			order = append(order, int32(i))
		}
	}
	for at := 0; at < len(order); at++ {
		for _, k := range next[from[order[at]]:from[order[at]+1]] {
			if waits[k]--; waits[k] == 0 {
				order = append(order, k)
			}
		}
	}
	if len(order) == n {
		return order, -1
	}
	return nil, slices.IndexFunc(waits, func(w int32) bool { return w > 0 })
}

// end is one end of a message.
type end struct {
	src, dst int32
	tag      uint64
	op       int32 // of the sender's or receiver's ops
}

func (a end) compare(b end) int {
	return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst), cmp.Compare(a.tag, b.tag),
		cmp.Compare(a.op, b.op))
}

// pair is a message: ops of its sender and its receiver.
type pair struct{ src, dst, send, recv int32 }

// match returns the messages, sorted by sender and then receiver.
func (g *Graph) match() ([]pair, error) {
	var sends, receives []end
	for rank, ops := range g.Ranks {
		for i := range ops {
			switch op := &ops[i]; op.Kind {
			case Send:
				sends = append(sends, end{int32(rank), op.Peer, op.Tag, int32(i)})
			case Recv:
				receives = append(receives, end{op.Peer, int32(rank), op.Tag, int32(i)})
			}
		}
	}
	slices.SortFunc(sends, end.compare)
	slices.SortFunc(receives, end.compare)
	pairs := make([]pair, 0, len(sends))
	for i := range max(len(sends), len(receives)) {
		var order int
		switch {
		case i >= len(sends):
			order = 1
		case i >= len(receives):
			order = -1
		default:
			s, r := sends[i], receives[i]
			s.op, r.op = 0, 0
			order = s.compare(r)
		}
		switch {
		case order < 0:
			s := sends[i]
			return nil, g.Errorf(int(s.src), &g.Ranks[s.src][s.op],
				"rank %d sends to rank %d with tag %d, and no receive is left there", s.src, s.dst, s.tag)
		case order > 0:
			r := receives[i]
			return nil, g.Errorf(int(r.dst), &g.Ranks[r.dst][r.op],
				"rank %d receives from rank %d with tag %d, and no send is left there", r.dst, r.src, r.tag)
		}
		s, r := sends[i], receives[i]
		a, b := &g.Ranks[s.src][s.op], &g.Ranks[r.dst][r.op]
		if a.Size != b.Size {
			return nil, g.Errorf(int(r.dst), b,
				"rank %d receives %d bytes from rank %d with tag %d, which sends %d at %s", r.dst, b.Size, r.src, r.tag,
				a.Size, g.Where(int(s.src), a))
		}
		if a.Stream != b.Stream {
			return nil, g.Errorf(int(r.dst), b, "rank %d receives in flow %d what is sent in flow %d at %s", r.dst,
				b.Stream, a.Stream, g.Where(int(s.src), a))
		}
		pairs = append(pairs, pair{s.src, s.dst, s.op, r.op})
	}
	return pairs, nil
}

// checkOrder returns an error if ops of several ranks wait for each other in a cycle. The ops of
// each rank must be sorted.
func (g *Graph) checkOrder(pairs []pair) error {
	w := g.waits(pairs)
	_, stuck := Topological(w.n, w.of)
	if stuck < 0 {
		return nil
	}
	rank, op := w.rank(int32(stuck)), w.op(int32(stuck))
	return g.Errorf(rank, op, "rank %d would wait for ever: this %v waits for one of another rank that waits for it",
		rank, op.Kind)
}

// waits knows what the ops of all ranks wait for. They are numbered rank by rank.
type waits struct {
	graph *Graph
	n     int       // number of ops
	first []int32   // by rank: its first op
	mate  []int32   // by op: 1 + the send of a receive
	calls [][]int32 // by collective: its ops
	found []int32   // reused
}

func (g *Graph) waits(pairs []pair) *waits {
	w := &waits{graph: g, first: make([]int32, len(g.Ranks)+1)}
	for rank, ops := range g.Ranks {
		w.first[rank+1] = w.first[rank] + int32(len(ops))
	}
	w.n = int(w.first[len(g.Ranks)])
	w.mate = make([]int32, w.n)
	for _, p := range pairs {
		w.mate[w.first[p.dst]+p.recv] = w.first[p.src] + p.send + 1
	}
	w.calls = g.callOps(w.first)
	return w
}

// rank returns the rank of an op.
func (w *waits) rank(op int32) int {
	i, found := slices.BinarySearch(w.first, op)
	for found && i+1 < len(w.first) && w.first[i+1] == op {
		i++ // ranks without ops
	}
	if !found {
		i--
	}
	return i
}

func (w *waits) op(i int32) *Op {
	rank := w.rank(i)
	return &w.graph.Ranks[rank][i-w.first[rank]]
}

// of returns the ops that an op waits for, until the next call: those of its rank, the send of a
// receive, and for a collective what any member waits for.
func (w *waits) of(i int) []int32 {
	rank := w.rank(int32(i))
	op := &w.graph.Ranks[rank][int32(i)-w.first[rank]]
	w.found = w.found[:0]
	for _, a := range op.After {
		w.found = append(w.found, w.first[rank]+a)
	}
	if w.mate[i] > 0 {
		w.found = append(w.found, w.mate[i]-1)
	}
	if op.Kind != Collective {
		return w.found
	}
	for _, other := range w.calls[op.Call] {
		if other == int32(i) {
			continue
		}
		r := w.rank(other)
		for _, a := range w.graph.Ranks[r][other-w.first[r]].After {
			w.found = append(w.found, w.first[r]+a)
		}
	}
	return w.found
}

// callOps returns the ops of each collective, numbered over all ranks.
func (g *Graph) callOps(first []int32) [][]int32 {
	calls := make([][]int32, len(g.Calls))
	if len(calls) == 0 {
		return calls
	}
	for rank, ops := range g.Ranks {
		for i := range ops {
			if ops[i].Kind == Collective {
				calls[ops[i].Call] = append(calls[ops[i].Call], first[rank]+int32(i))
			}
		}
	}
	return calls
}

// element is the unit of the places of messages in buffers, in bytes.
const element = schedule.Element

// lay gives each message its place in the buffers and its tag. The messages between two ranks lie
// one after the other, at the sender and at the receiver.
func (g *Graph) lay(pairs []pair) (*schedule.Given, units.Bytes) {
	ranks := len(g.Ranks)
	given := &schedule.Given{Parts: make([]*schedule.Part, ranks), Tags: 1}
	programs, layouts := make([]schedule.Program, ranks), make([]schedule.Layout, ranks)
	for rank, ops := range g.Ranks {
		programs[rank] = g.program(ops)
	}
	var total units.Bytes
	for from := 0; from < len(pairs); {
		src, dst := pairs[from].src, pairs[from].dst
		in, out := &layouts[src].In, &layouts[dst].Out
		want := schedule.Want{Off: *out, Rank: int(src), From: *in}
		tag := uint32(0)
		for ; from < len(pairs) && pairs[from].src == src && pairs[from].dst == dst; from++ {
			s, r := &programs[src][pairs[from].send], &programs[dst][pairs[from].recv]
			s.Tag, r.Tag = tag, tag
			s.Off, r.Off = *in, *out
			tag++
			total += s.Len
			whole := s.Len / element * element
			padded := (s.Len + element - 1) / element * element
			if want.Len += whole; whole != padded { // what follows is apart
				layouts[dst].Result = appendWant(layouts[dst].Result, want)
				want = schedule.Want{Off: *out + padded, Rank: int(src), From: *in + padded}
			}
			*in += padded
			*out += padded
		}
		layouts[dst].Result = appendWant(layouts[dst].Result, want)
		given.Tags = max(given.Tags, tag)
	}
	for rank := range given.Parts {
		given.Parts[rank] = schedule.NewPart(programs[rank], layouts[rank])
	}
	return given, total
}

func appendWant(wants []schedule.Want, w schedule.Want) []schedule.Want {
	if w.Len == 0 {
		return wants
	}
	return append(wants, w)
}

// program returns the ops of a rank as hosts execute them, without the places and tags of messages.
func (g *Graph) program(ops []Op) schedule.Program {
	streams := map[int32]int32{}
	p := make(schedule.Program, len(ops))
	for i := range ops {
		op := &ops[i]
		switch op.Kind {
		case Compute:
			stream, ok := streams[op.Stream]
			if !ok {
				stream = int32(len(streams))
				streams[op.Stream] = stream
			}
			p[i] = schedule.Computation(op.Time, stream, op.After)
		case Send:
			p[i] = schedule.Op{Kind: schedule.Send, Buf: schedule.In, Peer: int(op.Peer), Flow: op.Stream, Len: op.Size,
				After: op.After}
		case Recv:
			p[i] = schedule.Op{Kind: schedule.Recv, Buf: schedule.Out, Final: true, Peer: int(op.Peer), Flow: op.Stream,
				Len: op.Size, After: op.After}
		case Collective:
			p[i] = schedule.Op{Kind: schedule.Call, Tag: uint32(op.Call), After: op.After}
		}
	}
	return p
}
