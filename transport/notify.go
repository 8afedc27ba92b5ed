package transport

import (
	"fmt"

	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// queueCNP queues a congestion notification for the sender of data packet d. It precedes the
// packet's acknowledgement.
func (e *Endpoint) queueCNP(r *receiver, d *wire.Data) {
	if e.replies.len() >= maxReplies {
		e.counters.AckDrops++
		return
	}
	w := e.replies.add()
	w.dst, w.srcPort, w.kind = r.src, r.replyPort, replyCNP
	w.ack = wire.Ack{Conn: d.Conn, PSN: d.PSN, Path: d.Path}
}

// receiveCNP handles a congestion notification at the sending half.
func (e *Endpoint) receiveCNP(now units.Time, in *Incoming) error {
	var c wire.CNP
	if err := c.Decode(in.Header); err != nil {
		return err
	}
	i, s, err := e.sender(ConnID(c.Conn))
	if err != nil {
		return fmt.Errorf("notification on connection %d: %w", c.Conn, err)
	}
	ctl, ok := s.ctl.(cc.Notified)
	switch {
	case in.Src != s.dst:
		return fmt.Errorf("notification on connection %d from host %d: %w", c.Conn, in.Src, ErrForeign)
	case in.payload(wire.CNPSize) != 0 || !ok:
		return fmt.Errorf("notification on connection %d: %w", c.Conn, ErrProtocol)
	}
	e.counters.CNPsIn++
	if s.failed {
		return nil
	}
	ctl.OnCNP(now)
	e.observe(now, s)
	e.schedule(i, now)
	return nil
}
