package rings

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// ErrLie is the error about a region in which the other side wrote what no honest side writes. It
// is permanent: the ring is not used any more.
var ErrLie = errors.New("broke the rules of its rings")

// Frame describes a frame in a ring.
type Frame struct {
	// Bytes are in shared memory, valid until Release; the producer may change them.
	Bytes []byte
	// At and Written are the producer's, not checked: an instant of lab time in picoseconds, and
	// CLOCK_MONOTONIC in nanoseconds.
	At, Written int64
}

// ring is the part that both ends of a ring share: pointers into the region.
type ring struct {
	head, tail  *uint64 // published; head counts pushed frames, tail released ones
	descriptors []byte
	slots       []byte
	layout      Layout
	mask        uint64
}

func newRing(l Layout, region []byte, direction int) (ring, error) {
	if err := l.check(region); err != nil {
		return ring{}, err
	}
	control, slots := l.part(region, direction)
	return ring{
		head: word(control, 0), tail: word(control, line), descriptors: control[indices:], slots: slots, layout: l,
		mask: uint64(l.Slots - 1),
	}, nil
}

// word returns the aligned word at an offset of shared memory, which must be there.
func word(b []byte, at int) *uint64 { return (*uint64)(unsafe.Pointer(&b[at : at+8 : at+8][0])) }

// words returns the words of a descriptor: slot and length, At, Written, and an unused one.
func (r *ring) words(index uint64) *[descriptor / 8]uint64 {
	at := int(index&r.mask) * descriptor
	return (*[descriptor / 8]uint64)(unsafe.Pointer(&r.descriptors[at : at+descriptor][0]))
}

// slot returns the memory of a slot, which must exist.
func (r *ring) slot(n uint32) []byte {
	at := int(n) * r.layout.Size
	return r.slots[at : at+r.layout.Size : at+r.layout.Size]
}

// Producer is the end of a ring that sends.
type Producer struct {
	ring
	pushed, released uint64   // head and tail as this side knows them
	used             []uint32 // by index of a descriptor in use: its slot
	free             []uint32 // slots that are free, the one released last at the end
}

// NewProducer returns the sending end of a direction, 0 or 1, of a fresh region.
func NewProducer(l Layout, region []byte, direction int) (*Producer, error) {
	r, err := newRing(l, region, direction)
	if err != nil {
		return nil, err
	}
	p := &Producer{ring: r, used: make([]uint32, l.Slots), free: make([]uint32, l.Slots)}
	for i := range p.free {
		p.free[i] = uint32(l.Slots - 1 - i)
	}
	return p, nil
}

// Slot returns the memory for the next frame, which stays this side's until Push. Without room it
// returns nil. The error is ErrLie.
func (p *Producer) Slot() ([]byte, error) {
	tail := atomic.LoadUint64(p.tail)
	if tail-p.released > p.pushed-p.released {
		return nil, fmt.Errorf("%w: it released %d frames of %d", ErrLie, tail-p.released, p.pushed-p.released)
	}
	for ; p.released != tail; p.released++ {
		p.free = append(p.free, p.used[p.released&p.mask])
	}
	if len(p.free) == 0 {
		return nil, nil
	}
	return p.slot(p.free[len(p.free)-1]), nil
}

// Push publishes the first n bytes of the memory that the last Slot returned.
func (p *Producer) Push(n int, at, written int64) {
	slot := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	p.used[p.pushed&p.mask] = slot
	w := p.words(p.pushed) // plain stores: the consumer reads them only after the atomic one of head
	w[0], w[1], w[2] = uint64(slot)|uint64(uint32(n))<<32, uint64(at), uint64(written)
	p.pushed++
	atomic.StoreUint64(p.head, p.pushed)
}

// Consumer is the end of a ring that receives.
type Consumer struct {
	ring
	taken uint64 // frames released, which is what this side publishes as tail
	known uint64 // head as this side knows it
	batch uint64 // slots returned at once, a power of two
}

// NewConsumer returns the receiving end of a direction, 0 or 1, of a fresh region.
func NewConsumer(l Layout, region []byte, direction int) (*Consumer, error) {
	r, err := newRing(l, region, direction)
	return &Consumer{ring: r, batch: uint64(min(max(l.Slots/32, 1), maxBatch))}, err
}

// Ready reports whether Next has something to say.
func (c *Consumer) Ready() bool { return c.known != c.taken || atomic.LoadUint64(c.head) != c.taken }

// Next returns the oldest frame. ok is false if there is none. The error is ErrLie.
func (c *Consumer) Next() (f Frame, ok bool, err error) {
	if c.known == c.taken {
		head := atomic.LoadUint64(c.head)
		if head-c.taken > uint64(c.layout.Slots) {
			return f, false, fmt.Errorf("%w: it pushed %d frames into %d slots", ErrLie, head-c.taken, c.layout.Slots)
		}
		if c.known = head; head == c.taken {
			return f, false, nil
		}
	}
	w := c.words(c.taken)
	first := atomic.LoadUint64(&w[0])
	slot, n := uint32(first), uint32(first>>32)
	if slot >= uint32(c.layout.Slots) || n > uint32(c.layout.Size) {
		return f, false, fmt.Errorf("%w: a frame of %d bytes in slot %d; there are %d of %d bytes", ErrLie, n, slot,
			c.layout.Slots, c.layout.Size)
	}
	f.Bytes = c.slot(slot)[:n:n]
	f.At, f.Written = int64(atomic.LoadUint64(&w[1])), int64(atomic.LoadUint64(&w[2]))
	return f, true, nil
}

// Release returns the slot of the frame that Next has returned. The producer learns of several at
// once, at the latest when Next has returned all frames that it knew of: an atomic store waits for
// all stores before it.
func (c *Consumer) Release() {
	c.taken++
	if c.taken == c.known || c.taken&(c.batch-1) == 0 {
		atomic.StoreUint64(c.tail, c.taken)
	}
}

// maxBatch is the largest number of slots that a Consumer returns at once. Ours: few, so that the
// producer uses them while they are in a cache.
const maxBatch = 8
