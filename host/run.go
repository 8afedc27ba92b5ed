package host

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"weft/collectives/schedule"
	"weft/internal/splitmix"
	"weft/transport"
	"weft/units"
)

// phase is the progress of an item on this host.
type phase uint8

const (
	idle      phase = iota // not started
	computing              // before a repetition
	running                // in a repetition
	over                   // all repetitions are done
)

// run is an item in progress.
type run struct {
	item   *Item
	spec   schedule.Spec
	tags   uint32 // above every tag of the program
	phase  phase
	repeat int        // current repetition
	begun  units.Time // when it began; in phase computing, when it will
	work   *work      // from the first repetition or the first early message to the end, otherwise nil

	caller, callOp int32 // of an item that is Called: the run and the op that wait for the repetition
	busy           bool  // runOps is on the stack
}

// span returns the number of tags that the item takes on each of its connections.
func (r *run) span() uint64 { return uint64(r.tags) * uint64(r.item.Repeat) }

// work is the program of a rank in execution.
type work struct {
	ops      schedule.Program
	waits    []int32 // by op: the number of incomplete ops before it, or started, or complete
	left     int     // number of incomplete ops
	next     []int32 // the ops that wait for op i are next[nextAt[i]:nextAt[i+1]]
	nextAt   []int32 // nil: no op waits for another
	receives []int32 // the receives, sorted by peer and tag
	parts    []int32 // by op, for sends in parts: parts that are not acknowledged; nil: messages are not cut
	forwards bool    // an op sends what was received
	due      []int32 // ops that may start, in order, from index first on
	first    int
	open     map[place]*inbound // messages that are arriving or staged

	flows     []inflow // flows to this rank, by stage
	told      int      // number of flows considered in this repetition
	stage     uint8    // current stage
	announced int      // number of flows of this stage that are announced
	atOnce    int      // maximum number of flows of a stage that arrive at once

	free []units.Time // by stream: when its last computation ends
}

// States of an op in work.waits, besides the number of ops before it.
const (
	started  int32 = -1 // of a send: handed to the transport
	complete int32 = -2
)

// place is the destination of a message: an op of a repetition.
type place struct{ repeat, op int32 }

func newRun(item *Item) (run, error) {
	r := run{item: item, spec: item.Spec()}
	switch {
	case item.Repeat < 1:
		return r, fmt.Errorf("repeated %d times; expected at least once", item.Repeat)
	case item.Compute < 0 || item.Jitter < 0:
		return r, fmt.Errorf("computes for %v and up to %v more; expected at least 0", item.Compute, item.Jitter)
	}
	var err error
	if r.tags, err = schedule.TagsOf(r.spec, item.Rank); err == nil && item.Given != nil {
		err = item.Given.Check(item.Rank)
	}
	return r, err
}

// buildProgram builds the program of an item, unless it was built before.
func (h *Host) buildProgram(i int32) error {
	r := &h.runs[i]
	if r.work != nil {
		return nil
	}
	ops, err := schedule.Build(r.spec, r.item.Rank)
	if err != nil {
		return err
	}
	w := &work{ops: ops, waits: make([]int32, len(ops)), open: map[place]*inbound{}}
	if len(ops) >= stopEvery && h.interrupted() {
		return h.err
	}
	w.link()
	if err := h.collect(i, w); err != nil {
		return err
	}
	w.receives = make([]int32, 0, len(ops))
	for k := range ops {
		if ops[k].Kind == schedule.Recv {
			w.receives = append(w.receives, int32(k))
		}
		w.forwards = w.forwards || ops[k].Kind == schedule.Send && ops[k].Buf == schedule.Out
	}
	slices.SortFunc(w.receives, func(a, b int32) int {
		if d := ops[a].Peer - ops[b].Peer; d != 0 {
			return d
		}
		return int(int64(ops[a].Tag) - int64(ops[b].Tag))
	})
	if r.item.Split {
		w.parts = make([]int32, len(ops))
	}
	r.work = w
	return nil
}

// link computes which ops wait for which.
func (w *work) link() {
	n := 0
	for i := range w.ops {
		n += len(w.ops[i].After)
	}
	if n == 0 {
		return
	}
	w.next, w.nextAt = make([]int32, n), make([]int32, len(w.ops)+2)
	for i := range w.ops {
		for _, a := range w.ops[i].After {
			w.nextAt[a+2]++ // two places on, so that the filling below moves every start to its place
		}
	}
	for i := 2; i < len(w.nextAt); i++ {
		w.nextAt[i] += w.nextAt[i-1]
	}
	for i := range w.ops {
		for _, a := range w.ops[i].After {
			w.next[w.nextAt[a+1]] = int32(i)
			w.nextAt[a+1]++
		}
	}
}

