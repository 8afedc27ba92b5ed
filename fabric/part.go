package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"weft/eventqueue"
	"weft/internal/splitmix"
	"weft/units"
)

// Part is one partition of a network whose other partitions are in other processes. What they post
// to each other travels as bytes: Export writes what was posted to another part, and Import reads
// what another part has written. Instead of the lookahead of Partitions there is a clock: the
// driver fires what is due, flushes and exports, and imports before it fires anything that is due
// later. A packet arrives at its instant if it is imported before that.
//
// Every part has the configuration of the whole network and makes every Change of it, at the same
// instant. Counters are those of this part: the sums of all parts are those of the network.
type Part struct {
	all *Partitions
	net *Network
}

// NewPart builds the idle partition me of a network that is split as by Split. The event queue must
// be empty.
func NewPart(cfg Config, partition []int32, me int, queue *eventqueue.Queue, sink Sink) (*Part, error) {
	parts := 0
	for _, k := range partition {
		parts = max(parts, int(k)+1)
	}
	if me < 0 || me >= parts || parts < 2 {
		return nil, fmt.Errorf("fabric: part %d of %d; expected one of at least two", me, parts)
	}
	queues, sinks := make([]*eventqueue.Queue, parts), make([]Sink, parts)
	for k := range queues {
		if queues[k], sinks[k] = eventqueue.New(0), sink; k == me {
			queues[k] = queue
		}
	}
	all, err := split(cfg, partition, queues, sinks, newStore(false)) // one goroutine
	if err != nil {
		return nil, err
	}
	p := &Part{all: all, net: all.all[me]}
	shared := &apart{exported: make([]units.Time, len(cfg.Ports)), imported: make([]units.Time, len(cfg.Ports))}
	for _, n := range all.all {
		n.exchange.apart = shared
	}
	return p, nil
}

// apart is the state of a partition whose others are in other processes.
type apart struct {
	exported []units.Time // by port: arrival of the last packet that was exported on its link
	imported []units.Time // by port: arrival of the last packet that was imported from its link
	looked   units.Time   // up to when Flush has started transmissions
	out, in  Crossed
}

// Crossed counts the packets that have left a part for another one, or have come from one.
type Crossed struct {
	Packets int64
	Bytes   units.Bytes
}

// later removes from the remote link of o, which goes down, the packets that the other process sent
// after the link had come up again, and returns them: that process is ahead of this one.
func (x *exchange) later(n *Network, o *port, flight *list) (later list) {
	if x.apart == nil || o.farEnd == within {
		return later
	}
	var before list
	x.apart.exported[o.index], x.apart.imported[o.index] = 0, 0
	for !flight.empty() {
		e := flight.pop()
		if int(e.ingress) < len(n.cold[o.index].cutBy) {
			before.push(e)
			continue
		}
		later.push(e)
		x.apart.imported[o.index] = e.at
	}
	*flight = before
	return later
}

// Network returns the network as this part sees it.
func (p *Part) Network() *Network { return p.net }

// Crossed returns what was imported and exported.
func (p *Part) Crossed() (in, out Crossed) { return p.net.exchange.apart.in, p.net.exchange.apart.out }

// Flush posts what has left for other parts until now, after everything due until then has fired.
// It returns the earliest instant at which a packet that waits leaves; units.Never if none waits.
func (p *Part) Flush(now units.Time) (next units.Time) {
	if x := &p.net.exchange; len(x.backlog) > 0 {
		x.apart.looked = max(x.apart.looked, now)
		return x.flush(p.net, now)
	}
	return units.Never
}

// Waits reports whether packets wait for links to other parts.
func (p *Part) Waits() bool { return len(p.net.exchange.backlog) > 0 }

// Looked returns the instant up to which this part has decided what happens. A packet that is
// imported with an arrival at or before it is late.
func (p *Part) Looked() units.Time { return max(p.net.events.Last(), p.net.exchange.apart.looked) }

// Cross reports whether a change takes a port up or down whose link leads to another part.
func (p *Part) Cross(c *Change) bool {
	return c.Up != nil && slices.ContainsFunc(c.Ports, func(i int) bool { return p.net.ports[i].farEnd != within })
}

