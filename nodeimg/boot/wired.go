package boot

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/units"
)

// Wired is a cable between two nodes that the orchestrator makes: a veth pair, with no descriptor.
const Wired LinkKind = "veth"

// KindPlugged tells a node that its cable is in place.
const KindPlugged = "plugged"

// Cable is a veth pair between two nodes of a lab.
type Cable struct {
	A   CableEnd    `json:"a"`
	B   CableEnd    `json:"b"`
	MTU units.Bytes `json:"mtu"` // largest IP packet
}

// CableEnd is an interface of a node.
type CableEnd struct {
	Node      string `json:"node"`
	Interface string `json:"interface"`
	MAC       MAC    `json:"mac"`
	Queue     int    `json:"queue"`           // frames that it holds before it drops
	Index     int    `json:"index,omitempty"` // of the interface in its namespace, at end A; 0: the next
}

// Plug makes a cable, with end A in the network namespace of the calling thread, which must be
// locked to it, and end B in that of a descriptor. Neither end is up, and offloads are off at A.
func Plug(c *Cable, b int) error {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU, a.TxQLen, a.HardwareAddr = c.A.Interface, int(c.MTU), c.A.Queue, net.HardwareAddr(c.A.MAC[:])
	a.Index = c.A.Index
	pair := &netlink.Veth{
		LinkAttrs: a, PeerName: c.B.Interface, PeerHardwareAddr: net.HardwareAddr(c.B.MAC[:]),
		PeerNamespace: netlink.NsFd(b), PeerMTU: uint32(c.MTU), PeerTxQLen: c.B.Queue,
	}
	// of a node that has ended: the kernel removes it with delay
	if old, err := netlink.LinkByName(c.A.Interface); err == nil {
		if err := netlink.LinkDel(old); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("old cable from %s to %s: %w", c.A.Node, c.B.Node, err)
		}
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("cable from %s to %s: %w", c.A.Node, c.B.Node, err)
	}
	return PlainFrames(c.A.Interface)
}

// PlainFrames makes an interface of the calling thread's network namespace send and receive single
// packets with their checksums filled in. An offloaded segment of 64 KB would be one packet to
// every queue.
func PlainFrames(name string) error { return plainFrames(name) }

// plugged asks for the node's cable and waits for it.
func plugged(conn *control.Conn, s *NodeSpec) error {
	if err := conn.SendValue(KindLink, Link{Node: s.Name, Kind: Wired, FD: -1}); err != nil {
		return err
	}
	if _, err := conn.Expect(KindPlugged, nil); err != nil {
		return err
	}
	_, err := s.network()
	return err
}

// A Gateway is a host's next hop to all destinations but its neighbours.
type Gateway struct {
	Addr netip.Addr   `json:"addr"`
	MAC  MAC          `json:"mac"`
	Net  netip.Prefix `json:"net"` // subnet behind it
}

// Neighbours returns the permanent neighbours of the node: its peers and its gateway.
func (s *NodeSpec) Neighbours() []Peer {
	if s.Gateway == nil {
		return s.Peers
	}
	return append(slices.Clone(s.Peers), Peer{s.Gateway.Addr, s.Gateway.MAC})
}

// Route is a route of the node over its interface.
type Route struct {
	To  netip.Prefix
	Via netip.Addr // the zero Addr: directly
}

// Routes returns the routes of a node with a gateway, whose own prefix holds nobody else. The first
// lead to the gateway and to the peers, the last through the gateway to all others.
func (s *NodeSpec) Routes() []Route {
	if s.Gateway == nil {
		return nil
	}
	direct := func(a netip.Addr) Route { return Route{To: netip.PrefixFrom(a, a.BitLen())} }
	all := []Route{direct(s.Gateway.Addr)}
	for _, p := range s.Peers {
		all = append(all, direct(p.Addr))
	}
	return append(all, Route{To: s.Gateway.Net.Masked(), Via: s.Gateway.Addr})
}

// setRoute returns the setting of a route of the node.
func (s *NodeSpec) setRoute(eth *Device, r Route, property string) Setting {
	return eth.Set(property, "add routes", func(l netlink.Link) error {
		to := &netlink.Route{
			LinkIndex: l.Attrs().Index, Src: s.Addr.Addr().AsSlice(), Scope: netlink.SCOPE_LINK, Dst: ipNet(r.To),
		}
		if r.Via.IsValid() {
			to.Gw, to.Scope = r.Via.AsSlice(), netlink.SCOPE_UNIVERSE
		}
		setTCP(to, s.TCP)
		if s.Gateway == nil {
			to.Protocol = unix.RTPROT_KERNEL
		}
		if err := netlink.RouteReplace(to); err != nil {
			return fmt.Errorf("route to %v: %w", r.To, explainTCP(s.TCP, err))
		}
		return nil
	})
}

// Hold runs a switch that is a node: its kernel does everything, and the process keeps its
// namespaces alive. It returns when the orchestrator ends it or is gone.
func Hold(conn *control.Conn) error {
	for {
		if _, _, err := conn.Recv(); err != nil {
			return nil // the usual end
		}
	}
}

// close closes the descriptor of a link that has one.
func (l *Link) close() {
	if l.FD >= 0 {
		unix.Close(l.FD)
	}
}
