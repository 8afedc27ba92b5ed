package transport

import (
	"cmp"

	"weft/transport/cc"
	"weft/units"
)

// rto is the retransmission timer of a connection: RFC 6298's estimate with a floor, doubled on each timeout
// in a row.
type rto struct {
	floor    units.Time
	baseRTT  units.Time // of the idle path
	srtt     units.Time // 0: no sample yet
	rttvar   units.Time
	tries    int // timeouts since something new was acknowledged
	maxTries int
	at       units.Time // when it runs out, while anything is in flight
	wait     units.Time // how long it was set for
}

// newRTO returns the timer of a connection.
func newRTO(s *Spec, l cc.Link) rto {
	r := rto{baseRTT: l.BaseRTT, floor: max(cmp.Or(s.RTOMin, DefaultRTOMin), 4*l.BaseRTT), maxTries: s.Tries}
	if s.Tries == 0 {
		r.maxTries = DefaultTries
	}
	return r
}

// sample takes in a round-trip time (RFC 6298, section 2, with α = 1/8 and β = 1/4). Every acknowledgement
// echoes its packet's own stamp, so that packets sent again give samples as good as any.
func (r *rto) sample(rtt units.Time) {
	rtt = min(rtt, maxRTT)
	if r.srtt == 0 {
		r.srtt, r.rttvar = rtt, rtt/2
		return
	}
	d := r.srtt - rtt
	if d < 0 {
		d = -d
	}
	r.rttvar += (d - r.rttvar) / 4
	r.srtt += (rtt - r.srtt) / 8
}

// restart lets the timer run from now, at least for a time that the pacing asks for.
func (r *rto) restart(now, least units.Time) {
	r.wait = max(r.floor, r.srtt+4*r.rttvar, least) << min(r.tries, maxDoublings)
	r.at = now + r.wait
}

// TimedOut is a retransmission timer that ran out.
type TimedOut struct {
	Conn   ConnID
	At     units.Time
	Waited units.Time // without an acknowledgement of anything new
}

// maxTimedOut is how many of them an endpoint remembers, the first.
const maxTimedOut = 4096

// patience is how long an acknowledgement may be waited for at the pacing rate, where the transport says that it counts: twice the time
// between packets. Flows that are paced alike may all have a packet in one queue, which takes one such time to empty; and
// before the next one is over nothing could be sent again anyhow (docs/adr/0032).
func (s *sender) patience() units.Time {
	if !s.spaced {
		return 0
	}
	rate := s.ctl.PacingRate()
	if rate == 0 {
		return 0
	}
	return min(2*rate.TransmitTime(s.mtu+s.perPacket), maxPatience)
}

// maxPatience keeps a timeout within reach whatever the rate; ours.
const maxPatience = units.Second

// maxRTT is the longest round trip that counts as one; a stamp that says more has gone wrong.
const maxRTT = 100 * units.Second

// maxDoublings bounds the timeout of connections that may try more often than that.
const maxDoublings = 10

// expire notes a timeout; it returns false when it was one too many.
func (r *rto) expire() bool {
	r.tries++
	return r.tries <= r.maxTries
}

// Retries describes the retransmission timers that run at an endpoint. The zero value: none does.
type Retries struct {
	Tried units.Time // when the first of them was set: each connection has sent something again, or got an answer, since
	Due   units.Time // when the last of them runs out
}

// Retries returns which retransmission timers run. It looks at every connection that the endpoint sends on.
func (e *Endpoint) Retries() Retries {
	r := Retries{Tried: units.Never}
	for i := range e.senders {
		if s := &e.senders[i]; s.outstanding() {
			r.Tried, r.Due = min(r.Tried, s.rto.at-s.rto.wait), max(r.Due, s.rto.at)
		}
	}
	if r.Due == 0 {
		return Retries{}
	}
	return r
}

// Patience says how long a connection waits before it gives up: whole is from the last acknowledgement of something new to the
// end, of which last comes after its last attempt. It is at least as long as that; round trips or pacing may make it longer.
func Patience(cfg Config, s Spec) (whole, last units.Time, err error) {
	sch, err := newScheme(&s)
	if err != nil {
		return 0, 0, err
	}
	r := newSender(cfg, &s, sch).rto
	for try := range r.maxTries + 1 {
		last = r.floor << min(try, maxDoublings)
		whole += last
	}
	return whole, last, nil
}