// Kinds of records that parts exchange.
const (
	recordPacket byte = iota + 1
	recordPause
)

// Sizes of records in bytes: of every record's length and kind; of the fixed fields of a packet; of
// a hop of telemetry; of a notification; of a pause.
const (
	recordHead   = 4 + 1
	packetFields = 4 + 8 + 4 + 4 + 8 + 4 + 4 + 8 + 8 + 8 + 4*1 + 2 + 2 + 3*1 + 2 + 1 + 1
	hopSize      = 4 * 8
	noteFields   = 1 + 1 + 4 + 4 + 2 + 4 + 8
	pauseFields  = 4 + 8 + 1 + 1
)

// MaxRecord is the size of the longest record whose packet has a header of the given size.
func MaxRecord(header int) int {
	return recordHead + packetFields + MaxHops*hopSize + noteFields + header
}

// Bits of a record of a packet.
const (
	bitINT byte = 1 << iota
	bitTag
	bitCC
	bitMark
	bitCorrupted
	bitNote
	bitDisordered
	bitsAll = 1<<iota - 1
)

// Export appends records of all that was posted to another part to b, and forgets it. It calls
// leave, which may be nil, with each packet before.
func (p *Part) Export(to int, b []byte, leave func(*Packet)) []byte {
	n := p.net
	x := &n.exchange
	box := &x.boxes[p.all.turn][to]
	for i, k := range box.packets {
		if leave != nil {
			leave(k.packet)
		}
		b = p.appendPacket(b, k.port, k.packet)
		x.apart.exported[k.port] = k.packet.at
		x.apart.out.Packets++
		x.apart.out.Bytes += k.packet.Size
		n.Put(k.packet)
		box.packets[i] = posted{}
	}
	for i, f := range box.frames {
		b = binary.BigEndian.AppendUint32(b, 1+pauseFields)
		b = binary.BigEndian.AppendUint32(append(b, recordPause), uint32(box.framed[i]))
		b = append(binary.BigEndian.AppendUint64(b, uint64(f.at)), f.class, bit(f.pause, 1))
	}
	*box = newBox(box)
	x.posted[p.all.turn] = slices.DeleteFunc(x.posted[p.all.turn], func(k int32) bool { return int(k) == to })
	return b
}

// Exports reports whether something is posted to another part.
func (p *Part) Exports() bool { return len(p.net.exchange.posted[p.all.turn]) > 0 }

// bit returns b if on, else 0.
func bit(on bool, b byte) byte {
	if on {
		return b
	}
	return 0
}

