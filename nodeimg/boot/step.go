package boot

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"weft/internal/plural"
	"weft/nodeimg/tcp"
	"weft/units"
)

// A StepKind names what a step does.
type StepKind string

// Kinds of step of a node's network.
const (
	CreateTAP     StepKind = "create-tap"
	SetMTU        StepKind = "set-mtu"
	SetMAC        StepKind = "set-mac"
	AddAddress    StepKind = "add-address"
	SetUp         StepKind = "set-up"
	AddNeighbours StepKind = "add-neighbours"
	PlugCable     StepKind = "plug-cable"
	AddRoutes     StepKind = "add-routes"
)

// A Step is an operation on the network of a node. Who sets the node up applies the settings of its
// steps in order; weft plan lists the same steps and applies nothing.
type Step struct {
	Kind     StepKind
	Do, Undo string     // what the step does, and how it is undone, in words
	After    []StepKind // steps of the same node that it waits for; none: its process only
	Settings []Setting
}

// A Setting is a change to a node's network.
type Setting struct {
	Node, Device string
	// Property exists afterwards, as weft plan lists it: "mtu 1500". Settings that only keep the
	// kernel from sending or changing packets have none.
	Property  string
	Neighbour bool // it is a permanent neighbour

	apply func() error // nil: it comes with a setting before it
}

// Listed reports whether weft plan lists a setting.
func (s *Setting) Listed() bool { return s.Property != "" }

// String returns the line of weft plan for a setting: "h0: eth0 mtu 1500".
func (s *Setting) String() string {
	if s.Device == "" {
		return s.Node + ": " + s.Property
	}
	return fmt.Sprintf("%s: %s %s", s.Node, s.Device, s.Property)
}

// Apply applies settings in order, in the network namespace of the calling thread.
func Apply(all []Setting) error {
	for i := range all {
		if all[i].apply == nil {
			continue
		}
		if err := all[i].apply(); err != nil {
			return err
		}
	}
	return nil
}

// A Device is a network interface of a node. Its methods return settings of it. The interface is
// looked up by name when the first of them is applied.
type Device struct {
	Node, Name string

	link netlink.Link
}

// Link returns the interface in the network namespace of the calling thread.
func (d *Device) Link() (netlink.Link, error) {
	if d.link != nil {
		return d.link, nil
	}
	link, err := netlink.LinkByName(d.Name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", d.Name, err)
	}
	d.link = link
	return link, nil
}

// With returns a setting that comes with the one before it.
func (d *Device) With(property string) Setting {
	return Setting{Node: d.Node, Device: d.Name, Property: property}
}

// Set returns a setting that f applies. what says in errors what it does.
func (d *Device) Set(property, what string, f func(netlink.Link) error) Setting {
	s := d.With(property)
	s.apply = func() error {
		link, err := d.Link()
		if err == nil {
			err = f(link)
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", d.Name, what, err)
		}
		return nil
	}
	return s
}

// Make returns a setting whose f makes the device, or changes what is no property of one device.
func (d *Device) Make(property string, f func() error) Setting {
	s := d.With(property)
	s.apply = f
	return s
}

// Up sets the device up.
func (d *Device) Up() Setting { return d.Set("up", "set up", netlink.LinkSetUp) }

// MTU sets the size of the largest IP packet.
func (d *Device) MTU(n units.Bytes) Setting {
	return d.Set(fmt.Sprintf("mtu %d", n), "set MTU", func(l netlink.Link) error {
		return netlink.LinkSetMTU(l, int(n))
	})
}

// MAC sets the hardware address.
func (d *Device) MAC(m MAC) Setting {
	return d.Set(fmt.Sprintf("link/ether %v", m), "set hardware address", func(l netlink.Link) error {
		return netlink.LinkSetHardwareAddr(l, m[:])
	})
}

// Addr adds an IPv4 address.
func (d *Device) Addr(p netip.Prefix) Setting {
	return d.Set(fmt.Sprintf("inet %v", p), "add address", func(l netlink.Link) error {
		return netlink.AddrAdd(l, &netlink.Addr{IPNet: ipNet(p)})
	})
}

// Neighbour adds a permanent neighbour, which needs no ARP.
func (d *Device) Neighbour(p Peer) Setting {
	s := d.Set(fmt.Sprintf("neigh %v lladdr %v", p.Addr, p.MAC), "add neighbours", func(l netlink.Link) error {
		err := netlink.NeighSet(&netlink.Neigh{
			LinkIndex:    l.Attrs().Index,
			Family:       netlink.FAMILY_V4,
			State:        netlink.NUD_PERMANENT,
			IP:           p.Addr.AsSlice(),
			HardwareAddr: p.MAC[:],
		})
		if err != nil {
			return fmt.Errorf("%v: %w", p.Addr, err)
		}
		return nil
	})
	s.Neighbour = true
	return s
}

// ipNet returns a prefix as package net has it.
func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Lo returns the setting that every node needs first.
func Lo(node string) Setting { return (&Device{Node: node, Name: "lo"}).Up() }

// quiet keeps the kernel from sending on an interface, which must be down, and from forwarding.
func (d *Device) quiet() []Setting {
	return []Setting{
		d.Set("", "silence IPv6", silenceIPv6),
		d.Set("", "forward nothing", func(netlink.Link) error { return neverForward() }),
	}
}

// goesWithEth0 is how the settings of an interface are undone.
const goesWithEth0 = "goes with " + Interface

// Steps returns the steps that give a host its network.
func (s *NodeSpec) Steps() []Step { return s.steps(new(Link)) }

