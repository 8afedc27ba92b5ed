package run

import (
	"cmp"
	"slices"

	"weft/orchestrator/lab"
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
	from    units.Time      // round trips count from here
	rows    []record.Window // not written yet
	_       [64]byte        // apart from what other parts write
}

// Acked records a round trip.
func (w *watcher) Acked(now units.Time, _ transport.ConnID, rtt, _ units.Time) {
	if now >= w.from {
		w.rtt.Record(rtt)
	}
}

// Window keeps a change of a congestion window, when the lab measures them.
func (w *watcher) Window(now units.Time, c transport.ConnID, cwnd units.Bytes, rate units.Bandwidth) {
	if w.windows {
		w.rows = append(w.rows, record.Window{At: now, Conn: uint32(c), Window: cwnd, Rate: rate})
	}
}

// watchers are those of all parts.
type watchers struct {
	parts []*watcher
	to    *writer
	rows  []record.Window
}

func newWatchers(parts int, m *lab.Measure, to *writer) *watchers {
	w := &watchers{to: to}
	for range parts {
		w.parts = append(w.parts, &watcher{rtt: stats.NewDist(), windows: m.CWND, from: m.From})
	}
	return w
}

// flush writes what the watchers have kept, in order of time.
func (w *watchers) flush() {
	w.rows = w.rows[:0]
	for _, p := range w.parts {
		w.rows = append(w.rows, p.rows...)
		p.rows = p.rows[:0]
	}
	if len(w.parts) > 1 {
		slices.SortStableFunc(w.rows, func(a, b record.Window) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Conn, b.Conn))
		})
	}
	for _, r := range w.rows {
		w.to.keep(w.to.dir.Window(r))
	}
}

// merge writes what is left, and puts the round trips together.
func (w *watchers) merge(out *outcome) {
	w.flush()
	for _, p := range w.parts {
		out.RTT.Merge(p.rtt)
	}
}