// appendPacket appends the record of e, whose transmission on the link of a port has started.
func (p *Part) appendPacket(b []byte, port int32, e *Packet) []byte {
	n := p.net
	note, isNote := n.NoteOf(e)
	hops := n.Telemetry(e)
	start := len(b)
	b = append(binary.BigEndian.AppendUint32(b, 0), recordPacket)
	b = binary.BigEndian.AppendUint32(b, uint32(port))
	b = binary.BigEndian.AppendUint64(b, uint64(e.at))
	b = binary.BigEndian.AppendUint32(b, uint32(len(n.cold[port].cutBy)))
	b = binary.BigEndian.AppendUint32(b, uint32(e.Size))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Queued))
	b = binary.BigEndian.AppendUint32(b, uint32(e.Src))
	b = binary.BigEndian.AppendUint32(b, uint32(e.Dst))
	b = binary.BigEndian.AppendUint64(b, e.FlowHash)
	b = binary.BigEndian.AppendUint64(b, uint64(e.SentAt))
	b = binary.BigEndian.AppendUint64(b, uint64(e.Context))
	b = append(b, byte(e.ECN), e.Class, e.Hops, e.flags)
	b = binary.BigEndian.AppendUint16(b, e.SrcPort)
	b = binary.BigEndian.AppendUint16(b, e.Port)
	bits := bit(e.INT, bitINT) | bit(e.Tag.On, bitTag) | bit(e.Tag.CC, bitCC) | bit(e.Tag.mark, bitMark) |
		bit(e.next == corrupted, bitCorrupted) | bit(e.next == disordered, bitDisordered) | bit(isNote, bitNote)
	b = append(b, e.Keep, bits, byte(len(hops)))
	b = binary.BigEndian.AppendUint16(b, e.Tag.AR)
	b = append(b, 0, 0) // reserved
	for _, h := range hops {
		for _, v := range [...]int64{int64(h.At), int64(h.Sent), int64(h.Queued), int64(h.Rate)} {
			b = binary.BigEndian.AppendUint64(b, uint64(v))
		}
	}
	if isNote {
		b = append(b, byte(note.Type), bit(note.Last, 1))
		b = binary.BigEndian.AppendUint32(b, uint32(note.Src))
		b = binary.BigEndian.AppendUint32(b, uint32(note.Dst))
		b = binary.BigEndian.AppendUint16(b, note.SrcPort)
		b = binary.BigEndian.AppendUint32(b, uint32(note.Switch))
		b = binary.BigEndian.AppendUint64(b, uint64(note.At))
	}
	b = append(b, e.Header...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// newBox returns an empty box with the storage of b.
func newBox(b *box) box { return box{b.packets[:0], b.frames[:0], b.framed[:0], units.Never} }

// errRecord is a record that no part writes.
var errRecord = errors.New("fabric: a record that no part of this network writes")

// Import reads the complete records in b, which another part has exported, and returns the rest:
// the beginning of a record. It calls check with each packet and its arrival, and with nil for a
// pause. Nothing in b is trusted: after an error of Import or of check, which says that b did not
// come from a part of this network, nothing more is read. A header has maxHeader bytes at most.
func (p *Part) Import(
	from int, b []byte, maxHeader int, check func(e *Packet, at units.Time) error,
) (left []byte, err error) {
	for len(b) >= recordHead {
		size := binary.BigEndian.Uint32(b)
		if size < 1 || int64(size) > int64(MaxRecord(maxHeader)) {
			return b, fmt.Errorf("%w: %d bytes", errRecord, size)
		}
		if uint32(len(b)-4) < size {
			return b, nil
		}
		record := b[4 : 4+size]
		b = b[4+size:]
		switch record[0] {
		case recordPacket:
			err = p.importPacket(from, reader{b: record[1:]}, maxHeader, check)
		case recordPause:
			err = p.importPause(from, reader{b: record[1:]}, check)
		default:
			err = errRecord
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// reader takes fields off the front of a record. What it takes beyond the end is 0.
type reader struct {
	b     []byte
	short bool // more was taken than there is
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.short = true
		return make([]byte, n)
	}
	f := r.b[:n]
	r.b = r.b[n:]
	return f
}

func (r *reader) u8() byte    { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }

// maxInstant bounds instants in records, so that sums of a few do not overflow: 53 days.
const maxInstant = units.Never / 2

// time returns an instant or a duration. One out of range makes the record short.
func (r *reader) time() units.Time {
	t := r.u64()
	r.short = r.short || t > uint64(maxInstant)
	return units.Time(t)
}

// leads reports whether the link of a port leads from another part to this one.
func (p *Part) leads(port uint32, from int) bool {
	if int64(port) >= int64(len(p.net.ports)) || from == int(p.net.exchange.me) {
		return false
	}
	return int(p.all.owner[port]) == from && p.all.partition[p.net.ports[port].to] == p.net.exchange.me
}

// importPause reads a record of a pause.
func (p *Part) importPause(from int, r reader, check func(*Packet, units.Time) error) error {
	port, at, class, pause := r.u32(), r.time(), r.u8(), r.u8()
	n := p.net
	if r.short || len(r.b) > 0 || class >= Classes || pause > 1 || n.pfc == nil || int64(port) >= int64(len(n.ports)) ||
		p.all.owner[port] != n.exchange.me || int(p.all.partition[n.ports[port].to]) != from {
		return fmt.Errorf("%w: a pause", errRecord)
	}
	if err := check(nil, at); err != nil || n.cold[port].down {
		return err
	}
	n.pfc.expect(n, int32(port), frame{max(at, n.events.Last()), class, pause == 1})
	return nil
}

// importPacket reads a record of a packet, which may be late.
func (p *Part) importPacket(from int, r reader, maxHeader int, check func(*Packet, units.Time) error) error {
	n := p.net
	x := n.exchange.apart
	port, at, downs, size := r.u32(), r.time(), r.u32(), r.u32()
	e := n.Get()
	e.Queued, e.Src, e.Dst = r.time(), HostID(r.u32()), HostID(r.u32())
	e.FlowHash, e.SentAt, e.Context = r.u64(), r.time(), int64(r.u64())
	ecn, class, hops, flags := r.u8(), r.u8(), r.u8(), r.u8()
	e.SrcPort, e.Port, e.Keep = r.u16(), r.u16(), r.u8()
	bits, records := r.u8(), int(r.u8())
	e.Size, e.ECN, e.Class, e.Hops = units.Bytes(size), ECN(ecn), class, hops
	e.INT = bits&bitINT != 0
	e.Tag = Tag{On: bits&bitTag != 0, CC: bits&bitCC != 0, AR: r.u16(), mark: bits&bitMark != 0}
	reserved := r.u16()
	nodes := n.hosts() + len(n.names)
	bad := r.short || !p.leads(port, from) || size == 0 || size > math.MaxInt32 || ecn > byte(CE) || class >= Classes ||
		hops > maxHops || flags&asksINT != 0 != e.INT || flags&(passed|local) != 0 && n.stations == nil ||
		bits > bitsAll || bits&bitDisordered != 0 && (n.late == nil || bits&bitCorrupted != 0) || records > MaxHops ||
		records > 0 && !e.INT || reserved != 0 || e.Tag.On && n.ccm == nil ||
		flags&^(asksINT|passed|local|trimmed|trimmedLast) != 0 || flags&trimmed != 0 && (e.Keep == 0 || class != 0) ||
		int(e.Src) < 0 || int(e.Src) >= nodes || int(e.Dst) < 0 || int(e.Dst) >= n.routing.dests ||
		int(e.Dst) >= n.hosts() && bits&bitNote == 0 ||
		bits&bitNote != 0 != (n.ccm != nil && int(e.Src) >= n.hosts() && e.Port == 0)
	if !bad && e.INT {
		t := n.pool.record(e.number)
		t.n = records
		for i := range records {
			t.hops[i] = Hop{At: r.time(), Sent: units.Bytes(r.time())}
			t.hops[i].Queued, t.hops[i].Rate = units.Bytes(r.time()), units.Bandwidth(r.time())
		}
	}
	if !bad && bits&bitNote != 0 {
		note := Note{Type: NoteType(r.u8()), Last: r.u8() == 1, Src: HostID(r.u32()), Dst: HostID(r.u32()),
			SrcPort: r.u16(), Switch: NodeID(r.u32()), At: r.time()}
		bad = note.Type < NeedsCC || note.Type > NeedsPath || n.isHost(note.Switch) || int(note.Switch) >= nodes ||
			note.Src < 0 || int(note.Src) >= n.hosts() || note.Dst < 0 || int(note.Dst) >= n.hosts()
		*n.pool.note(e.number) = note
	}
	if bad || r.short || len(r.b) > maxHeader {
		n.Put(e)
		return fmt.Errorf("%w: a packet", errRecord)
	}
	e.Header, e.flags = append(e.Header[:0], r.b...), flags
	if err := check(e, at); err != nil {
		n.Put(e)
		return err
	}
	i := int32(port)
	x.in.Packets++
	x.in.Bytes += e.Size
	if t := &n.cold[i]; int(downs) < len(t.cutBy) { // the link has gone down since it left
		if !t.down {
			t.cutBy[len(t.cutBy)-1]++
		}
		n.cut(i, e)
		return nil
	}
	// a packet that is late arrives as soon as it can, and none overtakes another
	e.at = max(at, n.events.Last(), x.imported[i])
	x.imported[i] = e.at
	e.flow, e.ingress = uint32(splitmix.Mix(e.FlowHash)), int32(downs)
	switch {
	case bits&bitCorrupted != 0:
		e.next = corrupted
	case bits&bitDisordered != 0:
		e.next = disordered
	default:
		e.next = n.routing.next(n.ports[i].to, e)
	}
	flight := &n.exchange.arrivals[p.all.arrival[i]]
	if flight.push(e); flight.first == e {
		n.events.Set(n.PortEntity(int(i)), e.at)
	}
	return nil
}
