package transport

import (
	"weft/transport/cc"
	"weft/units"
)

// Still reports whether nothing is in flight, waits to leave or has arrived in part, on any
// connection. A connection that has failed is never still.
func (e *Endpoint) Still() bool {
	if e.round.n > 0 || e.replies.len() > 0 || e.events.len() > 0 || e.pacer.on {
		return false
	}
	for i := range e.senders {
		s := &e.senders[i]
		if !s.idle() || s.outstanding() || s.failed {
			return false
		}
		if f := s.flight; f != nil && (f.waiting > 0 || f.probing || f.recovering(s.order.acked)) {
			return false
		}
	}
	for i := range e.receivers {
		r := &e.receivers[i]
		if r.arrived > 0 || r.arrivals != nil && (r.arrivals.outOfOrder > 0 || len(r.arrivals.open) > 0) {
			return false
		}
	}
	return true
}

// Rest forgets what does not matter any more while the endpoint is still: see cc.Resting. What
// follows does not change.
func (e *Endpoint) Rest(now units.Time) {
	for i := range e.senders {
		s := &e.senders[i]
		start, known := units.Bandwidth(0), false
		if c, ok := s.ctl.(cc.Resting); ok {
			start, known = c.Rest(now)
		}
		if s.pacedSize == 0 || known && (start == 0 || s.paced+start.TransmitTime(s.pacedSize) <= now) {
			s.paced = longAgo
		}
	}
	for i := range e.receivers {
		if r, ok := e.receivers[i].feedback.(cc.RestingReceiver); ok {
			r.Rest(now)
		}
	}
}

// longAgo is before every instant, and can be added to.
const longAgo = minTime / 2
