package fabric

import "weft/units"

// exchange is the state by which a partition communicates with the others. The zero value is that
// of a network in one piece.
type exchange struct {
	all      *Partitions // nil: the network is in one piece
	me       int32       // number of this partition
	arrivals []list      // packets on links from other partitions, by Partitions.arrival
	boxes    [2][]box    // by turn and partition: posted there and not taken
	posted   [2][]int32  // by turn: partitions to which something was posted
	senders  []*Network  // partitions that posted something in the last turn that is not taken
	backlog  []int32     // ports of remote links in which packets wait
	own      []int32     // ports of this partition
	apart    *apart      // nil: the other partitions are in this process
}

// farEnd is where the link of a port leads.
type farEnd uint8

const (
	within     farEnd = iota // to a node of the same partition
	remote                   // to another partition
	backlogged               // to another partition, and the port is in the backlog
)

// posted is a packet on the link of a port, and the node at its far end.
type posted struct {
	packet *Packet
	port   int32
	to     NodeID
}

// box holds the packets and pauses that one partition has posted to another in one turn.
type box struct {
	packets []posted
	frames  []frame
	framed  []int32 // by element of frames: its port
	// first is the earliest instant at which any of it takes effect.
	first units.Time
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

// owns reports whether a node belongs to this partition.
func (x *exchange) owns(node NodeID) bool { return x.all == nil || x.all.partition[node] == x.me }

// box returns the box for another partition in this turn, and notes that it is in use.
func (x *exchange) box(to int32) *box {
	b := &x.boxes[x.all.turn][to]
	if len(b.packets)+len(b.framed) == 0 {
		x.posted[x.all.turn] = append(x.posted[x.all.turn], to)
	}
	return b
}

// post posts e, whose transmission on the link of o has started, to the partition at the far end.
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

// remember adds a port with a remote link and waiting packets to the backlog. Otherwise nothing
// would look at it, because the arrivals of its link fire in another partition.
func (x *exchange) remember(o *port) {
	if o.farEnd == remote {
		o.farEnd = backlogged
		x.backlog = append(x.backlog, o.index)
	}
}

// arrive handles the first packet on the remote link of port i, which has arrived in this
// partition.
func (x *exchange) arrive(n *Network, now units.Time, i int32) {
	r := &x.arrivals[x.all.arrival[i]]
	e := r.pop()
	if !r.empty() {
		r.first.prefetch(false)
		n.events.Set(n.PortEntity(int(i)), e.behindAt)
	}
	n.arrive(now, i, e)
}

// take implements Partitions.Take.
func (x *exchange) take(n *Network) {
	for _, from := range x.senders {
		b := &from.exchange.boxes[1-x.all.turn][x.me]
		x.prefetchPosted(n, b.packets)
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
		*b = newBox(b)
	}
	x.senders = x.senders[:0]
}

// flush implements Partitions.Flush.
func (x *exchange) flush(n *Network, horizon units.Time) (next units.Time) {
	next = units.Never
	rest := x.backlog[:0]
	for _, i := range x.backlog {
		o := &n.ports[i]
		if o.waiting > 0 {
			o.advance(n, horizon)
		}
		if o.waiting == 0 {
			o.farEnd = remote
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

// unpost cuts off the packets posted in this turn on the link of o, and drops the frames posted to
// o.
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

// lastPosted returns when the last packet posted on the link of o in this turn arrives. ok is false
// if there is none.
func (x *exchange) lastPosted(o *port) (at units.Time, ok bool) {
	for _, k := range x.boxes[x.all.turn][x.all.partition[o.to]].packets {
		if k.port == o.index {
			at, ok = max(at, k.packet.at), true
		}
	}
	if x.apart != nil && !ok {
		at = x.apart.exported[o.index]
		ok = at > x.all.all[x.me].events.Last()
	}
	return at, ok
}

// waiting returns what this partition has posted and others have not taken.
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

// of returns the network as the partition that owns a port sees it.
func (n *Network) of(port int32) *Network {
	if n.exchange.all == nil {
		return n
	}
	return n.exchange.all.all[n.exchange.all.owner[port]]
}
