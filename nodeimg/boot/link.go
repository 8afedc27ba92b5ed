package boot

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// QueueLength is the number of frames that an interface holds for the fabric. A queue that is too
// short would drop packets outside of the model, so it is far longer than any burst that a window
// allows.
const QueueLength = 10_000

// openCable makes the node's interface and returns the other end.
func (s *NodeSpec) openCable() (Link, error) {
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
	return l, nil
}

// network takes the steps that give the node its network, and returns the other end of its cable.
func (s *NodeSpec) network() (Link, error) {
	l := Link{Node: s.Name, Kind: Wired, FD: -1}
	for _, step := range s.steps(&l) {
		if err := Apply(step.Settings); err != nil {
			l.close()
			return Link{}, err
		}
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

// sysctl writes a setting of this process's namespaces.
func sysctl(name, value string) error {
	return os.WriteFile("/proc/sys/"+name, []byte(value), 0)
}
