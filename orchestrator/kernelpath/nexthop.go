package kernelpath

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// This file adds next hops as kernel objects, which package netlink lacks. All routes over a group
// of next hops share it, and replacing the group changes them all in one step.

// Constants of linux/nexthop.h and linux/rtnetlink.h.
const (
	nhaID      = 1
	nhaGroup   = 2
	nhaOIF     = 5
	nhaGateway = 6
	rtaNHID    = 30
)

// hop is a next hop: a neighbour behind an interface.
type hop struct {
	id    uint32
	index int // of the interface
	via   netip.Addr
}

// nhmsg is struct nhmsg of linux/nexthop.h.
type nhmsg struct {
	family   uint8
	protocol uint8
	flags    uint32
}

func (m *nhmsg) Len() int { return 8 }

func (m *nhmsg) Serialize() []byte {
	b := make([]byte, m.Len())
	b[0], b[2] = m.family, m.protocol
	binary.NativeEndian.PutUint32(b[4:], m.flags)
	return b
}

// request returns an acknowledged request on a namespace's routing socket.
func (r *routing) request(kind, flags int) *nl.NetlinkRequest {
	q := nl.NewNetlinkRequest(kind, flags|unix.NLM_F_ACK)
	q.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: r.socket}}
	return q
}

func do(q *nl.NetlinkRequest) error {
	_, err := q.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// add creates a next hop. The neighbour counts as reachable over the interface whatever the
// interface's addresses are (RTNH_F_ONLINK).
func (r *routing) add(h hop) error {
	q := r.request(unix.RTM_NEWNEXTHOP, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	q.AddData(&nhmsg{family: unix.AF_INET, protocol: unix.RTPROT_STATIC, flags: unix.RTNH_F_ONLINK})
	q.AddData(nl.NewRtAttr(nhaID, nl.Uint32Attr(h.id)))
	q.AddData(nl.NewRtAttr(nhaOIF, nl.Uint32Attr(uint32(h.index))))
	q.AddData(nl.NewRtAttr(nhaGateway, h.via.AsSlice()))
	if err := do(q); err != nil {
		return fmt.Errorf("next hop %v: %w", h.via, err)
	}
	return nil
}

// group creates a group of next hops of equal weight. They share the hash's range in the given
// order.
func (r *routing) group(id uint32, members []uint32) error {
	const entry = 8 // struct nexthop_grp: id, weight minus 1
	b := make([]byte, 0, entry*len(members))
	for _, m := range members {
		b = binary.NativeEndian.AppendUint32(b, m)
		b = append(b, 0, 0, 0, 0)
	}
	q := r.request(unix.RTM_NEWNEXTHOP, unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	q.AddData(&nhmsg{family: unix.AF_UNSPEC, protocol: unix.RTPROT_STATIC})
	q.AddData(nl.NewRtAttr(nhaID, nl.Uint32Attr(id)))
	q.AddData(nl.NewRtAttr(nhaGroup, b))
	if err := do(q); err != nil {
		return fmt.Errorf("group of %d next hops: %w", len(members), err)
	}
	return nil
}

// remove deletes a next hop or a group.
func (r *routing) remove(id uint32) error {
	q := r.request(unix.RTM_DELNEXTHOP, 0)
	q.AddData(&nhmsg{family: unix.AF_UNSPEC})
	q.AddData(nl.NewRtAttr(nhaID, nl.Uint32Attr(id)))
	return do(q)
}

// to routes packets for one address over a next hop or a group, replacing the earlier route. With
// id 0 they are not forwarded any more.
func (r *routing) to(a netip.Addr, id uint32) error {
	kind, flags := unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE
	m := nl.NewRtMsg()
	m.Family, m.Dst_len, m.Protocol = unix.AF_INET, 32, unix.RTPROT_STATIC
	if id == 0 {
		kind, flags = unix.RTM_DELROUTE, 0
		m = nl.NewRtDelMsg()
		m.Family, m.Dst_len = unix.AF_INET, 32
	}
	q := r.request(kind, flags)
	q.AddData(m)
	q.AddData(nl.NewRtAttr(unix.RTA_DST, a.AsSlice()))
	if id != 0 {
		q.AddData(nl.NewRtAttr(rtaNHID, nl.Uint32Attr(id)))
	}
	if err := do(q); err != nil {
		return fmt.Errorf("route to %v: %w", a, err)
	}
	return nil
}
