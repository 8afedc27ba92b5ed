package transport

import (
	"cmp"

	"weft/transport/cc"
	"weft/units"
)

// rto is the retransmission timer of a connection: the estimate of RFC 6298 with a minimum, doubled
// on each timeout in a row.
type rto struct {
	floor    units.Time // minimum
	baseRTT  units.Time // of the idle path
	srtt     units.Time // smoothed RTT; 0: no sample yet
	rttvar   units.Time // mean deviation of the RTT
	tries    int32      // timeouts since something new was acknowledged
	maxTries int32
	at       units.Time // when it expires, while anything is in flight
	wait     units.Time // for how long it was set
	since    units.Time // when something new was acknowledged, or else first sent
}

// rest forgets the last time that the timer was set.
func (r *rto) rest() { r.at, r.wait, r.since = 0, 0, 0 }

// newRTO returns the timer of a connection. Its minimum is at least four base RTTs; ours.
func newRTO(s *Spec, l cc.Link) rto {
	r := rto{baseRTT: l.BaseRTT, floor: max(cmp.Or(s.RTOMin, DefaultRTOMin), 4*l.BaseRTT), maxTries: int32(s.Tries)}
	if s.Tries == 0 {
		r.maxTries = DefaultTries
	}
	return r
}

// sample adds a round-trip time to the estimate (RFC 6298, section 2, with α = 1/8 and β = 1/4).
// Retransmissions count too: every acknowledgement echoes the timestamp of its own packet.
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

// progress records that something new was acknowledged.
func (r *rto) progress(now units.Time) { r.tries, r.since = 0, now }

// alive records an answer of the peer that acknowledges nothing new. It restarts the timer and its
// retries, but not for ever: where switches trim packets, the headers of packets sent again can
// take the whole of a slow link, and a packet that is rejected each time never arrives. After as
// long as retries without any answer take, at least DefaultTries of them, only progress counts.
// Ours.
func (r *rto) alive(now, minWait units.Time) {
	whole, _ := waits(max(r.floor, r.srtt+4*r.rttvar, minWait), max(r.maxTries, DefaultTries))
	if now-r.since > whole {
		return
	}
	r.tries = 0
	r.restart(now, minWait)
}

// restart sets the timer, for at least minWait before doubling.
func (r *rto) restart(now, minWait units.Time) {
	r.wait = max(r.floor, r.srtt+4*r.rttvar, minWait) << min(r.tries, maxDoublings)
	r.at = now + r.wait
}

// TimedOut is a retransmission timer that expired.
type TimedOut struct {
	Conn   ConnID
	At     units.Time
	Waited units.Time // time without an acknowledgement of anything new
}

// maxTimedOut is the number of expired timers that an endpoint remembers.
const maxTimedOut = 4096

// pacingTimeout returns the minimum timeout at the pacing rate: twice the time between packets, or
// 0 for transports that do not ask for it. Flows paced alike may all have a packet in one queue,
// which takes one such time to drain; and a retransmission could not leave before the next one is
// over (docs/adr/0032).
func (s *sender) pacingTimeout() units.Time {
	if !s.spaced {
		return 0
	}
	rate := s.ctl.PacingRate()
	if rate == 0 {
		return 0
	}
	return min(2*rate.TransmitTime(s.mtu+s.perPacket), maxPacingTimeout)
}

// maxPacingTimeout bounds pacingTimeout, so that a very low rate does not postpone timeouts for
// ever. Ours.
const maxPacingTimeout = units.Second

// maxRTT bounds a sample: a longer round trip is an error of a timestamp. Ours.
const maxRTT = 100 * units.Second

// maxDoublings bounds the exponential backoff of connections with more retries than that. Ours.
const maxDoublings = 10

// expire counts a timeout; it returns false if the retries are exhausted.
func (r *rto) expire() bool {
	r.tries++
	return r.tries <= r.maxTries
}

// Retries describes the running retransmission timers of an endpoint. The zero value means that
// none runs.
type Retries struct {
	Tried units.Time // when the first was set: since then every connection has retried or had an answer
	Due   units.Time // when the last expires
}

// Retries returns the running retransmission timers. It visits every sender.
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

// Patience returns how long a connection waits before it fails: whole is the time from the last
// acknowledgement of something new, of which last follows the last attempt. These are minima: long
// round trips or pacing extend them.
func Patience(cfg Config, s Spec) (whole, last units.Time, err error) {
	sch, err := newScheme(&s)
	if err != nil {
		return 0, 0, err
	}
	r := newSender(cfg, &s, sch).rto
	whole, last = waits(r.floor, r.maxTries)
	return whole, last, nil
}

// waits returns the sum of the timeouts of an attempt and its retries, and the last of them. The
// first timeout is first; each retry doubles it.
func waits(first units.Time, tries int32) (whole, last units.Time) {
	for try := range tries + 1 {
		last = first << min(try, maxDoublings)
		whole += last
	}
	return whole, last
}
