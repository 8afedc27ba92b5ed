package boot

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"weft/internal/sockbuf"
	"weft/internal/thread"
	"weft/units"
)

// farEnd is the name of the veth's other end, in a namespace of its own without processes.
const farEnd = "cable"

// openVeth makes eth0 as one end of a veth pair, and returns a packet socket on the other.
//
// The other end lies in a namespace that exists only as long as the socket, so the node sees one
// interface, as with a TAP device, and closing the socket removes the pair.
func openVeth(mtu units.Bytes, queue int) (fd int, err error) {
	// Package ns would look for /proc/PID/task/TID, but /proc still shows the processes of the
	// namespace that the node was started from, under other numbers: in a container that is
	// permission denied.
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return -1, fmt.Errorf("veth: %w", err)
	}
	defer home.Close()
	done := make(chan struct{})
	// the thread changes its namespace and ends with this function
	thread.Own(func() {
		defer close(done)
		fd, err = plug(int(home.Fd()), mtu, queue)
	})
	<-done
	if err == nil {
		if err = plainFrames(Interface); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("veth: %w", err)
	}
	return fd, nil
}

// plug moves the calling thread to a new network namespace, makes the pair with its near end in
// home and its far end there, and returns a packet socket on the far end.
func plug(home int, mtu units.Bytes, queue int) (int, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return -1, fmt.Errorf("new network namespace: %w", err)
	}
	far := netlink.NewLinkAttrs()
	far.Name, far.MTU, far.TxQLen = farEnd, int(mtu), queue
	pair := &netlink.Veth{LinkAttrs: far, PeerName: Interface, PeerNamespace: netlink.NsFd(home)}
	if err := netlink.LinkAdd(pair); err != nil {
		return -1, fmt.Errorf("create pair: %w", err)
	}
	link, err := netlink.LinkByName(farEnd)
	if err == nil {
		err = silenceIPv6(link)
	}
	if err == nil {
		err = netlink.LinkSetUp(link)
	}
	if err == nil {
		err = plainFrames(farEnd)
	}
	if err != nil {
		return -1, err
	}
	return packetSocket(link.Attrs().Index)
}

// packetSocket returns a socket that receives the frames of the interface, and sends without a
// queue.
func packetSocket(index int) (int, error) {
	// Protocol 0 receives nothing until bind names the interface.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("packet socket: %w", err)
	}
	const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network order
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"ignore outgoing", func() error {
			return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING,
				1)
		}},
		{"bypass queue", func() error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1) }},
		{"receive buffer", func() error { return sockbuf.Receive(fd, int(64*units.MiB)) }},
		{"bind", func() error { return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}) }},
	} {
		if err := step.do(); err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("packet socket: %s: %w", step.what, err)
		}
	}
	return fd, nil
}

// offloads are commands of ethtool(8) that turn an offload off, linux/ethtool.h. TX checksums come
// first, because the others depend on them.
var offloads = []struct {
	name string
	set  uint32
}{
	{"tx-checksum", 0x17}, // ETHTOOL_STXCSUM
	{"tso", 0x1f},         // ETHTOOL_STSO
	{"gso", 0x24},         // ETHTOOL_SGSO
	{"gro", 0x2c},         // ETHTOOL_SGRO
}

// plainFrames makes an interface send only whole, single packets with their checksums filled in. A
// packet socket would otherwise see segments of 64 KB, and checksums left for a NIC to compute.
func plainFrames(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, o := range offloads {
		value := struct{ cmd, data uint32 }{o.set, 0}
		request := struct {
			name [unix.IFNAMSIZ]byte
			data unsafe.Pointer
			_    [16]byte // struct ifreq is longer than its used part
		}{data: unsafe.Pointer(&value)}
		copy(request.name[:], name)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
			uintptr(unsafe.Pointer(&request))); errno != 0 {
			return fmt.Errorf("%s: turn %s off: %w", name, o.name, errno)
		}
	}
	return nil
}
