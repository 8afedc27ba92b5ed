package transport

import (
	"math"
	"math/bits"

	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// Selective repeat as in STrack (section 3.3): the receiver accepts packets in any order and
// reports which have arrived; the sender retransmits the missing ones. The states of both sides are
// here. Endpoints act on them in selective_receiver.go and selective_sender.go.

// maxSpan is the maximum number of packets from the first missing one to the last sent. It bounds
// the bitmaps and the 16 bits of the out-of-order count in acknowledgements.
const maxSpan = 1 << 15

// MaxThreshold is the largest Selective.Threshold: more packets are never on their way.
const MaxThreshold = maxSpan

// arrivals is the state of a receiving half. Sizes are bytes on the wire.
type arrivals struct {
	placed `state:"-"`
	since  units.Bytes // part of bytes since the last acknowledgement
	every  units.Bytes // an acknowledgement is due after this many bytes
	// switches trim packets: a closed gap needs no acknowledgement; see trimmed.go
	patient bool
	asked   bool  // patient: an acknowledgement was requested while packets were missing
	rated   bool  // acknowledgements carry a base rate
	room    uint8 // records of telemetry for which data packets have room
}

// placed is which packets have arrived. A receiver without a gap goes on from any number in the
// same way.
type placed struct {
	expected   uint64      // EPSN: all packets before it have arrived
	have       bitmap      // packets after expected that have arrived
	top        uint64      // 1 + the last packet in have
	outOfOrder int         // number of packets in have
	bytes      units.Bytes // size of all packets that have arrived, without duplicates
	lowest     uint64      // lowest packet that arrived since the last acknowledgement; noPacket: none
	fin        uint64      // 1 + the last packet with the Fin flag
	open       []partial   // incomplete messages
}

// noPacket is the value of arrivals.lowest without packets.
const noPacket uint64 = math.MaxUint64

// partial is an incomplete message.
type partial struct {
	Message
	first uint64      // number of its first packet
	left  units.Bytes // payload that is missing
}

func newArrivals(s *Spec, sch scheme) *arrivals {
	x := &arrivals{
		placed: placed{lowest: noPacket},
		every:  s.Selective.ackEvery(), patient: sch.trims, rated: FactsFor(s.Kind, s.CC).BaseRate,
	}
	if sch.telemetry {
		x.room = s.Forward.room()
	}
	return x
}

// ackEvery returns AckEvery or its default.
func (s Selective) ackEvery() units.Bytes {
	if s.AckEvery == 0 {
		return DefaultAckEvery
	}
	return s.AckEvery
}

// expand returns the packet number nearest to expected whose low 32 bits are psn. ok is false if no
// sender could have sent it yet.
func (x *arrivals) expand(psn uint32) (n uint64, ok bool) {
	at := int64(x.expected) + int64(int32(psn-uint32(x.expected)))
	return uint64(at), at >= 0 && uint64(at) < x.expected+maxSpan
}

// fresh reports whether packet psn has not arrived before.
func (x *arrivals) fresh(psn uint64) bool {
	return psn >= x.expected && (psn >= x.top || !x.have.has(psn))
}

// fits reports whether a fresh packet is consistent: with the division of its message into packets,
// and with earlier packets of that message.
func (x *arrivals) fits(psn uint64, d *wire.Data, mtu units.Bytes) bool {
	k := uint64(d.Offset / mtu)
	if d.Offset%mtu != 0 || d.Payload != min(mtu, d.Size-d.Offset) || k > psn || d.Room != x.room ||
		d.Request.On != x.patient {
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

// take accepts a fresh packet of the given size. filled is true if it was the expected one and
// closed a gap.
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

// place records the payload of a fresh packet, the k-th of its message, and reports whether the
// message is complete.
func (x *arrivals) place(psn, k uint64, d *wire.Data) (complete bool) {
	if d.Payload == d.Size {
		return true
	}
	i := x.find(psn - k)
	if i < 0 {
		i = len(x.open)
		x.open = append(x.open, partial{Message: Message{ID: d.Message, Tag: d.Tag, Size: d.Size}, first: psn - k,
			left: d.Size})
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

// segment returns the part of the bitmap that an acknowledgement carries. The bitmap from the
// expected packet is divided into segments, and the one that holds packet psn is returned (STrack:
// "the lowest PSN since the last SACK").
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

// flight is the state of a sending half beside sendOrder, whose next is the first packet that was
// never sent and whose acked is EPSN. Sizes are bytes on the wire.
type flight struct {
	transit `state:"-"`
	habits  `state:"span"`

	// departures has the timers of packets where switches trim them. There are no probes but those
	// that ask for credit or for an acknowledgement, and probeAt is when the first timer expires.
	// nil: losses are inferred.
	departures *departures `state:"never,timers of packets"`
	asked      bool        // departures: a probe requested one, and is not answered yet
}

// transit is what is known of the packets in flight. It means nothing while there are none.
type transit struct {
	arrived    bitmap // packets from acked that have arrived, by the acknowledgements so far
	lost       bitmap // packets claimed lost that wait for retransmission
	waiting    int    // number of packets in lost
	lowestLost uint64 // no packet in lost is before it

	sent     units.Bytes // bytes_sent: counts every transmission
	received units.Bytes // bytes_recvd: reported by the receiver, without duplicates
	claimed  units.Bytes // bytes_claimed_retransmit: counts every time that a packet is claimed lost

	highest uint64 // 1 + the last packet that is known to have arrived
	until   uint64 // recovery lasts until all packets before it have arrived; 0: none
	// if received exceeds it, retransmissions were lost; MaxInt64 while some still wait
	mark units.Bytes

	left      units.Time // when the last packet left, or the busy period began
	probeAt   units.Time // when the next probe is due, while anything is in flight
	probing   bool       // a probe waits to leave
	probes    int        // probes since the last acknowledgement of something new
	probeDue  units.Time // when the last probe was to arrive at the receiver; identifies its answer
	probeNext uint64     // the first packet that was not sent before the last probe
	others    int        // acknowledgements since the last probe
	asking    uint64     // departures: the last packet that requested an acknowledgement
}

// habits is how a sender repairs losses: it never changes.
type habits struct {
	span uint64 // max. packets from acked to next

	every     units.Bytes // the receiver acknowledges after this many bytes
	threshold int         // min. packets out of order that indicate a loss
	windowed  bool        // it takes a window of packets out of order, at least threshold
	rated     bool        // acknowledgements of data carry a base rate

	netRTT     units.Time
	baseRTT    units.Time
	probeAfter units.Time // a probe leaves after this long without an acknowledgement
}

// newFlight returns the state of a sending half before its first packet.
func newFlight(s *Spec, l cc.Link, sch scheme) *flight {
	f := &flight{
		transit: transit{probeDue: minTime},
		habits: habits{
			span: min(sch.span(l), maxSpan), every: s.Selective.ackEvery(), threshold: s.Selective.Threshold,
			windowed: sch.windowed, rated: FactsFor(s.Kind, s.CC).BaseRate,
			netRTT: l.NetRTT, baseRTT: l.BaseRTT,
		},
	}
	if f.threshold == 0 {
		f.threshold = DefaultThreshold
	}
	after := s.Selective.ProbeAfter
	if after == 0 {
		after = DefaultProbeAfter
	}
	f.probeAfter = max(units.Time(after*float64(l.NetRTT)), 1)
	if sch.trims {
		f.departures, f.probeAt = new(departures), units.Never
	}
	return f
}

// nextProbe returns when the next probe leaves if nothing new is acknowledged. The fifth one in a
// row and those that follow wait twice as long as the one before, up to the shortest timeout. Ours:
// the probes of thousands of connections to one host would fill its link.
func (f *flight) nextProbe(now, timeout units.Time) units.Time {
	wait := f.probeAfter
	for n := f.probes; n >= probesAtOnce && wait < timeout; n-- {
		wait *= 2
	}
	return now + min(wait, max(timeout, f.probeAfter))
}

// probesAtOnce is the number of probes without effect from which on they become rarer.
const probesAtOnce = 4

// inFlight returns the bytes in flight (STrack, equations 1 and 2). Packets that arrived but were
// claimed lost before their acknowledgement came are subtracted twice for a while, hence the
// minimum of 0.
func (f *flight) inFlight() units.Bytes { return max(f.sent-f.received-f.claimed, 0) }

// recovering reports whether a recovery is under way.
func (f *flight) recovering(acked uint64) bool { return acked < f.until }

// firstLost returns the first packet that waits for retransmission. There must be one.
func (f *flight) firstLost() uint64 {
	for {
		if w := f.lost.get(f.lowestLost); w != 0 {
			f.lowestLost += uint64(bits.TrailingZeros64(w))
			return f.lowestLost
		}
		f.lowestLost += 64
	}
}

// resend records the retransmission of packet psn. The last one sets mark beyond the bytes in
// flight and the tolerated reordering: a window later all retransmissions should have arrived
// (STrack, section 3.3.2: "the process continues").
func (f *flight) resend(psn uint64, size, reorderBound units.Bytes) {
	f.lost.clear(psn)
	f.waiting--
	f.sent += size
	f.mark = f.received + f.inFlight() + reorderBound
}
