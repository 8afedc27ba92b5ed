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
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"weft/internal/plural"
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
func prepare(n *Network, s int, chosen bool) (*routing, error) {
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
	r := newRouting(n, s, chosen)
	r.socket = socket
	if err := boot.Apply(slices.Concat(r.bridge(), r.ports())); err != nil {
		socket.Close()
		return nil, fmt.Errorf("%s: %w", sw.Name, err)
	}
	return r, nil
}

// newRouting returns the routing of a switch that has nothing yet.
func newRouting(n *Network, s int, chosen bool) *routing {
	return &routing{sw: &n.Switches[s], net: n, next: 1, routes: map[int]bool{}, chosen: chosen}
}

// MakeBridge is the kind of the step that makes a switch's bridge.
const MakeBridge boot.StepKind = "make-bridge"

// Steps returns the steps that make a node a switch. chosen says that BPF programs choose among its
// ports. They are what weft plan lists: who carries them out first takes the bridges and ports of
// all switches, and their routes once all cables are up.
func (n *Network) Steps(s int, chosen bool) (all []boot.Step) {
	r, sw := newRouting(n, s, chosen), &n.Switches[s]
	const undo = "goes with the node"
	rest := []boot.Setting{(&boot.Device{Node: sw.Name, Name: "lo"}).With("up")} // the node did that
	if len(sw.Rack) > 0 {
		do := fmt.Sprintf("make the bridge %s of %s, which learns and floods nothing", Bridge,
			plural.Count(len(sw.Rack), "host"))
		all = append(all, boot.Step{Kind: MakeBridge, Do: do, Undo: undo, Settings: append(rest, r.bridge()...)})
		if len(sw.Ports) == 0 {
			return all
		}
		rest = nil
	} else {
		rest = append(rest, r.bridge()...)
	}
	to := plural.Count(len(sw.Routes), "host")
	if slices.ContainsFunc(sw.Routes, func(r Route) bool { return r.To >= len(n.Hosts) }) {
		to = plural.Count(len(sw.Routes), "node")
	}
	do := fmt.Sprintf("route to %s by groups of next hops, chosen by addresses and ports", to)
	if chosen {
		do += fmt.Sprintf("; for BPF programs, which choose as the simulator does, route by the marks of %s",
			plural.Count(len(sw.Ports), "port"))
	}
	step := boot.Step{Kind: boot.AddRoutes, Do: do, Undo: undo,
		Settings: slices.Concat(rest, r.ports(), r.forwarding(sw.Groups, sw.Routes))}
	if len(all) > 0 {
		step.After = []boot.StepKind{MakeBridge}
	}
	return append(all, step)
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

// bridge returns the settings of the bridge for the hosts, or of the address of a switch without
// hosts.
func (r *routing) bridge() (all []boot.Setting) {
	own := netip.PrefixFrom(r.sw.Addr, r.sw.Addr.BitLen())
	if len(r.sw.Rack) == 0 {
		return []boot.Setting{(&boot.Device{Node: r.sw.Name, Name: "lo"}).Addr(own)}
	}
	bridge := &boot.Device{Node: r.sw.Name, Name: Bridge}
	all = append(all, bridge.Make("bridge", func() error {
		snooping := false
		a := netlink.NewLinkAttrs()
		a.Name, a.HardwareAddr = Bridge, net.HardwareAddr(r.sw.MAC[:])
		return netlink.LinkAdd(&netlink.Bridge{LinkAttrs: a, MulticastSnooping: &snooping})
	}), bridge.MTU(r.net.Cables[0].MTU), bridge.With(fmt.Sprintf("link/ether %v", r.sw.MAC)), bridge.Addr(own),
		bridge.Up())
	for _, m := range r.sw.Rack {
		port, h := &boot.Device{Node: r.sw.Name, Name: m.Interface}, &r.net.Hosts[m.Host]
		to := netip.PrefixFrom(h.Addr, h.Addr.BitLen())
		all = append(all,
			port.Set("master "+Bridge, "attach to "+Bridge, func(link netlink.Link) error {
				return r.member(bridge, link, m)
			}),
			port.With("up"),
			bridge.Set(fmt.Sprintf("route %v", to), "route to "+h.Name, func(link netlink.Link) error {
				return netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Scope: netlink.SCOPE_LINK,
					Dst: single(h.Addr), Src: r.sw.Addr.AsSlice()})
			}),
			bridge.Neighbour(boot.Peer{Addr: h.Addr, MAC: h.MAC}))
	}
	return all
}

