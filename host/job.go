package host

import (
	"errors"
	"sort"

	"weft/collectives/schedule"
	"weft/units"
)

// A job is an item whose program has computations and calls of collectives beside messages. A
// computation occupies its stream; a call runs an item of its own, so that the program of a
// collective exists only while it runs, however many a job has.

// wake is when a computation ends.
type wake struct {
	at      units.Time
	number  uint64 // of the computation on this host: those that end together complete in this order
	run, op int32
}

func (a wake) before(b wake) bool { return a.at < b.at || a.at == b.at && a.number < b.number }

// wakes is a heap of the computations in progress.
type wakes []wake

func (w *wakes) push(x wake) {
	*w = append(*w, x)
	h := *w
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (w *wakes) pop() wake {
	h := *w
	first := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	*w = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// occupy starts a computation when its stream is free. It completes one that takes no time at once.
func (h *Host) occupy(now units.Time, i, op int32) {
	w := h.runs[i].work
	o := &w.ops[op]
	for int(o.Stream()) >= len(w.free) {
		w.free = append(w.free, 0)
	}
	free := &w.free[o.Stream()]
	*free = max(now, *free) + o.Time()
	if *free <= now {
		w.complete(op)
		return
	}
	w.waits[op] = started
	h.computed++
	h.wakes.push(wake{*free, h.computed, i, op})
}

// wakeUp completes the computations that have ended.
func (h *Host) wakeUp(now units.Time) {
	for len(h.wakes) > 0 && h.wakes[0].at <= now && h.err == nil {
		x := h.wakes.pop()
		h.runs[x.run].work.complete(x.op)
		h.runOps(now, x.run)
	}
}

// nextWork returns when an item starts or a computation ends, or units.Never.
func (h *Host) nextWork() units.Time {
	if len(h.wakes) == 0 {
		return h.nextStart
	}
	return min(h.nextStart, h.wakes[0].at)
}

var (
	errNoCall = errors.New("the plan has no such collective for this rank")
	errInCall = errors.New("the collective is running already")
)

// call begins the next repetition of the item that an op calls.
func (h *Host) call(now units.Time, i, op int32) {
	r := &h.runs[i]
	index := r.item.Index + 1 + int(r.work.ops[op].Tag)
	c := sort.Search(len(h.runs), func(k int) bool { return h.runs[k].item.Index >= index })
	switch {
	case c == len(h.runs) || h.runs[c].item.Index != index || !h.runs[c].item.Called || h.runs[c].phase == over:
		h.fail(h.opError(r, op, errNoCall))
		return
	case h.runs[c].phase == running:
		h.fail(h.opError(r, op, errInCall))
		return
	}
	if err := h.buildProgram(int32(c)); err != nil {
		h.fail(h.itemError(&h.runs[c], err))
		return
	}
	r.work.waits[op] = started
	called := &h.runs[c]
	called.caller, called.callOp, called.phase = i, op, running
	h.startRepetition(now, int32(c))
	h.runOps(now, int32(c))
}

// returned completes the op that called a repetition that has ended.
func (h *Host) returned(now units.Time, r *run) {
	h.runs[r.caller].work.complete(r.callOp)
	h.runOps(now, r.caller)
}

// isMessage reports whether an op is a message, which has a peer.
func isMessage(o *schedule.Op) bool { return o.Kind == schedule.Send || o.Kind == schedule.Recv }
