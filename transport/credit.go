package transport

import (
	"fmt"
	"math"

	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// Credits of the receiver (UEC, RCCC; uet-htsim, uec.cpp). A sender begins with credit for a
// maximum window, and then sends what its receiver grants. Each packet says how much credit the
// sender would like to have had (target); each credit says how much the receiver has granted so
// far. So a lost message costs time, and no credit.
//
//	sender ── data, target ──► receiver: target above granted? join the round
//	   ▲                          │
//	   └──── credit ◄──── pacer, at the rate of the host's line
//
// The pacer of a host serves its connections in turn. When all have what they want, it grants some
// more (slow credit), up to a maximum window, so that the next message starts at once.

// credits is the credit of a sending half. Sizes are bytes on the wire.
type credits struct {
	have        units.Bytes // _credit; may be negative
	saw         units.Bytes // what the observer saw of it last
	most        units.Bytes // _configured_maxwnd
	granted     uint32      // by the receiver so far, in wire.CreditUnit (_pull)
	speculating bool        // no answer of the receiver yet: have is what everybody begins with
	windowed    bool        // there is a window too, and no more than that is asked for
	asked       units.Time  // when the last probe with a target left
	askAt       units.Time  // when the next leaves, if there is no credit
}

// stopSpeculating ends the credit of the beginning, at the first answer (UecSrc::stopSpeculating).
func (c *credits) stopSpeculating() {
	if c.speculating {
		c.speculating = false
		c.have = min(c.have, 0)
	}
}

// target returns the target for a packet after which backlog bytes are left, of which a share of
// the host's connections that want to send is asked for (UecSrc::computePullTarget).
func (c *credits) target(backlog, window, packet units.Bytes, others int) uint32 {
	want := backlog
	if c.windowed {
		want = min(want, window+2*packet)
	}
	want = min(want, c.most) - c.have
	if c.speculating && want < packet && backlog > 0 {
		want = packet // for short messages
	}
	want /= units.Bytes(others + 1)
	return c.granted + uint32(int32(math.Ceil(float64(want)/float64(wire.CreditUnit))))
}

// backlog returns the bytes on the wire that wait to leave, retransmissions included.
func (s *sender) backlog() units.Bytes {
	return s.bytes - s.order.nextBytes + units.Bytes(s.flight.waiting)*(s.mtu+s.perPacket)
}

// request returns the request of a packet of the given size that leaves now, and spends credit for
// it. For a probe, size is 0.
func (s *sender) request(now units.Time, size units.Bytes, others int) wire.Request {
	if s.flight == nil || s.flight.departures == nil {
		return wire.Request{}
	}
	c := s.credits
	if c == nil {
		return wire.Request{On: true}
	}
	c.have -= size
	if c.have <= 0 {
		c.askAt = now + s.rto.floor
	}
	return wire.Request{On: true, Target: c.target(max(s.backlog()-size, 0), s.ctl.Window(), s.mtu+s.perPacket, others)}
}

// starved reports whether the connection has something to send, but no credit.
func (s *sender) starved() bool {
	return s.credits != nil && !s.failed && s.credits.have <= 0 && (s.flight.waiting > 0 || s.order.next < s.queued)
}

// ask has a probe say what the sender would like to have, after a time without credit: a credit, or
// what asked for it, was lost. The retries of the connection count if nothing else is outstanding.
func (e *Endpoint) ask(now units.Time, s *sender) {
	if !s.outstanding() && !s.rto.expire() {
		e.fail(now, s, nil)
		return
	}
	s.credits.askAt = now + s.rto.floor<<min(s.rto.tries, maxDoublings)
	s.flight.probing = true
}

// receiveCredit handles a credit at the sending half (UecSrc::processPull).
func (e *Endpoint) receiveCredit(now units.Time, in *Incoming) error {
	var a wire.Credit
	if err := a.Decode(in.Header); err != nil {
		return err
	}
	i, s, err := e.sender(ConnID(a.Conn))
	switch {
	case err != nil:
		return fmt.Errorf("credit on connection %d: %w", a.Conn, err)
	case in.Src != s.dst:
		return fmt.Errorf("credit on connection %d from host %d: %w", a.Conn, in.Src, ErrForeign)
	case in.payload(wire.CreditSize) != 0 || s.credits == nil:
		return fmt.Errorf("credit on connection %d: %w", a.Conn, ErrProtocol)
	}
	e.counters.CreditsIn++
	if s.failed {
		return nil
	}
	c := s.credits
	c.stopSpeculating()
	if more := int32(a.Granted - c.granted); more > 0 {
		c.have = min(c.have+units.Bytes(more)*wire.CreditUnit, c.most)
		c.granted = a.Granted
	}
	c.askAt = now + s.rto.floor
	if !s.outstanding() {
		s.rto.tries = 0
	}
	e.observe(now, s)
	e.schedule(i, now)
	return nil
}

// grants is the credit of a receiving half, in wire.CreditUnit.
type grants struct {
	target   uint32     // the highest target so far (_highest_pull_target)
	granted  uint32     // _latest_pull
	most     uint32     // slow credit goes up to so much beyond the target
	each     uint32     // one credit
	index    int32      // of the receiver in Endpoint.receivers
	active   bool       // in pacer.active
	idle     bool       // in pacer.idle
	interval units.Time // time of a wire.CreditUnit
}

// creditScheme has the credit settings of a scheme.
type creditScheme struct {
	most     float64     // credit at the start, in bandwidth-delay products of the network
	each     units.Bytes // one credit
	rate     float64     // share of the line rate that is granted
	windowed bool        // there is a window too
}

// initial returns the credit at the start, as a host with this line sees it.
func (c *creditScheme) initial(l cc.Link) units.Bytes {
	return units.Bytes(c.most * float64(l.Line) * l.NetRTT.Seconds() / 8)
}

// sending returns the credit of a sending half.
func (c *creditScheme) sending(l cc.Link) *credits {
	most := max(c.initial(l), l.Packet)
	return &credits{have: most, most: most, speculating: true, windowed: c.windowed, asked: units.LongAgo}
}

// receiving returns the credit of the receiving half with an index at a host.
func (c *creditScheme) receiving(l cc.Link, index int) *grants {
	bits := 8 * float64(wire.CreditUnit)
	return &grants{
		most: uint32(c.initial(l) / wire.CreditUnit), each: max(uint32(c.each/wire.CreditUnit), 1),
		index: int32(index), interval: max(units.Time(bits*1e12/(float64(l.Line)*c.rate)), 1),
	}
}

// backlog returns what the sender wants in addition to what was granted, negative if it has more.
func (g *grants) backlog() int32 { return int32(g.target - g.granted) }

// pacer grants credit to the connections that end at a host, in turn (UecPullPacer).
type pacer struct {
	active fifo[int32] // receivers that want credit
	idle   fifo[int32] // receivers that may get slow credit
	at     units.Time  // when the next credit leaves
	on     bool
}

// want handles the target of a packet or probe (UecSink::handlePullTarget). A target beyond what an
// honest sender asks for is cut, so that nobody keeps the pacer busy.
func (e *Endpoint) want(now units.Time, r *receiver, target uint32) {
	g := r.grants
	if most := g.granted + 2*g.most + g.each; int32(target-most) > 0 {
		target = most
	}
	if int32(target-g.target) > 0 {
		g.target = target
		e.pace(now, r)
	}
}

// pace puts a receiver into the round (UecPullPacer::requestPull).
func (e *Endpoint) pace(now units.Time, r *receiver) {
	if r.grants.active {
		return
	}
	r.grants.active = true
	p := &e.pacer
	p.active.push(r.grants.index)
	if !p.on {
		p.on, p.at = true, now
	}
}

// grant sends the credits that are due (UecPullPacer::doNextEvent).
func (e *Endpoint) grant(now units.Time) {
	p := &e.pacer
	for p.on && p.at <= now {
		var r *receiver
		var more uint32
		switch {
		case p.active.len() > 0:
			r = &e.receivers[p.active.pop()]
			g := r.grants
			more = uint32(min(max(g.backlog(), 0), int32(g.each)))
			g.granted += more
			if g.active = g.backlog() > 0; g.active {
				p.active.push(r.grants.index)
			} else if !g.idle {
				g.idle = true
				p.idle.push(g.index)
			}
		case p.idle.len() > 0:
			r = &e.receivers[p.idle.pop()]
			g := r.grants
			more = g.each
			g.granted += more
			if g.idle = g.backlog() <= 0 && uint32(-g.backlog()) < g.most; g.idle {
				p.idle.push(g.index)
			}
		default:
			p.on = false
			return
		}
		e.queueCredit(r)
		p.at += r.grants.interval * units.Time(max(more, minCredit))
	}
}

// minCredit is how long a credit without any takes, in wire.CreditUnit (UecPullPacer::doNextEvent).
const minCredit = 4

func (e *Endpoint) queueCredit(r *receiver) {
	if e.replies.len() >= maxReplies {
		e.counters.AckDrops++
		return
	}
	w := e.replies.add()
	w.dst, w.srcPort, w.kind = r.src, r.replyPort, replyCredit
	w.ack = wire.Ack{Conn: uint32(r.id), PSN: r.grants.granted}
}