// after returns the ops that wait for op.
func (w *work) after(op int32) []int32 {
	if w.nextAt == nil {
		return nil
	}
	return w.next[w.nextAt[op]:w.nextAt[op+1]]
}

// receive returns the op that receives from a peer with a tag, or -1.
func (w *work) receive(peer int32, tag uint32) int32 {
	i, found := slices.BinarySearchFunc(w.receives, tag, func(i int32, tag uint32) int {
		op := &w.ops[i]
		if op.Peer != int(peer) {
			return op.Peer - int(peer)
		}
		return int(int64(op.Tag) - int64(tag))
	})
	if !found {
		return -1
	}
	return w.receives[i]
}

// startItems starts the items whose time has come.
func (h *Host) startItems(now units.Time) {
	h.nextStart = units.Never
	for h.first < len(h.runs) && h.runs[h.first].phase == over {
		h.first++
	}
	for i := h.first; i < len(h.runs); i++ {
		r := &h.runs[i]
		if r.item.Called || r.phase == idle && r.item.Previous && i > 0 && h.runs[h.prior[i]].phase != over {
			i = int(h.skip[i]) - 1 // so do all that start after this one
			continue
		}
		if r.phase == idle {
			if r.item.Start > now {
				h.nextStart = min(h.nextStart, r.item.Start)
				continue
			}
			h.compute(now, r)
		}
		if r.phase != computing {
			continue
		}
		if r.begun > now {
			h.nextStart = min(h.nextStart, r.begun)
			continue
		}
		if err := h.buildProgram(int32(i)); err != nil {
			h.fail(h.itemError(r, err))
			return
		}
		r.phase = running
		h.startRepetition(now, int32(i))
		h.runOps(now, int32(i))
	}
}

// stopEvery is the number of ops that start between two questions whether to stop.
const stopEvery = 1 << 13

// runOps starts the ops of a running item that may start, and the next repetition when one is
// done.
func (h *Host) runOps(now units.Time, i int32) {
	r := &h.runs[i]
	if r.busy {
		return // the call below continues
	}
	r.busy = true
	defer func() { r.busy = false }()
	for r.phase == running && h.err == nil {
		w := r.work
		for w.first < len(w.due) && h.err == nil {
			op := w.due[w.first]
			w.first++
			h.startOp(now, i, op)
			if w.first%stopEvery == 0 && h.interrupted() {
				return
			}
		}
		w.due, w.first = w.due[:0], 0
		if w.left > 0 || h.err != nil {
			return
		}
		if h.finish(now, r); r.phase != running {
			return
		}
		if h.compute(now, r); r.begun > now {
			h.nextStart = min(h.nextStart, r.begun)
			return
		}
		r.phase = running
		h.startRepetition(now, i)
	}
}

// compute begins the computation before the next repetition of an item.
func (h *Host) compute(now units.Time, r *run) {
	r.phase, r.begun = computing, now+r.item.Compute
	if r.item.Jitter > 0 {
		x := splitmix.Mix(splitmix.Mix(splitmix.Mix(h.plan.Seed)+uint64(r.item.Index)) + uint64(r.repeat))
		x = splitmix.Mix(x + uint64(r.item.Rank))
		late, _ := bits.Mul64(x, uint64(r.item.Jitter)+1)
		r.begun += units.Time(late)
	}
}

// startRepetition starts the next repetition of an item.
func (h *Host) startRepetition(now units.Time, i int32) {
	r := &h.runs[i]
	w := r.work
	r.begun, w.left, w.told = now, len(w.ops), 0
	w.enter(0)
	if h.memory != nil {
		if err := h.memory.Begin(r.item.Index, r.repeat, r.item.Rank, r.spec); err != nil {
			h.fail(h.itemError(r, err))
			return
		}
	}
	for op := range w.ops {
		w.waits[op] = int32(len(w.ops[op].After))
		if w.waits[op] == 0 {
			w.due = append(w.due, int32(op))
		}
	}
	h.announce(i)
}

// finish ends a repetition.
func (h *Host) finish(now units.Time, r *run) {
	d := Done{Item: r.item.Index, Repeat: r.repeat, Rank: r.item.Rank, Start: r.begun, End: now}
	if h.memory != nil {
		d.Wrong, d.Checked = h.memory.End(r.item.Index)
		if d.Wrong > 0 {
			d.Blame = h.blame(r)
		}
	}
	h.dones = append(h.dones, d)
	if r.repeat++; r.repeat < r.item.Repeat {
		if r.item.Called {
			r.phase = idle
			h.returned(now, r)
		}
		return
	}
	if h.memory != nil {
		h.memory.Close(r.item.Index)
	}
	r.phase, r.work = over, nil
	h.over++
	if r.item.Called {
		h.returned(now, r)
		return
	}
	h.startItems(now) // an item may have waited for this one
}

