package run

import (
	"cmp"
	"slices"

	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/results/record"
	"weft/results/stats"
	"weft/results/store"
	"weft/transport"
	"weft/units"
)

// writer writes what is measured during a simulated run, and ends the run at the first failure to.
type writer struct {
	dir  *store.Run
	stop func()
	err  error
}

func (w *writer) keep(err error) {
	if w.err == nil && err != nil {
		w.err = err
		w.stop()
	}
}

// watcher is the observer of the endpoints of one part of a simulated network.
type watcher struct {
	rtt     *stats.Dist
	windows bool
	each    bool            // acknowledgements are kept one by one
	from    units.Time      // round trips count from here
	rows    []record.Window // not written yet
	acks    []record.Ack    // not written yet
	steps   []summary.Step  // not written yet
	_       [64]byte        // apart from what other parts write
}

// Acked records a round trip, and keeps the acknowledgement when the lab measures them.
func (w *watcher) Acked(now units.Time, c transport.ConnID, a transport.Acked) {
	if now >= w.from {
		w.rtt.Record(a.RTT)
	}
	if w.each {
		w.acks = append(w.acks, record.Ack{At: now, Conn: uint32(c), RTT: a.RTT, Marked: a.Marked})
	}
}

// Window keeps a change of a congestion window, when the lab measures them.
func (w *watcher) Window(now units.Time, c transport.ConnID, cwnd units.Bytes, rate units.Bandwidth) {
	if w.windows {
		w.rows = append(w.rows, record.Window{At: now, Conn: uint32(c), Window: cwnd, Rate: rate})
	}
}

// Coordinated keeps what a source does for coordinated congestion management.
func (w *watcher) Coordinated(now units.Time, c transport.ConnID, cc, moved bool) {
	w.steps = append(w.steps, summary.Step{At: now, Conn: c, Source: true, Cc: cc, Moved: moved})
}

// watchers are those of all parts.
type watchers struct {
	diary *summary.Diary // nil: nothing is coordinated
	parts []*watcher
	to    *writer
	rows  []record.Window
	acks  []record.Ack
	heard *heard // nil: acknowledgements are not measured
}

// heard is what senders hear first.
type heard struct {
	record.Acks
	late units.Time // a round trip that shows delay
	from map[uint32]bool
}

func (h *heard) take(a record.Ack) {
	if !h.from[a.Conn] {
		h.from[a.Conn] = true
		h.Connections++
		if a.Marked {
			h.FirstMarked++
		}
	}
	if a.Marked && h.MarkUS == 0 {
		h.MarkUS, h.MarkRTTUS = a.At.Microseconds(), a.RTT.Microseconds()
	}
	if a.RTT >= h.late && h.DelayUS == 0 {
		h.DelayUS = a.At.Microseconds()
	}
}

func newWatchers(parts int, x *experiment.Experiment, to *writer) *watchers {
	w, m := &watchers{to: to}, &x.Lab.Measure
	if m.Acks {
		w.heard = &heard{late: 2 * x.BaseRTT, from: map[uint32]bool{}}
	}
	for range parts {
		w.parts = append(w.parts, &watcher{rtt: stats.NewDist(), windows: m.CWND, each: m.Acks, from: x.Measure.From})
	}
	return w
}

// flush writes what the watchers have kept, in order of time.
func (w *watchers) flush() {
	w.rows, w.acks = w.rows[:0], w.acks[:0]
	for _, p := range w.parts {
		w.rows, w.acks = append(w.rows, p.rows...), append(w.acks, p.acks...)
		p.rows, p.acks = p.rows[:0], p.acks[:0]
	}
	if len(w.parts) > 1 {
		slices.SortStableFunc(w.rows, func(a, b record.Window) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Conn, b.Conn))
		})
		slices.SortStableFunc(w.acks, func(a, b record.Ack) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Conn, b.Conn))
		})
	}
	w.tell()
	for _, r := range w.rows {
		w.to.keep(w.to.dir.Window(r))
	}
	for _, a := range w.acks {
		w.to.keep(w.to.dir.Ack(a))
		w.heard.take(a)
	}
}

// tell writes the steps.
func (w *watchers) tell() {
	if w.diary == nil {
		return
	}
	var all []summary.Step
	for _, p := range w.parts {
		all = append(all, p.steps...)
		p.steps = p.steps[:0]
	}
	w.to.keep(w.diary.Add(all))
}

// merge writes what is left, and puts the round trips together.
func (w *watchers) merge(out *summary.Outcome) {
	w.flush()
	for _, p := range w.parts {
		out.RTT.Merge(p.rtt)
	}
	if w.heard != nil {
		out.Heard = &w.heard.Acks
	}
}
