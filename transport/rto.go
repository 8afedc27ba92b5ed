package transport

import (
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
}

// newRTO returns the timer of a connection. The floor is that of its transport where it does not say itself.
func newRTO(s *Spec, l cc.Link, sch scheme) rto {
	r := rto{baseRTT: l.BaseRTT, floor: max(s.RTOMin, 4*l.BaseRTT), maxTries: s.Tries}
	if s.RTOMin == 0 {
		r.floor = max(sch.rtoMin, sch.rtoRTTs*l.NetRTT, r.floor)
	}
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
	r.at = now + max(r.floor, r.srtt+4*r.rttvar, least)<<min(r.tries, maxDoublings)
}

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
