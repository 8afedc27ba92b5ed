package host

import (
	"cmp"
	"fmt"
	"slices"

	"weft/collectives/schedule"
)

// inflow describes the messages that arrive by one connection in one stage of an item, in every
// repetition. The host announces a flow to the endpoint before it arrives, and its end when all its
// messages have arrived (PC4, section III-C: the controller knows). Credits are not flows.
type inflow struct {
	use       *use // item's use of the connection
	stage     uint8
	announced bool
	each      uint32 // number of messages per repetition
	got       uint32 // number of messages received so far
	later     int32  // index of the flow of the same connection in a later stage; -1: none
}

// collect computes the flows of an item, in the order of their stages and then of their first
// messages.
func (h *Host) collect(i int32, w *work) error {
	r := &h.runs[i]
	var err error
	if w.atOnce, err = schedule.Inflow(r.spec, r.item.Rank); err != nil {
		return err
	}
	w.atOnce *= r.item.qps()
	for k := range w.ops {
		op := &w.ops[k]
		if op.Kind != schedule.Recv {
			continue
		}
		lane := r.item.lane(op)
		for part := range r.item.parts(op.Len) {
			u := h.arrival(i, op.Peer, lane+part)
			if u == nil {
				return fmt.Errorf("receives from rank %d: %w", op.Peer, errNoConn)
			}
			if op.Credit {
				continue
			}
			f := w.flowOf(u, op.Stage)
			if f == nil {
				w.flows = append(w.flows, inflow{use: u, stage: op.Stage, later: u.flow})
				u.flow = int32(len(w.flows) - 1)
				f = &w.flows[u.flow]
			}
			if f.each++; r.item.Given != nil {
				f.each = 1 // nobody knows when the next message comes: each is a flow
			}
		}
	}
	slices.SortStableFunc(w.flows, func(a, b inflow) int { return cmp.Compare(a.stage, b.stage) })
	for k := range w.flows {
		w.flows[k].use.flow = -1
	}
	for k := len(w.flows) - 1; k >= 0; k-- {
		f := &w.flows[k]
		f.later, f.use.flow = f.use.flow, int32(k)
	}
	return nil
}

// flowOf returns the flow of a connection in a stage, or nil.
func (w *work) flowOf(u *use, stage uint8) *inflow {
	for k := u.flow; k >= 0; k = w.flows[k].later {
		if f := &w.flows[k]; f.stage == stage {
			return f
		}
	}
	return nil
}

// announce tells the endpoint of the flows that are about to arrive: of the current stage as many
// as arrive at once, in the order of the schedule; when these have ended, those of the next stage.
func (h *Host) announce(i int32) {
	r := &h.runs[i]
	w := r.work
	for ; w.told < len(w.flows); w.told++ {
		f := &w.flows[w.told]
		if f.got >= uint32(r.repeat+1)*f.each {
			continue
		}
		if f.stage != w.stage {
			if w.announced > 0 {
				return
			}
			w.enter(f.stage)
		}
		if w.announced >= w.atOnce && !f.announced {
			return
		}
		h.expect(w, f)
	}
}

// enter begins a stage. Some of its flows may have arrived before.
func (w *work) enter(stage uint8) {
	w.stage, w.announced = stage, 0
	for k := range w.flows {
		if f := &w.flows[k]; f.stage == stage && f.announced {
			w.announced++
		}
	}
}

// expect announces one flow.
func (h *Host) expect(w *work, f *inflow) {
	if f.announced {
		return
	}
	f.announced = true
	h.expected++
	if f.stage == w.stage {
		w.announced++
	}
	h.endpoint.Expect(h.in[f.use.link].conn, 1)
}

// ended withdraws the announcement of a flow.
func (h *Host) ended(w *work, f *inflow) {
	if !f.announced {
		return
	}
	f.announced = false
	h.expected--
	if f.stage == w.stage {
		w.announced--
	}
	h.endpoint.Expect(h.in[f.use.link].conn, -1)
}

// message records that a message of a flow, or its part on the connection, is complete.
func (h *Host) message(u *use, op *schedule.Op) {
	r := &h.runs[u.run]
	w := r.work
	f := w.flowOf(u, op.Stage)
	if op.Credit || f == nil {
		return
	}
	if f.got++; f.got%f.each == 0 {
		h.ended(w, f)
		if r.phase == running {
			h.announce(u.run)
		}
	}
}
