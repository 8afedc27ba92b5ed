package fabric

import "weft/units"

// parcel is a packet as queues and lines hold it: with all that a hop reads, so that the packet itself is
// fetched from memory only where it enters and leaves. It is 32 bytes, and has no
// pointer for the garbage collector to follow.
type parcel struct {
	at     units.Time // when it joined the queue, or when its last bit reaches the far end of the line
	packet uint32     // number in the pool
	flow   uint32     // what ECMP hashes, of Packet.FlowHash
	dst    HostID
	next   int32 // on a line: the port it joins at the far end, or atHost, noPort, lost; in a queue: the port it came by
	size   int32
	ecn    ECN
	class  uint8
	hops   uint8
	flags  uint8
}

// Flags of a parcel.
const (
	noted  uint8 = 1 << iota // ports write in-band telemetry
	passed                   // stations of switches look at it: see Stations
	local                    // it is for the station at the end of the line
)

// Ends of the way, instead of a port.
const (
	atHost int32 = -1 // the far end is the destination
	noPort int32 = -2 // the far end cannot forward it
	lost   int32 = -3 // it is corrupted on the line

	atSwitch  int32 = -6 // the switch at the far end is the destination
	perPacket int32 = -5 // the switch at the far end chooses when the packet arrives
	disturbed int32 = -4 // the line may deliver it late, or twice
)

// wrap returns the parcel of a packet that is injected.
func (n *Network) wrap(p *Packet) parcel {
	*n.pool.queued(p.number) = p.Queued
	if n.ccm != nil {
		*n.pool.tag(p.number) = p.Tag
	}
	var flags uint8
	if p.INT {
		flags = noted
	}
	if w := n.staff; w != nil {
		if p.Port == w.port {
			flags |= passed
		}
		if p.Src == p.Dst {
			flags |= local
		}
	}
	return parcel{
		packet: p.number, flow: uint32(mix(p.FlowHash)), dst: p.Dst, size: int32(p.Size),
		ecn: p.ECN, class: p.Class, hops: p.Hops, flags: flags,
	}
}

// unwrap returns the packet of a parcel, brought up to date.
func (n *Network) unwrap(e *parcel) *Packet {
	p := n.pool.packet(e.packet)
	p.ECN = e.ecn
	p.Hops = e.hops
	p.Queued = *n.pool.queued(e.packet)
	if n.ccm != nil {
		p.Tag = *n.pool.tag(e.packet)
	}
	return p
}

// ring is a first-in-first-out list of parcels. Its storage grows and is kept. Parcels are copied once, from
// the place they leave to the place they take.
type ring struct {
	slots []parcel // a power of two, or none yet
	head  int32
	n     int32
}

// push adds a copy of e at the end and returns it, to be changed in place.
func (r *ring) push(e *parcel) *parcel {
	if int(r.n) == len(r.slots) {
		r.grow()
	}
	place := &r.slots[int(r.head+r.n)&(len(r.slots)-1)]
	*place = *e
	r.n++
	return place
}

// nth returns the i-th, from 0, of those in the ring.
func (r *ring) nth(i int32) *parcel { return &r.slots[int(r.head+i)&(len(r.slots)-1)] }

// front returns the first. The ring must not be empty.
func (r *ring) front() *parcel { return &r.slots[r.head] }

// pop removes and returns the first, which stays where it is until the next push. The ring must not be empty.
func (r *ring) pop() *parcel {
	e := &r.slots[r.head]
	r.head = int32(int(r.head+1) & (len(r.slots) - 1))
	if r.n--; r.n == 0 {
		r.head = 0 // stay in the part of the storage that was used last
	}
	return e
}

func (r *ring) grow() {
	bigger := make([]parcel, max(4, 2*len(r.slots)))
	for i := range r.n {
		bigger[i] = *r.nth(i)
	}
	r.slots, r.head = bigger, 0
}

// size returns the sum of the parcels' sizes.
func (r *ring) size() (sum units.Bytes) {
	for i := range r.n {
		sum += units.Bytes(r.nth(i).size)
	}
	return sum
}
