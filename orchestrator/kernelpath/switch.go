package kernelpath

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/nodeimg/boot"
	"weft/tc-shaping/bpf"
)

// routing is the present forwarding state of one switch. Its socket is in the switch's namespace,
// whatever thread uses it.
type routing struct {
	sw     *Switch
	net    *Network
	socket *nl.NetlinkSocket
	index  []int    // interface index of each of the switch's ports
	next   uint32   // ID of the next kernel object
	used   []uint32 // objects in use, groups first
	routes map[int]bool
	chosen bool // BPF programs choose among equal paths
}

// settings are written below /proc/sys/net in a switch's namespace before it has interfaces.
// Settings that the kernel lacks are skipped.
var settings = []struct{ name, value string }{
	{"ipv6/conf/all/disable_ipv6", "1"}, {"ipv6/conf/default/disable_ipv6", "1"}, // no traffic beyond the lab's
	{"ipv4/ip_forward", "1"},
	{"ipv4/conf/all/rp_filter", "0"}, {"ipv4/conf/default/rp_filter", "0"}, // forward and reverse paths may differ
	{"ipv4/conf/all/send_redirects", "0"}, {"ipv4/conf/default/send_redirects", "0"},
	{"ipv4/conf/all/arp_ignore", "1"},
	{"ipv4/fib_multipath_hash_policy", "1"}, // addresses, protocol and ports
	{"ipv4/fib_multipath_use_neigh", "0"},
}

// hashSeed is the file with a namespace's own seed, since Linux 6.11.
const hashSeed = "/proc/sys/net/ipv4/fib_multipath_hash_seed"

// Seeded reports whether the kernel lets each switch hash with a seed of its own.
func Seeded() bool {
	_, err := os.Stat(hashSeed)
	return err == nil
}

// prepare sets up the namespace of a switch, except for routes, which need next hops behind
// interfaces that are up at both ends. The calling thread must be in the namespace.
func prepare(n *Network, s int) (*routing, error) {
	sw := &n.Switches[s]
	for _, o := range settings {
		if err := os.WriteFile("/proc/sys/net/"+o.name, []byte(o.value), 0); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", sw.Name, err)
		}
	}
	if Seeded() {
		if err := os.WriteFile(hashSeed, []byte(strconv.FormatUint(max(1, sw.Seed>>32), 10)), 0); err != nil {
			return nil, fmt.Errorf("%s: %w", sw.Name, err)
		}
	}
	socket, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sw.Name, err)
	}
	r := &routing{sw: sw, net: n, socket: socket, next: 1, routes: map[int]bool{}}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"bridge of the rack", r.bridge},
		{"ports", func() error { return r.ports(n) }},
	} {
		if err := step.do(); err != nil {
			socket.Close()
			return nil, fmt.Errorf("%s: %s: %w", sw.Name, step.what, err)
		}
	}
	return r, nil
}

// upTime is how long to wait until the kernel sees both ends of all cables up, upPoll the interval
// between checks. Our own values: it usually takes milliseconds.
const (
	upTime = 10 * time.Second
	upPoll = 2 * time.Millisecond
)

// allUp waits until all interfaces of the calling thread's namespace are operational. Before that,
// bridges and queues drop packets.
func allUp() error {
	for deadline := time.Now().Add(upTime); ; {
		links, err := netlink.LinkList()
		if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return err
		}
		i := slices.IndexFunc(links, func(l netlink.Link) bool {
			return l.Type() == "veth" &&
				l.Attrs().OperState != netlink.OperUp
		})
		if i < 0 && err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("interface %s is not up after %v", links[max(i, 0)].Attrs().Name, upTime)
		}
		time.Sleep(upPoll)
	}
}

// Close closes the socket. The switch continues to forward.
func (r *routing) Close() { r.socket.Close() }

// bridge creates the bridge for the hosts, or assigns the address of a switch without hosts.
func (r *routing) bridge() error {
	own := &netlink.Addr{IPNet: single(r.sw.Addr)}
	if len(r.sw.Rack) == 0 {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.AddrAdd(lo, own)
	}
	snooping := false
	a := netlink.NewLinkAttrs()
	a.Name, a.HardwareAddr = Bridge, net.HardwareAddr(r.sw.MAC[:])
	bridge := &netlink.Bridge{LinkAttrs: a, MulticastSnooping: &snooping}
	if err := netlink.LinkAdd(bridge); err != nil {
		return err
	}
	for _, m := range r.sw.Rack {
		if err := r.member(bridge.Attrs().Index, m); err != nil {
			return err
		}
	}
	link, err := netlink.LinkByName(Bridge)
	if err != nil {
		return err
	}
	mtu := link.Attrs().MTU // smallest of its members
	if err := netlink.LinkSetMTU(link, mtu); err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, own); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, m := range r.sw.Rack {
		h := &r.net.Hosts[m.Host]
		if err := neighbour(link, h.Addr, h.MAC); err != nil {
			return err
		}
		to := &netlink.Route{LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: single(h.Addr),
			Src: r.sw.Addr.AsSlice()}
		if err := netlink.RouteReplace(to); err != nil {
			return fmt.Errorf("route to %s: %w", h.Name, err)
		}
	}
	return nil
}