// steps is Steps. The step that makes a host's cable leaves the other end in l.
func (s *NodeSpec) steps(l *Link) []Step {
	eth := &Device{Node: s.Name, Name: Interface}
	if s.Wired {
		return []Step{s.wiredStep(eth)}
	}
	create := []Setting{
		eth.Make("tap", func() (err error) {
			*l, err = s.openCable()
			return err
		}),
		// the size of the device's ring, so it is set before up
		eth.Set(fmt.Sprintf("txqueuelen %d", QueueLength), "set queue length", func(l netlink.Link) error {
			return netlink.LinkSetTxQLen(l, QueueLength)
		}),
	}
	up := []Setting{Lo(s.Name), eth.Up(), eth.Set("out root pfifo handle 1:", "replace queueing discipline",
		firstInFirstOut)}
	if s.TCP != (tcp.Settings{}) { // the route that came with the address, once it is there
		up = append(up, s.setRoute(eth, Route{To: s.Addr.Masked()}, ""))
	}
	all := []Step{
		{CreateTAP, "create the TAP device " + Interface + " (a veth pair where /dev/net/tun cannot be opened)",
			"close its descriptor", nil, append(create, eth.quiet()...)},
		{SetMTU, fmt.Sprintf("set the MTU of %s to %d", Interface, s.MTU), goesWithEth0, []StepKind{CreateTAP},
			[]Setting{eth.MTU(s.MTU)}},
		{SetMAC, fmt.Sprintf("set the hardware address of %s to %v", Interface, s.MAC), goesWithEth0,
			[]StepKind{CreateTAP}, []Setting{eth.MAC(s.MAC)}},
		{AddAddress, fmt.Sprintf("add %v to %s%s", s.Addr, Interface, s.withTCP()), goesWithEth0, []StepKind{CreateTAP},
			[]Setting{eth.Addr(s.Addr), eth.With(fmt.Sprintf("route %v", s.Addr.Masked()))}},
		{SetUp, "set " + Interface + " and lo up", goesWithEth0, []StepKind{SetMTU, SetMAC, AddAddress}, up},
	}
	if peers := s.Neighbours(); len(peers) > 0 {
		all = append(all, Step{AddNeighbours, fmt.Sprintf("add %s, permanent", plural.Count(len(peers), "neighbour")),
			goesWithEth0, []StepKind{SetUp}, eth.neighbours(peers)})
	}
	return all
}

// wiredStep returns the step of a host whose interface is an end of a cable, which was plugged in
// with its MTU, hardware address and queue.
func (s *NodeSpec) wiredStep(eth *Device) Step {
	settings := append([]Setting{Lo(s.Name)}, eth.quiet()...)
	settings = append(append(settings, eth.Up(), eth.Addr(s.Addr)), eth.neighbours(s.Neighbours())...)
	settings = append(append(settings, s.setRoutes(eth)...),
		eth.Set("", "replace queueing discipline", firstInFirstOut))
	do := fmt.Sprintf("give %s %v, %s of its rack, and a route to all others by %v%s", Interface, s.Addr,
		plural.Count(len(s.Peers), "neighbour"), s.Gateway.Addr, s.withTCP())
	return Step{AddRoutes, do, goesWithEth0, nil, settings}
}

// addresses returns the settings that give an interface of another namespace the place of the node
// in the network.
func (s *NodeSpec) addresses(eth *Device) []Setting {
	all := append([]Setting{eth.MTU(s.MTU), eth.MAC(s.MAC)}, eth.quiet()...)
	all = append(append(all, eth.Addr(s.Addr), eth.Up()), eth.neighbours(s.Neighbours())...)
	return append(all, s.setRoutes(eth)...)
}

func (d *Device) neighbours(peers []Peer) (all []Setting) {
	for _, p := range peers {
		all = append(all, d.Neighbour(p))
	}
	return all
}

// setRoutes returns the settings of a node's routes, with its settings for TCP.
func (s *NodeSpec) setRoutes(eth *Device) (all []Setting) {
	if s.Gateway == nil && s.TCP != (tcp.Settings{}) {
		return []Setting{s.setRoute(eth, Route{To: s.Addr.Masked()}, "")}
	}
	for _, r := range s.Routes() {
		property := fmt.Sprintf("route %v", r.To)
		if r.Via.IsValid() {
			property += fmt.Sprintf(" via %v", r.Via)
		}
		all = append(all, s.setRoute(eth, r, property))
	}
	return all
}

// withTCP says which settings for TCP the routes of a node have, after a comma; "" if none.
func (s *NodeSpec) withTCP() string {
	if s.TCP == (tcp.Settings{}) {
		return ""
	}
	return fmt.Sprintf(", its route with %v", s.TCP)
}

// Step returns the step that makes a cable.
func (c *Cable) Step() Step {
	var settings []Setting
	for _, e := range []CableEnd{c.A, c.B} {
		d := &Device{Node: e.Node, Name: e.Interface}
		settings = append(settings, d.With("veth"), d.With(fmt.Sprintf("mtu %d", c.MTU)),
			d.With(fmt.Sprintf("link/ether %v", e.MAC)), d.With(fmt.Sprintf("txqueuelen %d", e.Queue)))
	}
	return Step{PlugCable, fmt.Sprintf("make a veth pair from %s of %s to %s of %s, MTU %d, its offloads off",
		c.A.Interface, c.A.Node, c.B.Interface, c.B.Node, c.MTU), "goes with either end", nil, settings}
}