// blame returns the origin of a wrong result, or nil if it is unknown.
func (h *Host) blame(r *run) *Blame {
	f, ok := h.memory.(Finder)
	if !ok {
		return nil
	}
	off, ok := f.Wrong(r.item.Index)
	if !ok {
		return nil
	}
	b := &Blame{Off: off, Step: -1}
	for i := range r.work.ops {
		op := &r.work.ops[i]
		if op.Kind == schedule.Recv && !op.Credit && op.Buf == schedule.Out && op.Off <= off && off < op.Off+op.Len {
			b.Step, b.Peer = i, op.Peer // the last receive determines the result
		}
	}
	return b
}

// startOp starts an op that waits for no other: a send is handed to the transport, a receive takes
// what has already arrived for it.
func (h *Host) startOp(now units.Time, i, op int32) {
	r := &h.runs[i]
	o := &r.work.ops[op]
	switch o.Kind {
	case schedule.Recv:
		if m := r.work.open[place{int32(r.repeat), op}]; m != nil {
			h.take(m)
		}
		return
	case schedule.Compute:
		h.occupy(now, i, op)
		return
	case schedule.Call:
		h.call(now, i, op)
		return
	}
	lane, parts := r.item.lane(o), r.item.parts(o.Len)
	for part := range parts {
		l, u := h.departure(i, o.Peer, lane+part)
		if l == nil {
			h.fail(h.opError(r, op, errNoConn))
			return
		}
		_, size := r.item.part(lane+part, o.Len)
		id := u.base + uint32(r.repeat)*r.tags + o.Tag
		if err := h.endpoint.Send(now, l.conn, transport.Message{ID: id, Tag: id, Size: size}); err != nil {
			h.fail(h.opError(r, op, err))
			return
		}
		m := outbound{id: id, run: i, op: op, repeat: int32(r.repeat), part: int32(part), start: now}
		l.sent = append(l.sent, m)
		if h.memory != nil && part == 0 {
			h.memory.Send(r.item.Index, o, key(l.conn, id))
		}
	}
	r.work.waits[op] = started
	if r.work.parts != nil {
		r.work.parts[op] = int32(parts)
	}
}

// complete marks an op as complete, and makes due the ops that waited for it alone. The caller
// continues with runOps.
func (w *work) complete(op int32) {
	w.waits[op] = complete
	w.left--
	for _, n := range w.after(op) {
		if w.waits[n]--; w.waits[n] == 0 {
			w.due = append(w.due, n)
		}
	}
}

// departure returns the connection to a rank by a lane, and the item's use of it; nil if there is
// none.
func (h *Host) departure(i int32, rank, lane int) (*outLink, *use) {
	p, ok := peer(h.runs[i].item.Conns, rank, lane)
	if !ok {
		return nil, nil
	}
	l, _ := h.outTo(p.Conn)
	return l, useOf(l.uses, i)
}

// arrival returns the item's use of the connection from a rank by a lane; nil if there is none.
func (h *Host) arrival(i int32, rank, lane int) *use {
	p, ok := peer(h.runs[i].item.Expect, rank, lane)
	if !ok {
		return nil
	}
	l, _ := h.inFrom(p.Conn)
	return useOf(l.uses, i)
}

// useOf returns the use of an item, which must be among uses.
func useOf(uses []use, run int32) *use {
	return &uses[sort.Search(len(uses), func(i int) bool { return uses[i].run >= run })]
}

// peer returns the element of a list for a rank and a lane. The list must be sorted by them.
func peer(list []Peer, rank, lane int) (Peer, bool) {
	i := sort.Search(len(list), func(i int) bool {
		return list[i].Rank > rank || list[i].Rank == rank && list[i].Lane >= lane
	})
	if i == len(list) || list[i].Rank != rank || list[i].Lane != lane {
		return Peer{}, false
	}
	return list[i], true
}

// byRank returns the list sorted by rank and lane. It does not change the list of the plan.
func byRank(list []Peer) []Peer {
	compare := func(a, b Peer) int { return cmp.Or(a.Rank-b.Rank, a.Lane-b.Lane) }
	if slices.IsSortedFunc(list, compare) {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, compare)
	return list
}

// key identifies a message in the whole lab.
func key(c transport.ConnID, id uint32) uint64 { return uint64(c)<<32 | uint64(id) }
