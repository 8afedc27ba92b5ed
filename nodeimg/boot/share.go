package boot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrShared is returned by Share if another network namespace has the node's interface already.
var ErrShared = errors.New("its interface is in use by another container")

// Share makes an interface with a name in another network namespace, an open descriptor, through
// which that namespace has the node's interface: it receives all frames, and the node none. The
// calling thread must be in the node's namespace. The interface is gone with either namespace.
//
// It is a macvlan in passthru mode: the kernel admits one for each device.
func Share(netns int, name string) error {
	eth, err := netlink.LinkByName(Interface)
	if err != nil {
		return fmt.Errorf("find %s: %w", Interface, err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex, attrs.Namespace = name, eth.Attrs().Index, netlink.NsFd(netns)
	attrs.GSOMaxSegs = 1 // a segment of 64 KB would be one packet to every queue: see PlainFrames
	err = netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_PASSTHRU})
	switch {
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("the container has an interface %s already", name)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EBUSY):
		return ErrShared
	case errors.Is(err, unix.EOPNOTSUPP):
		return errors.New("this kernel has no macvlan (CONFIG_MACVLAN)")
	}
	return err
}

// ConfigureShared gives an interface that Share made the addresses, neighbours and routes of the
// node. The calling thread must be in its namespace.
func ConfigureShared(s *NodeSpec, name string) error {
	return Apply(s.addresses(&Device{Node: s.Name, Name: name}))
}

// CheckShared returns an error unless the calling thread's namespace has an interface that Share
// made, set up and with the addresses of the node.
func CheckShared(s *NodeSpec, name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if !isShared(link, s) {
		return fmt.Errorf("%s is another interface than that of %s", name, s.Name)
	}
	if link.Attrs().RawFlags&unix.IFF_UP == 0 {
		return fmt.Errorf("%s is down", name)
	}
	addrs, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(addrs, func(a netlink.Addr) bool { return a.IP.Equal(s.Addr.Addr().AsSlice()) }) {
		return fmt.Errorf("%s has lost the address %v", name, s.Addr.Addr())
	}
	return nil
}

// Unshare removes an interface that Share made from the namespace of the calling thread. What is
// gone already is no error; another interface of this name stays.
func Unshare(s *NodeSpec, name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil || !isShared(link, s) {
		return err
	}
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}

// isShared reports whether Share made an interface for a node.
func isShared(link netlink.Link, s *NodeSpec) bool {
	_, ok := link.(*netlink.Macvlan)
	return ok && bytes.Equal(link.Attrs().HardwareAddr, s.MAC[:])
}
