package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"weft/internal/prefetch"
	"weft/transport"
	"weft/units"
)

// fake is a host with a simple windowed transport: packets of one size to one destination, an
// acknowledgement for each, a packet whose acknowledgement does not come within a timeout is sent
// again.
type fake struct {
	id     transport.HostID
	dst    transport.HostID
	total  uint32 // packets to send; 0: only answers
	window uint32
	rto    units.Time
	tries  int // timeouts before it gives up; 0: never

	next, acked, received uint32
	got                   []bool // by sequence number: acknowledged
	expiry                units.Time
	timeouts              int
	failed                error
	finished              units.Time

	acks []fakeAck // a ring of replies that wait
	head int
	n    int
}

type fakeAck struct {
	dst transport.HostID
	seq uint32
	ce  bool
}

const (
	fakePayload = 4096
	fakeHeader  = 48 // as long as a real one
	fakeAckSize = 46 + fakeHeader
	fakeSize    = 46 + fakeHeader + fakePayload
)

// newFake returns a host that sends packets to dst with a fixed window.
func newFake(id, dst int, packets, window uint32) *fake {
	return &fake{
		id: transport.HostID(id), dst: transport.HostID(dst), total: packets, window: window,
		rto: units.Millisecond, got: make([]bool, packets), acks: make([]fakeAck, 64),
	}
}

func (f *fake) Prefetch(step int) {
	if step == 0 {
		prefetch.Lines(unsafe.Pointer(f), 3)
	}
}

func (f *fake) Start(now units.Time) { f.expiry = now + f.rto }
func (f *fake) Done() bool           { return f.acked == f.total }
func (f *fake) Failed() error        { return f.failed }

var errFakeHeader = errors.New("short header")

func (f *fake) Receive(now units.Time, in *transport.Incoming) (transport.Placement, error) {
	if len(in.Header) != fakeHeader {
		return transport.Placement{}, errFakeHeader
	}
	seq := binary.BigEndian.Uint32(in.Header)
	if in.Payload > 0 {
		f.received++
		if f.n == len(f.acks) {
			bigger := make([]fakeAck, 2*len(f.acks))
			for i := range f.n {
				bigger[i] = f.acks[(f.head+i)%len(f.acks)]
			}
			f.acks, f.head = bigger, 0
		}
		f.acks[(f.head+f.n)%len(f.acks)] = fakeAck{in.Src, seq, in.CE}
		f.n++
		return transport.Placement{}, nil
	}
	if !f.got[seq] {
		f.got[seq] = true
		f.expiry = now + f.rto
		if f.acked++; f.acked == f.total {
			f.finished = now
		}
	}
	return transport.Placement{}, nil
}

func (f *fake) Transmit(_ units.Time, out *transport.Outgoing) bool {
	if f.n > 0 {
		a := f.acks[f.head]
		f.head = (f.head + 1) % len(f.acks)
		f.n--
		out.Dst, out.Size, out.Payload, out.Class, out.ECT = a.dst, fakeAckSize, 0, 0, false
		f.write(out, a.seq)
		return true
	}
	for f.next < f.total && f.got[f.next] {
		f.next++ // sent again, and acknowledged since
	}
	if f.next >= f.total || f.next >= f.acked+f.window {
		return false
	}
	out.Dst, out.Size, out.Payload, out.Class, out.ECT = f.dst, fakeSize, fakePayload, 1, true
	f.write(out, f.next)
	f.next++
	return true
}

// write fills in a data packet.
func (f *fake) write(out *transport.Outgoing, seq uint32) {
	out.SrcPort = uint16(f.id)*31 + 7
	out.N = fakeHeader
	binary.BigEndian.PutUint32(out.Header[:], seq)
}

func (f *fake) Deadline() (units.Time, bool) {
	return f.expiry, f.acked < f.total && f.rto > 0
}

func (f *fake) Advance(now units.Time) {
	if now < f.expiry {
		return
	}
	if f.timeouts++; f.tries > 0 && f.timeouts >= f.tries {
		f.failed = fmt.Errorf("no answer from %d", f.dst)
	}
	f.next = 0
	f.expiry = now + f.rto
}
