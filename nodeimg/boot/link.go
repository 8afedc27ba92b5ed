package boot

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// QueueLength is the number of frames that an interface holds for the fabric. A queue that is too
// short would drop packets outside of the model, so it is far longer than any burst that a window
// allows.
const QueueLength = 10_000

// cable makes the node's interface, sets its addresses and neighbours, and returns the other end.
func cable(s *NodeSpec) (Link, error) {
	l := Link{Node: s.Name, Kind: TAP}
	var err error
	if s.Veth {
		err = errors.New("a veth pair was asked for")
	} else {
		l.FD, err = openTAP()
	}
	if err != nil {
		l.Kind, l.Why = Packet, err.Error()
		if l.FD, err = openVeth(s.MTU, QueueLength); err != nil {
			return Link{}, fmt.Errorf("no TAP device (%s), and no veth pair: %w", l.Why, err)
		}
	}
	if err := configure(s); err != nil {
		unix.Close(l.FD)
		return Link{}, err
	}
	return l, nil
}

// openTAP makes a TAP device in this network namespace. Frames carry no header. Without offloads,
// each frame is one packet with its checksums filled in.
func openTAP() (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	r, err := unix.NewIfreq(Interface)
	if err == nil {
		r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, r)
	}
	if err == nil {
		// A persistent device is removed with its namespace, sixteen at a time, and not when the
		// descriptor is closed, one after the other at 20 ms each.
		err = unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("create TAP device: %w", err)
	}
	return fd, nil
}

// configure brings lo and eth0 up.
func configure(s *NodeSpec) error {
	if err := loopback(); err != nil {
		return err
	}
	eth, err := netlink.LinkByName(Interface)
	if err != nil {
		return fmt.Errorf("find %s: %w", Interface, err)
	}
	// The queue length is the size of the device's ring, so it is set before up.
	if err := netlink.LinkSetTxQLen(eth, QueueLength); err != nil {
		return fmt.Errorf("%s: set queue length: %w", Interface, err)
	}
	if err := address(eth, s); err != nil {
		return err
	}
	if err := firstInFirstOut(eth); err != nil {
		return fmt.Errorf("%s: replace queueing discipline: %w", Interface, err)
	}
	return nil
}

// address gives an interface the addresses, neighbours and routes of a node, and sets it up.
func address(eth netlink.Link, s *NodeSpec) error {
	addr := &netlink.Addr{IPNet: &net.IPNet{
		IP:   s.Addr.Addr().AsSlice(),
		Mask: net.CIDRMask(s.Addr.Bits(), 32),
	}}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"set MTU", func() error { return netlink.LinkSetMTU(eth, int(s.MTU)) }},
		{"set hardware address", func() error { return netlink.LinkSetHardwareAddr(eth, s.MAC[:]) }},
		{"silence IPv6", func() error { return silenceIPv6(eth) }},
		{"forward nothing", neverForward},
		{"add address", func() error { return netlink.AddrAdd(eth, addr) }},
		{"set up", func() error { return netlink.LinkSetUp(eth) }},
		{"add neighbours", func() error { return neighbours(eth, s.Neighbours()) }},
		{"add routes", func() error { return routes(eth, s) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %s: %w", eth.Attrs().Name, step.what, err)
		}
	}
	return nil
}

func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

// firstInFirstOut replaces the host's default qdisc: fq_codel, for example, would drop and mark
// packets beneath the model. A kernel without qdiscs has nothing to replace.
func firstInFirstOut(l netlink.Link) error {
	err := netlink.QdiscReplace(&netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT,
			Handle: netlink.MakeHandle(1, 0)},
		QdiscType: "pfifo", // its limit is the queue length of the device
	})
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// neverForward keeps a host from forwarding packets for others, whatever the machine's setting is,
// which a new namespace takes over. /proc/sys is read-only in a container, where Docker has set it.
func neverForward() error {
	err := sysctl("net/ipv4/ip_forward", "0")
	if errors.Is(err, unix.EROFS) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

// silenceIPv6 keeps the kernel from sending IPv6 packets of its own. The interface must be down. If
// /proc/sys is read-only, as in a container, the interface gets no IPv6 address, so that it sends
// nothing either.
func silenceIPv6(l netlink.Link) error {
	err := sysctl("net/ipv6/conf/"+l.Attrs().Name+"/disable_ipv6", "1")
	if err == nil || errors.Is(err, os.ErrNotExist) { // no IPv6 in this kernel
		return nil
	}
	const none = 1 // IN6_ADDR_GEN_MODE_NONE
	return netlink.LinkSetIP6AddrGenMode(l, none)
}

func neighbours(l netlink.Link, peers []Peer) error {
	for _, p := range peers {
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
	}
	return nil
}

// sysctl writes a setting of this process's namespaces.
func sysctl(name, value string) error {
	return os.WriteFile("/proc/sys/"+name, []byte(value), 0)
}