// member attaches a host's cable to the bridge with a static forwarding entry, without learning or
// flooding.
func (r *routing) member(bridge int, m Member) error {
	link, err := netlink.LinkByName(m.Interface)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Interface, err)
	}
	if err := netlink.LinkSetMasterByIndex(link, bridge); err != nil {
		return fmt.Errorf("%s: %w", m.Interface, err)
	}
	if err := netlink.LinkSetLearning(link, false); err != nil {
		return fmt.Errorf("%s: %w", m.Interface, err)
	}
	if err := netlink.LinkSetFlood(link, false); err != nil {
		return fmt.Errorf("%s: %w", m.Interface, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("%s: %w", m.Interface, err)
	}
	mac := r.net.Hosts[m.Host].MAC
	err = netlink.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER,
		HardwareAddr: net.HardwareAddr(mac[:]),
	})
	if err != nil {
		return fmt.Errorf("%s: address of %s: %w", m.Interface, r.net.Hosts[m.Host].Name, err)
	}
	return nil
}

// plugAgain attaches a host's new cable in place of the old one.
func (r *routing) plugAgain(host int) error {
	bridge, err := netlink.LinkByName(Bridge)
	if err != nil {
		return err
	}
	for _, m := range r.sw.Rack {
		if m.Host == host {
			return r.member(bridge.Attrs().Index, m)
		}
	}
	return fmt.Errorf("host %d is not on the bridge of %s", host, r.sw.Name)
}

// ports brings up the interfaces to other switches, with permanent neighbour entries.
func (r *routing) ports(n *Network) error {
	for _, p := range r.sw.Ports {
		link, err := netlink.LinkByName(p.Interface)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Interface, err)
		}
		r.index = append(r.index, link.Attrs().Index)
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("%s: %w", p.Interface, err)
		}
		peer := &n.Switches[p.Peer]
		if err := neighbour(link, peer.Addr, peer.MAC); err != nil {
			return err
		}
	}
	return nil
}

// byMark routes packets by their marks: each mark has a rule and a table with one route. The
// calling thread must be in the namespace.
func (r *routing) byMark() error {
	for i, p := range r.sw.Ports {
		table := int(bpf.MarkOf(p.Port))
		to := &netlink.Route{Table: table, LinkIndex: r.index[i], Gw: p.Via.AsSlice(), Flags: int(netlink.FLAG_ONLINK),
			Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}
		if err := netlink.RouteAdd(to); err != nil {
			return fmt.Errorf("route of table %d over %s: %w", table, p.Interface, err)
		}
		rule := netlink.NewRule()
		rule.Family, rule.Mark, rule.Table = netlink.FAMILY_V4, uint32(table), table
		if err := netlink.RuleAdd(rule); err != nil {
			return fmt.Errorf("rule for mark %d: %w", table, err)
		}
	}
	return nil
}

// install replaces the switch's forwarding tables. No packet in flight is lost: new next hops exist
// before old ones are removed.
func (r *routing) install(groups [][]int, routes []Route) error {
	old := r.used
	r.used = nil
	ids := make([]uint32, len(groups))
	for g, paths := range groups {
		var err error
		if ids[g], err = r.nextHop(paths); err != nil {
			return err
		}
	}
	now := make(map[int]bool, len(routes))
	for _, to := range routes {
		if err := r.to(r.net.AddrOf(to.To), ids[to.Group]); err != nil {
			return err
		}
		now[to.To] = true
	}
	for to := range r.routes {
		if !now[to] {
			if err := r.to(r.net.AddrOf(to), 0); err != nil {
				return err
			}
		}
	}
	r.routes = now
	for _, id := range old {
		if err := r.remove(id); err != nil {
			return fmt.Errorf("next hop %d: %w", id, err)
		}
	}
	return nil
}

// nextHop creates a next hop, or a group if there are several paths, and returns its ID; 0 without
// any path.
func (r *routing) nextHop(paths []int) (uint32, error) {
	if len(paths) == 0 {
		return 0, nil
	}
	var members []uint32
	for _, w := range r.sw.Shares(paths, r.chosen) {
		h := hop{id: r.next, index: r.index[w], via: r.sw.Ports[w].Via}
		if err := r.add(h); err != nil {
			return 0, err
		}
		members = append(members, r.next)
		r.next++
	}
	if len(members) == 1 {
		r.used = append(r.used, members[0])
		return members[0], nil
	}
	id := r.next
	r.next++
	if err := r.group(id, members); err != nil {
		return 0, err
	}
	r.used = append(append(r.used, id), members...)
	return id, nil
}

// neighbour adds a permanent neighbour entry, so that no ARP is needed.
func neighbour(l netlink.Link, a netip.Addr, mac boot.MAC) error {
	err := netlink.NeighSet(&netlink.Neigh{
		LinkIndex: l.Attrs().Index, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT, IP: a.AsSlice(),
		HardwareAddr: net.HardwareAddr(mac[:]),
	})
	if err != nil {
		return fmt.Errorf("%s: neighbour %v: %w", l.Attrs().Name, a, err)
	}
	return nil
}

// single returns the prefix that contains one address.
func single(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
}
