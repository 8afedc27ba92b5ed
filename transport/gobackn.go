package transport

import "weft/units"

// Go-back-N as InfiniBand's reliable connection does it: the receiver takes packets in order only, asks once per
// gap to go back, and the sender then sends everything again from there. Numbers are counted in 64 bits inside
// and in 32 on the wire.

// verdict says what the receiver does with a packet.
type verdict uint8

const (
	inOrder   verdict = iota // take it and acknowledge
	duplicate                // drop it and acknowledge again (IB, C9-110)
	gap                      // drop it and ask to go back: the first packet beyond a gap
	beyond                   // drop it in silence: the gap has been reported
)

// receiveOrder is the receiving side.
type receiveOrder struct {
	expected uint64
	asked    bool // a NAK for expected is out: there is no second one until expected arrives
}

// judge says what to do with packet psn. The caller then calls take when it accepts an inOrder packet.
func (r *receiveOrder) judge(psn uint32) verdict {
	switch d := int32(psn - uint32(r.expected)); {
	case d == 0:
		return inOrder
	case d < 0:
		return duplicate
	case r.asked:
		return beyond
	default:
		return gap
	}
}

func (r *receiveOrder) take() {
	r.expected++
	r.asked = false
}

// sendOrder is the sending side: packets before acked have arrived, those before next are in flight or have
// arrived, those before high have been sent at least once.
type sendOrder struct {
	acked, next, high uint64
	ackedBytes        units.Bytes // on the wire, of all packets before acked
	nextBytes         units.Bytes // on the wire, of all packets before next
	wentBack          uint64      // 1 + the packet that a NAK last asked for: a second NAK for it is a copy
}

func (s *sendOrder) inFlight() units.Bytes { return s.nextBytes - s.ackedBytes }

// sent notes that packet next has left; resent says whether it had before.
func (s *sendOrder) sent(size units.Bytes) (resent bool) {
	resent = s.next < s.high
	s.next++
	s.high = max(s.high, s.next)
	s.nextBytes += size
	return resent
}

// expand returns the packet number whose low 32 bits are expected, nearest to acked; ok is false when no
// packet before it was sent.
func (s *sendOrder) expand(expected uint32) (psn uint64, ok bool) {
	n := int64(s.acked) + int64(int32(expected-uint32(s.acked)))
	return uint64(n), n >= 0 && uint64(n) <= s.high
}

// advance notes that all packets before psn have arrived; bytes is their size on the wire since the beginning.
func (s *sendOrder) advance(psn uint64, bytes units.Bytes) {
	s.acked, s.ackedBytes = psn, bytes
	if s.next < psn { // sent before going back
		s.next, s.nextBytes = psn, bytes
	}
}

// back gives up everything in flight as lost.
func (s *sendOrder) back() {
	s.next, s.nextBytes = s.acked, s.ackedBytes
}
