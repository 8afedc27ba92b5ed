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

// Rest resets what no longer matters while the endpoint is still: see cc.Resting. Two endpoints
// that will do the same are then in equal states. What the endpoint does afterwards does not
// change.
func (e *Endpoint) Rest(now units.Time) {
	for i := range e.senders {
		s := &e.senders[i]
		if rest(now, s.ctl) && !s.timing() {
			if rate := s.ctl.PacingRate(); rate == 0 || s.paced+rate.TransmitTime(s.pacedSize) <= now {
				s.paced = units.LongAgo
			}
		}
		if s.pacedSize == 0 {
			s.paced = units.LongAgo
		}
		rest(now, s.chooser)
		s.next = -1
		s.rto.rest()
	}
	for i := range e.receivers {
		r := &e.receivers[i]
		rest(now, r.feedback)
		r.message, r.replyPort = Message{}, r.srcPort
	}
}

// timing reports whether the controller has a deadline.
func (s *sender) timing() bool {
	if s.timed == nil {
		return false
	}
	_, ok := s.timed.Deadline()
	return ok
}

// rest has something forget, and reports whether it can.
func rest(now units.Time, x any) bool {
	r, ok := x.(cc.Resting)
	if ok {
		r.Rest(now)
	}
	return ok
}