// member attaches a host's cable to the bridge, and sets it up, with a static forwarding entry,
// without learning or flooding.
func (r *routing) member(bridge *boot.Device, link netlink.Link, m Member) error {
	to, err := bridge.Link()
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMasterByIndex(link, to.Attrs().Index); err != nil {
		return err
	}
	if err := netlink.LinkSetLearning(link, false); err != nil {
		return err
	}
	if err := netlink.LinkSetFlood(link, false); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	mac := r.net.Hosts[m.Host].MAC
	err = netlink.NeighSet(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER,
		HardwareAddr: net.HardwareAddr(mac[:]),
	})
	if err != nil {
		return fmt.Errorf("address of %s: %w", r.net.Hosts[m.Host].Name, err)
	}
	return nil
}

// plugAgain attaches a host's new cable in place of the old one.
func (r *routing) plugAgain(host int) error {
	i := slices.IndexFunc(r.sw.Rack, func(m Member) bool { return m.Host == host })
	link, err := netlink.LinkByName(r.sw.Rack[i].Interface)
	if err != nil {
		return fmt.Errorf("%s: %w", r.sw.Rack[i].Interface, err)
	}
	return r.member(&boot.Device{Name: Bridge}, link, r.sw.Rack[i])
}

// ports returns the settings of the interfaces to other switches: up, with permanent neighbours.
func (r *routing) ports() (all []boot.Setting) {
	for _, p := range r.sw.Ports {
		d, peer := &boot.Device{Node: r.sw.Name, Name: p.Interface}, &r.net.Switches[p.Peer]
		all = append(all, d.Set("up", "set up", func(link netlink.Link) error {
			r.index = append(r.index, link.Attrs().Index)
			return netlink.LinkSetUp(link)
		}), d.Neighbour(boot.Peer{Addr: p.Via, MAC: peer.MAC}))
	}
	return all
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
	if err := boot.Apply(r.forwarding(groups, routes)); err != nil {
		return err
	}
	now := make(map[int]bool, len(routes))
	for _, to := range routes {
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

// forwarding returns the settings of the routes over groups of equal paths, which are made first.
func (r *routing) forwarding(groups [][]int, routes []Route) []boot.Setting {
	ids := make([]uint32, len(groups))
	node := &boot.Device{Node: r.sw.Name}
	all := []boot.Setting{node.Make("", func() (err error) {
		for g, paths := range groups {
			if ids[g], err = r.nextHop(paths); err != nil {
				return err
			}
		}
		return nil
	})}
	for _, to := range routes {
		all = append(all, node.Make(r.describe(r.net.AddrOf(to.To), groups[to.Group]), func() error {
			return r.to(r.net.AddrOf(to.To), ids[to.Group])
		}))
	}
	return all
}

// describe describes the route to an address over equally good next hops, given as indices in
// Ports, with the number of shares of each: "route 10.0.0.3/32 by 16 of s1, 16 of s2".
func (r *routing) describe(to netip.Addr, hops []int) string {
	if len(hops) == 1 {
		p := &r.sw.Ports[hops[0]]
		return fmt.Sprintf("%s route %v/32 via %v", p.Interface, to, p.Via)
	}
	count := map[int]int{}
	for _, hop := range r.sw.Shares(hops, r.chosen) {
		count[hop]++
	}
	all := make([]string, len(hops))
	for i, hop := range hops {
		all[i] = fmt.Sprintf("%d of %s", count[hop], r.sw.Ports[hop].Interface)
	}
	return fmt.Sprintf("route %v/32 by %s", to, strings.Join(all, ", "))
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

// single returns the prefix that contains one address.
func single(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(32, 32)}
}
