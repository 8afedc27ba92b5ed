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

// writer has the files of a simulated run. The first failure to write one ends the run.
type writer struct {
	dir  *store.Run
	stop func()
	err  error
}

func (w *writer) check(err error) {
	if w.err == nil && err != nil {
		w.err = err
		w.stop()
	}
}

// observer observes the endpoints of one partition of a simulated network.
type observer struct {
	rtt         *stats.Dist
	marked      stats.Mark // of rtt: see observers.results
	keepWindows bool
	keepAcks    bool
	from        units.Time      // round trips count from here
	last        []units.Bytes   // by connection: its present window, for frames; nil: not wanted
	windows     []record.Window // not written yet
	acks        []record.Ack    // not written yet
	steps       []summary.Step  // not written yet
	_           [64]byte        // keeps observers of two partitions in different cache lines
}

// Acked records a round trip, and the acknowledgement if the lab measures them.
func (o *observer) Acked(now units.Time, c transport.ConnID, a transport.Acked) {
	if now >= o.from {
		o.rtt.Record(a.RTT)
	}
	if o.keepAcks {
		o.acks = append(o.acks, record.Ack{At: now, Conn: uint32(c), RTT: a.RTT, Marked: a.Marked})
	}
}

// Limited records a change of a congestion window, a rate or a credit if the lab measures them.
func (o *observer) Limited(now units.Time, c transport.ConnID, l transport.Limits) {
	if o.last != nil {
		o.last[c] = l.Window
	}
	if o.keepWindows {
		o.windows = append(o.windows, record.Window{
			At: now, Conn: uint32(c), Window: l.Window, Rate: l.Rate, Credited: l.Credited, Credit: l.Credit,
		})
	}
}

// Coordinated records a step of coordinated congestion management at a source.
func (o *observer) Coordinated(now units.Time, c transport.ConnID, cc, moved bool) {
	o.steps = append(o.steps, summary.Step{At: now, Conn: c, Source: true, Cc: cc, Moved: moved})
}

// observers are the observers of all partitions.
type observers struct {
	diary   *summary.Diary // nil unless congestion is coordinated
	parts   []*observer
	files   *writer
	windows []record.Window
	acks    []record.Ack
	acked   *ackStats // nil unless acknowledgements are measured

	keepRows bool // for steps that are skipped
	kept     stepResults
}

// ackStats counts which sign of congestion reaches senders first.
type ackStats struct {
	record.Acks
	delayed units.Time // a round trip this long shows a delay
	seen    map[uint32]bool
}

func (h *ackStats) add(a record.Ack) {
	if !h.seen[a.Conn] {
		h.seen[a.Conn] = true
		h.Connections++
		if a.Marked {
			h.FirstMarked++
		}
	}
	if a.Marked && h.MarkUS == 0 {
		h.MarkUS, h.MarkRTTUS = a.At.Microseconds(), a.RTT.Microseconds()
	}
	if a.RTT >= h.delayed && h.DelayUS == 0 {
		h.DelayUS = a.At.Microseconds()
	}
}

func newObservers(parts int, x *experiment.Experiment, files *writer) *observers {
	w, m := &observers{files: files}, &x.Lab.Measure
	if m.Acks {
		w.acked = &ackStats{delayed: 2 * x.BaseRTT, seen: map[uint32]bool{}}
	}
	for range parts {
		w.parts = append(w.parts, &observer{
			rtt: stats.NewDist(), keepWindows: m.CWND, keepAcks: m.Acks, from: x.Measure.From,
		})
	}
	return w
}

// flush writes the rows of all observers in order of time.
func (o *observers) flush() {
	o.windows, o.acks = o.windows[:0], o.acks[:0]
	for _, p := range o.parts {
		o.windows, o.acks = append(o.windows, p.windows...), append(o.acks, p.acks...)
		p.windows, p.acks = p.windows[:0], p.acks[:0]
	}
	if len(o.parts) > 1 {
		slices.SortStableFunc(o.windows, func(a, b record.Window) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Conn, b.Conn))
		})
		slices.SortStableFunc(o.acks, func(a, b record.Ack) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Conn, b.Conn))
		})
	}
	o.writeSteps()
	o.write()
}

// write writes the rows of windows and acknowledgements.
func (o *observers) write() {
	o.keep()
	for _, r := range o.windows {
		o.files.check(o.files.dir.Window(r))
	}
	for _, a := range o.acks {
		o.files.check(o.files.dir.Ack(a))
		o.acked.add(a)
	}
}

// writeSteps writes the steps of coordination.
func (o *observers) writeSteps() {
	if o.diary == nil {
		return
	}
	var all []summary.Step
	for _, p := range o.parts {
		all = append(all, p.steps...)
		p.steps = p.steps[:0]
	}
	o.files.check(o.diary.Add(all))
}

// merge writes the remaining rows, and merges the round trips of all partitions.
func (o *observers) merge(out *summary.Outcome) {
	o.flush()
	for _, p := range o.parts {
		out.RTT.Merge(p.rtt)
	}
	if o.acked != nil {
		out.Heard = &o.acked.Acks
	}
}
