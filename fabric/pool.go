package fabric

import (
	"sync"
	"sync/atomic"
)

// Packets are allocated by the slab and never freed: they circulate between the pool and the
// network.
const (
	slabBits = 8
	slabSize = 1 << slabBits
)

// slab holds slabSize packets with consecutive numbers and the side data that few of them need. The
// packets come first, so that each begins at a cache line.
type slab struct {
	packets [slabSize]Packet
	notes   *[slabSize]Note // with CCM: the notification that a packet is; else nil

	// records is in-band telemetry, nil until a packet asks for it. Partitions may set it
	// concurrently.
	records atomic.Pointer[[slabSize]records]
}

// pool is the packets of a network or of one partition of it. Partitions share the slabs, so that a
// packet moves from one to another without being copied, but each has its own free list.
type pool struct {
	store *store
	slabs []*slab   // by number; the capacity covers slabs that are added later
	free  []*Packet // packets that are not in use
}

// store is the slabs of a network. Partitions that run concurrently meet here, once for many
// packets.
type store struct {
	mutex  sync.Mutex
	shared bool    // by partitions: slabs then never exceeds its capacity, so that slices of it stay valid
	slabs  []*slab // by number
	spare  []*Packet
	notes  bool // slabs have room for notifications
}

// maxSlabs bounds the packets of a network in partitions, to 67 million. A network in one piece has
// no bound.
const maxSlabs = 1 << 18

func newStore(shared bool) *store {
	s := &store{shared: shared}
	if shared {
		s.slabs = make([]*slab, 0, maxSlabs)
	}
	return s
}

// batch is the number of packets that go to and from the store at a time.
const batch = slabSize

// fill gets packets for an empty free list: from the store, or new ones.
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
	if s.shared && len(s.slabs) == maxSlabs {
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

// put returns a packet to the free list. A partition that receives more packets than it sends
// passes them to the others through the store.
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

// note returns the storage of the notification that a packet is. The network must have CCM.
func (l *pool) note(number uint32) *Note { return &l.slab(number).notes[number&(slabSize-1)] }

// record returns the storage of a packet's telemetry, by the packet's number.
func (l *pool) record(number uint32) *records {
	b := l.slab(number)
	r := b.records.Load()
	if r == nil {
		b.records.CompareAndSwap(nil, new([slabSize]records))
		r = b.records.Load()
	}
	return &r[number&(slabSize-1)]
}
