package transport

import (
	"math"
	"math/bits"

	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// Selective repeat as STrack does it (section 3.3): the receiver takes packets in any order and says which have come, the
// sender sends again what is missing. The states of both sides are here. Endpoints act on them in selective_receiver.go and
// selective_sender.go.

// maxSpan is the most packets from the first that is missing to the last that was sent: what bitmaps grow to, and
// what the count of packets out of order can say.
const maxSpan = 1 << 15

// arrivals is the receiving side.
type arrivals struct {
	expected   uint64      // EPSN: all packets before it have arrived
	have       bitmap      // packets beyond expected that have arrived
	top        uint64      // the packet behind the last one in have
	outOfOrder int         // how many they are
	bytes      units.Bytes // on the wire, of all packets that have arrived, duplicates excluded
	since      units.Bytes // of them, since the last acknowledgement
	lowest     uint64      // packet that has come since then; none: noPacket
	every      units.Bytes // after so many bytes there is an acknowledgement
	fin        uint64      // the packet behind the last one that said it was the last
	open       []partial   // messages that are arriving
}

const noPacket uint64 = math.MaxUint64

// partial is a message some of whose packets have arrived.
type partial struct {
	Message
	first uint64 // packet
	left  units.Bytes
}

func newArrivals(s *Spec) *arrivals {
	return &arrivals{every: s.Selective.ackEvery(), lowest: noPacket}
}

func (s Selective) ackEvery() units.Bytes {
	if s.AckEvery == 0 {
		return DefaultAckEvery
	}
	return s.AckEvery
}

// expand returns the packet number whose low 32 bits are psn, nearest to expected; ok is false when no sender would have sent
// it yet.
func (x *arrivals) expand(psn uint32) (n uint64, ok bool) {
	at := int64(x.expected) + int64(int32(psn-uint32(x.expected)))
	return uint64(at), at >= 0 && uint64(at) < x.expected+maxSpan
}

// fresh says whether packet psn has not arrived before.
func (x *arrivals) fresh(psn uint64) bool {
	return psn >= x.expected && (psn >= x.top || !x.have.has(psn))
}

// fits says whether a packet that is fresh belongs where it says: messages take as many packets as they need, and what was
// heard of one before stays true.
func (x *arrivals) fits(psn uint64, d *wire.Data, mtu units.Bytes) bool {
	k := uint64(d.Offset / mtu)
	if d.Offset%mtu != 0 || d.Payload != min(mtu, d.Size-d.Offset) || k > psn || d.Room > 0 {
		return false
	}
	i := x.find(psn - k)
	return i < 0 || x.open[i].Message == Message{ID: d.Message, Tag: d.Tag, Size: d.Size}
}

// find returns the index of the message that begins with a packet, or -1.
func (x *arrivals) find(first uint64) int {
	for i := range x.open {
		if x.open[i].first == first {
			return i
		}
	}
	return -1
}

// take accepts a fresh packet of so many bytes on the wire. filled says that it was the expected one and others waited behind
// it.
func (x *arrivals) take(psn uint64, size units.Bytes) (filled bool) {
	x.bytes += size
	x.since += size
	switch {
	case psn != x.expected:
		x.have.reach(x.expected, psn+1)
		x.have.set(psn)
		x.top = max(x.top, psn+1)
		x.outOfOrder++
		return false
	case x.outOfOrder == 0:
		x.expected++
		return false
	}
	n := x.have.run(x.expected + 1)
	x.expected += 1 + n
	x.outOfOrder -= int(n)
	return true
}

// place takes in that the payload of a fresh packet, the k-th of its message, is there and says whether the message is complete.
func (x *arrivals) place(psn, k uint64, d *wire.Data) (complete bool) {
	if d.Payload == d.Size {
		return true
	}
	i := x.find(psn - k)
	if i < 0 {
		i = len(x.open)
		x.open = append(x.open, partial{Message: Message{ID: d.Message, Tag: d.Tag, Size: d.Size}, first: psn - k, left: d.Size})
	}
	p := &x.open[i]
	if p.left -= d.Payload; p.left > 0 {
		return false
	}
	last := len(x.open) - 1
	x.open[i] = x.open[last]
	x.open = x.open[:last]
	return true
}

// segment returns which bits an acknowledgement carries: the bitmap from the expected packet on is cut into
// segments, and it is the one that holds packet psn ("the lowest PSN since the last SACK").
func (x *arrivals) segment(psn uint64) (base, mask uint64) {
	base = x.expected
	if psn > base && psn != noPacket {
		base += (psn - base) &^ (wire.SackBits - 1)
	}
	if base >= x.top {
		return base, 0
	}
	return base, x.have.get(base)
}

// flight is the sending side beside sendOrder, whose next is the first packet that was never sent and whose acked is EPSN.
type flight struct {
	arrived bitmap // packets from acked on that have arrived, as far as acknowledgements have said
	lost    bitmap // packets claimed lost that wait to be sent again
	waiting int    // how many they are
	least   uint64 // none of them is before

	sent     units.Bytes // bytes_sent: on the wire, each time a packet leaves
	received units.Bytes // bytes_recvd: what the receiver says has arrived, duplicates excluded
	claimed  units.Bytes // bytes_claimed_retransmit: each time a packet is claimed lost

	highest uint64      // the packet behind the last one that is known to have arrived
	until   uint64      // recovery lasts until all packets before it have arrived; 0: none
	mark    units.Bytes // when more has arrived, packets that were sent again are lost again; while some wait, unknown
	span    uint64      // most packets from acked to next

	every     units.Bytes // after so many bytes the receiver acknowledges unasked
	threshold int         // least packets out of order that say of a loss
	windowed  bool        // a window of packets out of order does; else the threshold alone

	left       units.Time // when a packet left last, or a busy period began
	netRTT     units.Time
	baseRTT    units.Time
	probeAfter units.Time // of silence
	probeAt    units.Time // while anything is in flight
	probing    bool       // a probe waits to leave
	probeDue   units.Time // the last probe: when it was due at the receiver
	probeNext  uint64     // the first packet that had not been sent before it
	others     int        // acknowledgements since it left
}

func newFlight(s *Spec, l cc.Link, sch scheme) *flight {
	f := &flight{
		span: min(sch.span(l), maxSpan), every: s.Selective.ackEvery(), threshold: s.Selective.Threshold, windowed: sch.windowed,
		netRTT: l.NetRTT, baseRTT: l.BaseRTT, probeDue: minTime,
	}
	if f.threshold == 0 {
		f.threshold = DefaultThreshold
	}
	after := s.Selective.ProbeAfter
	if after == 0 {
		after = DefaultProbeAfter
	}
	f.probeAfter = max(units.Time(after*float64(l.NetRTT)), 1)
	return f
}

// inFlight is what is on its way by STrack's equations 1 and 2. Packets that have arrived and were claimed lost before the
// sender heard count twice until it does; that is no reason to be below nothing.
func (f *flight) inFlight() units.Bytes { return max(f.sent-f.received-f.claimed, 0) }

// recovering says whether a recovery is under way.
func (f *flight) recovering(acked uint64) bool { return acked < f.until }

// firstLost returns the first packet that waits to be sent again. There is one.
func (f *flight) firstLost() uint64 {
	for {
		if w := f.lost.get(f.least); w != 0 {
			f.least += uint64(bits.TrailingZeros64(w))
			return f.least
		}
		f.least += 64
	}
}

// resend notes that packet psn leaves again, of so many bytes. When the last one has left, mark is set beyond what is in flight and
// what overtaking explains: a window later all that was sent again should have arrived (section 3.3.2: "the process continues").
func (f *flight) resend(psn uint64, size, overtaking units.Bytes) {
	f.lost.clear(psn)
	f.waiting--
	f.sent += size
	f.mark = f.received + f.inFlight() + overtaking
}
