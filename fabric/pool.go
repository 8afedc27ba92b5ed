package fabric

import (
	"sync"
	"sync/atomic"
)

// Packets are allocated by the slab and never freed: a packet goes from the pool to the network and back.
const (
	slabBits = 8
	slabSize = 1 << slabBits
)

// slab is so many packets, with consecutive numbers, and what few of them have. The packets come first, so that each begins with a
// line of the cache.
type slab struct {
	packets [slabSize]Packet
	notes   *[slabSize]Note                   // with CCM: of those that are notifications
	records atomic.Pointer[[slabSize]records] // in-band telemetry, once it was asked for: by parts at the same time, perhaps
}

// pool is the packets of a network, or of a part of one: the parts share the slabs, so that a packet crosses from one
// to another without being copied, and each has a list of its own of those that are nowhere.
type pool struct {
	store *store
	slabs []*slab // by number, all that may come along
	free  []*Packet
}

// store is the slabs of a network. Parts that run at the same time meet here once in many packets.
type store struct {
	mutex  sync.Mutex
	shared bool    // by parts: then the capacity of slabs is never exceeded, so that what the parts hold of it stays
	slabs  []*slab // by number
	spare  []*Packet
	notes  bool // slabs have room for notifications
}

// mostSlabs bounds the packets of a network that is split, 67 million; one in one piece has no bound.
const mostSlabs = 1 << 18

func newStore(shared bool) *store {
	s := &store{shared: shared}
	if shared {
		s.slabs = make([]*slab, 0, mostSlabs)
	}
	return s
}

// batch is how many packets go to and from the store at a time.
const batch = slabSize

// fill gets packets for an empty list, from the store or new ones.
func (l *pool) fill() {
	s := l.store
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if n := len(s.spare); n > 0 {
		first := max(0, n-batch)
		l.free = append(l.free, s.spare[first:]...)
		s.spare = s.spare[:first]
		return
	}
	if s.shared && len(s.slabs) == mostSlabs {
		panic("fabric: more packets in a network than there are numbers for")
	}
	b := new(slab)
	if s.notes {
		b.notes = new([slabSize]Note)
	}
	first := uint32(len(s.slabs)) << slabBits
	s.slabs = append(s.slabs, b)
	l.slabs = s.slabs[:cap(s.slabs)]
	for i := range b.packets {
		p := &b.packets[i]
		p.Header = p.room[:0]
		p.number = first + uint32(i)
		l.free = append(l.free, p)
	}
}

// put takes a packet back. A part that receives more than it sends gives them to the others.
func (l *pool) put(p *Packet) {
	if l.free = append(l.free, p); len(l.free) < 4*batch || !l.store.shared {
		return
	}
	s := l.store
	s.mutex.Lock()
	defer s.mutex.Unlock()
	rest := len(l.free) - 2*batch
	s.spare = append(s.spare, l.free[rest:]...)
	l.free = l.free[:rest]
}

// slab returns the slab of a packet by its number.
func (l *pool) slab(number uint32) *slab { return l.slabs[number>>slabBits] }

// note returns the notification that a packet is.
func (l *pool) note(number uint32) *Note { return &l.slab(number).notes[number&(slabSize-1)] }

// record returns the notes of a packet by its number.
func (l *pool) record(number uint32) *records {
	b := l.slab(number)
	r := b.records.Load()
	if r == nil {
		b.records.CompareAndSwap(nil, new([slabSize]records))
		r = b.records.Load()
	}
	return &r[number&(slabSize-1)]
}
