package fabric

import "weft/units"

// exchange is what one partition has for dealing with the others. Its zero value is that of a network in
// one piece.
type exchange struct {
	all      *Partitions // nil: the network is in one piece
	me       int32       // which partition this is
	arrivals []list      // packets on links from other partitions
	boxes    [2][]box    // by turn and partition: posted, not taken
	posted   [2][]int32  // by turn: partitions with something in their box
	backlog  []int32     // ports of remote links in which packets wait
}

// link tells where the link of a port leads.
type link uint8

const (
	within     link = iota // to a node of the same partition
	remote                 // to one of another partition
	backlogged             // likewise, and the port is in the backlog
)

// posted is a packet on the link of a port, and where that leads.
type posted struct {
	packet *Packet
	port   int32
	to     NodeID
}

// box is what one partition has posted to another in one turn.
type box struct {
	packets []posted
	frames  []frame
	framed  []int32 // by frame: the port it is for
	first   units.Time
}

func newExchange(all *Partitions, me, arrivals int) exchange {
	x := exchange{all: all, me: int32(me), arrivals: make([]list, arrivals)}
	for turn := range x.boxes {
		x.boxes[turn] = make([]box, len(all.all))
		for i := range x.boxes[turn] {
			x.boxes[turn][i].first = units.Never
		}
	}
	return x
}

// owns tells whether a node belongs to this partition.
func (x *exchange) owns(node NodeID) bool { return x.all == nil || x.all.partition[node] == x.me }

// box returns where this partition posts to another in this turn.
func (x *exchange) box(to int32) *box {
	b := &x.boxes[x.all.turn][to]
	if len(b.packets)+len(b.framed) == 0 {
		x.posted[x.all.turn] = append(x.posted[x.all.turn], to)
	}
	return b
}

// post puts e, which has started on the link of o, into the box of the partition at its far end.
func (x *exchange) post(i int32, o *port, e *Packet) {
	b := x.box(x.all.partition[o.to])
	b.packets = append(b.packets, posted{e, i, o.to})
	b.first = min(b.first, e.at)
}

// postFrame posts a pause or resume to the partition that owns port i.
func (x *exchange) postFrame(i int32, f frame) {
	b := x.box(x.all.owner[i])
	b.frames, b.framed = append(b.frames, f), append(b.framed, i)
	b.first = min(b.first, f.at)
}

// remember puts the port of a remote link in which packets wait on the backlog: nothing arrives in this
// partition that would have it looked at.
func (x *exchange) remember(o *port) {
	if o.link == remote {
		o.link = backlogged
		x.backlog = append(x.backlog, o.index)
	}
}

// arrive handles the first packet on the remote link of port i, which has reached this partition.
func (x *exchange) arrive(n *Network, now units.Time, i int32) {
	r := &x.arrivals[x.all.arrival[i]]
	e := r.pop()
	if !r.empty() {
		n.events.Set(n.PortEntity(int(i)), e.then)
	}
	n.arrive(now, i, e)
}

// take is Partitions.Take.
func (x *exchange) take(n *Network) {
	for _, from := range x.all.all {
		b := &from.exchange.boxes[1-x.all.turn][x.me]
		for _, k := range b.packets {
			e, r := k.packet, &x.arrivals[x.all.arrival[k.port]]
			if e.next == undecided {
				e.next = n.routing.next(k.to, e)
			}
			if r.push(e); r.first == e {
				n.events.Set(n.PortEntity(int(k.port)), e.at)
			}
		}
		for k, i := range b.framed {
			n.pfc.expect(n, i, b.frames[k])
		}
		*b = box{b.packets[:0], b.frames[:0], b.framed[:0], units.Never}
	}
}

// flush is Partitions.Flush.
func (x *exchange) flush(n *Network, horizon units.Time) (next units.Time) {
	next = units.Never
	rest := x.backlog[:0]
	for _, i := range x.backlog {
		o := &n.ports[i]
		if o.waiting > 0 {
			o.advance(n, horizon)
		}
		if o.waiting == 0 {
			o.link = remote
			continue
		}
		rest = append(rest, i)
		if o.pick() != nil {
			next = min(next, o.freeAt)
		}
	}
	x.backlog = rest
	return next
}

// unpost cuts off what has been posted in this turn on the link of o, and the frames to it.
func (x *exchange) unpost(n *Network, o *port) {
	b := &x.boxes[x.all.turn][x.all.partition[o.to]]
	kept := 0
	for _, k := range b.packets {
		if k.port == o.index {
			n.cut(o.index, k.packet)
			continue
		}
		b.packets[kept] = k
		kept++
	}
	b.packets = b.packets[:kept]
	far := x.all.all[x.all.partition[o.to]]
	b, kept = &far.exchange.boxes[x.all.turn][x.me], 0
	for k := range b.frames {
		if b.framed[k] != o.index {
			b.frames[kept], b.framed[kept] = b.frames[k], b.framed[k]
			kept++
		}
	}
	b.frames, b.framed = b.frames[:kept], b.framed[:kept]
}

// lastPosted returns when the last packet that was posted on the link of o in this turn arrives, and whether
// there is one.
func (x *exchange) lastPosted(o *port) (at units.Time, ok bool) {
	for _, k := range x.boxes[x.all.turn][x.all.partition[o.to]].packets {
		if k.port == o.index {
			at, ok = max(at, k.packet.at), true
		}
	}
	return at, ok
}

// waiting counts what this partition has posted and others have not taken yet.
func (x *exchange) waiting() (packets int64, bytes units.Bytes) {
	for turn := range x.boxes {
		for i := range x.boxes[turn] {
			for _, posted := range x.boxes[turn][i].packets {
				packets++
				bytes += posted.packet.Size
			}
		}
	}
	return packets, bytes
}

// whole returns the network as each partition sees it.
func (n *Network) whole() []*Network {
	if n.exchange.all == nil {
		return []*Network{n}
	}
	return n.exchange.all.all
}

// of returns the network of the partition that owns a port.
func (n *Network) of(port int32) *Network {
	if n.exchange.all == nil {
		return n
	}
	return n.exchange.all.all[n.exchange.all.owner[port]]
}
