package host

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"weft/transport"
	"weft/units"
)

// use is how one item uses a connection. Items share connections, so the tag of a message counts
// all messages that the connection may carry: first those of earlier items, then those of earlier
// repetitions, then the op's own tag. Both ends have the same items on a connection, in the same
// order, and so agree on base. The ID of a message equals its tag.
type use struct {
	run  int32  // index of the item in Host.runs
	peer int32  // rank at the other end
	lane int32  // see Peer
	link int32  // index in Host.out or Host.in
	base uint32 // tag of the item's first message

	flow int32 // first element of work.flows of a connection that ends here; -1: none
}

// outLink is a connection that starts here.
type outLink struct {
	conn transport.ConnID
	dst  transport.HostID
	uses []use      // in order of items
	sent []outbound // from first on not acknowledged, in the order of sending

	first int
}

// outbound is a message that was handed to the transport and is not acknowledged.
type outbound struct {
	id     uint32
	run    int32
	op     int32
	repeat int32
	part   int32      // index of the part of a message in parts, otherwise 0
	start  units.Time // when it was handed to the transport
}

// inLink is a connection that ends here.
type inLink struct {
	conn    transport.ConnID
	src     transport.HostID
	got     units.Bytes `state:"count"` // bytes of all messages that have arrived
	arrived `state:"-"`
}

// arrived is the message that arrives on a connection, and which may follow.
type arrived struct {
	uses []use       // in order of items
	last *inbound    // nil: none, or it is complete
	tag  uint32      // tag of last on this connection
	off  units.Bytes // offset in last of the part that arrives by this connection
	size units.Bytes // size of that part
}

// find returns the index in sent of a message that is not acknowledged, or -1.
func (l *outLink) find(id uint32) int {
	for i := l.first; i < len(l.sent); i++ {
		if l.sent[i].id == id {
			return i
		}
	}
	return -1
}

// take returns element i of sent, which is acknowledged, and removes it.
func (l *outLink) take(i int) outbound {
	m := l.sent[i]
	copy(l.sent[l.first+1:i+1], l.sent[l.first:i]) // usually nothing: i is first
	if l.first++; 2*l.first >= len(l.sent) {
		l.sent = l.sent[:copy(l.sent, l.sent[l.first:])]
		l.first = 0
	}
	return m
}

// outTo returns the connection that starts here and its index, or nil.
func (h *Host) outTo(c transport.ConnID) (*outLink, int32) {
	i := sort.Search(len(h.out), func(i int) bool { return h.out[i].conn >= c })
	if i == len(h.out) || h.out[i].conn != c {
		return nil, 0
	}
	return &h.out[i], int32(i)
}

// inFrom returns the connection that ends here and its index, or nil.
func (h *Host) inFrom(c transport.ConnID) (*inLink, int32) {
	i := sort.Search(len(h.in), func(i int) bool { return h.in[i].conn >= c })
	if i == len(h.in) || h.in[i].conn != c {
		return nil, 0
	}
	return &h.in[i], int32(i)
}

// connect makes a link of every connection of the plan and opens it at the endpoint.
func (h *Host) connect() error {
	for i := range h.plan.Conns {
		s := &h.plan.Conns[i]
		if err := h.endpoint.Open(*s); err != nil {
			return err
		}
		if s.Src == h.plan.Host {
			h.out = append(h.out, outLink{conn: s.ID, dst: s.Dst})
		} else {
			h.in = append(h.in, inLink{conn: s.ID, src: s.Src})
		}
	}
	slices.SortFunc(h.out, func(a, b outLink) int { return int(int64(a.conn) - int64(b.conn)) })
	slices.SortFunc(h.in, func(a, b inLink) int { return int(int64(a.conn) - int64(b.conn)) })
	return nil
}

// assignTags gives an item its range of tags on every connection that it uses.
func (h *Host) assignTags(i int32) error {
	item := h.runs[i].item
	for _, p := range item.Conns {
		l, at := h.outTo(p.Conn)
		if l == nil {
			return fmt.Errorf("connection %d to rank %d does not begin here", p.Conn, p.Rank)
		}
		u := use{run: i, peer: int32(p.Rank), lane: int32(p.Lane), link: at, flow: -1}
		if err := h.join(&l.uses, u, l.dst); err != nil {
			return fmt.Errorf("connection %d to rank %d %w", p.Conn, p.Rank, err)
		}
	}
	for _, p := range item.Expect {
		l, at := h.inFrom(p.Conn)
		if l == nil {
			return fmt.Errorf("connection %d from rank %d does not end here", p.Conn, p.Rank)
		}
		u := use{run: i, peer: int32(p.Rank), lane: int32(p.Lane), link: at, flow: -1}
		if err := h.join(&l.uses, u, l.src); err != nil {
			return fmt.Errorf("connection %d from rank %d %w", p.Conn, p.Rank, err)
		}
	}
	return nil
}

// join adds a use to those of a connection. host is at the other end.
func (h *Host) join(uses *[]use, u use, host transport.HostID) error {
	r := &h.runs[u.run]
	if ranks := r.item.Ranks; u.peer < 0 || int(u.peer) >= len(ranks) || ranks[u.peer] != host {
		return fmt.Errorf("leads to host %d, which is not that rank", host)
	}
	var base uint64
	if n := len(*uses); n > 0 {
		last := (*uses)[n-1]
		if last.run == u.run {
			return errors.New("is listed twice")
		}
		base = uint64(last.base) + h.runs[last.run].span()
	}
	if base+r.span() > math.MaxUint32 {
		return errors.New("would carry more than 2^32 messages")
	}
	u.base = uint32(base)
	*uses = append(*uses, u)
	return nil
}

// owner returns the use to which a tag belongs, with the repetition and the tag of the op, or nil.
func (h *Host) owner(uses []use, tag uint32) (u *use, repeat int, op uint32) {
	i := sort.Search(len(uses), func(i int) bool { return uses[i].base > tag }) - 1
	if i < 0 {
		return nil, 0, 0
	}
	u = &uses[i]
	r := &h.runs[u.run]
	rel := tag - u.base
	if uint64(rel) >= r.span() {
		return nil, 0, 0
	}
	return u, int(rel / r.tags), rel % r.tags
}
