package transport

import "weft/units"

// Go-back-N as in InfiniBand's reliable connection: the receiver accepts packets in order only, and
// sends one NAK per gap; the sender then sends everything from there again. Packet numbers are 64
// bits inside and 32 on the wire.

// verdict is the receiver's decision about a packet.
type verdict uint8

const (
	inOrder   verdict = iota // accept and acknowledge
	duplicate                // drop and acknowledge again (InfiniBand, C9-110)
	gap                      // drop and send a NAK: the first packet after a gap
	beyond                   // drop without a reply: the NAK for this gap has been sent
)

// receiveOrder is the receiving side.
type receiveOrder struct {
	expected uint64 `state:"-"` // the sender goes on from any number in the same way
	asked    bool   // a NAK for expected was sent; there is no second one until expected arrives
}

// classify returns what to do with packet psn. The caller calls take if it accepts an inOrder
// packet.
func (r *receiveOrder) classify(psn uint32) verdict {
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

// sendOrder is the sending side: packets before acked have arrived, those before next are in
// flight, and those before high have been sent at least once.
type sendOrder struct {
	acked, next, high uint64
	ackedBytes        units.Bytes // all packets before acked
	nextBytes         units.Bytes // all packets before next
	wentBack          uint64      // 1 + the packet that the last NAK named; another NAK for it is a copy
}

func (s *sendOrder) inFlight() units.Bytes { return s.nextBytes - s.ackedBytes }

// sent records that packet next, of the given size, has left. resent is true if it is a
// retransmission.
func (s *sendOrder) sent(size units.Bytes) (resent bool) {
	resent = s.next < s.high
	s.next++
	s.high = max(s.high, s.next)
	s.nextBytes += size
	return resent
}

// expand returns the packet number nearest to acked whose low 32 bits are expected. ok is false if
// no such acknowledgement is possible: fewer packets have been sent.
func (s *sendOrder) expand(expected uint32) (psn uint64, ok bool) {
	n := int64(s.acked) + int64(int32(expected-uint32(s.acked)))
	return uint64(n), n >= 0 && uint64(n) <= s.high
}

// advance records that all packets before psn have arrived; bytes is the total size of these.
func (s *sendOrder) advance(psn uint64, bytes units.Bytes) {
	s.acked, s.ackedBytes = psn, bytes
	if s.next < psn { // sent before going back
		s.next, s.nextBytes = psn, bytes
	}
}

// back declares everything in flight lost: the next packet is the first that is not acknowledged.
func (s *sendOrder) back() {
	s.next, s.nextBytes = s.acked, s.ackedBytes
}
