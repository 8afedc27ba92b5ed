package agent

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/internal/control"
	"weft/transport"
	"weft/transport/wire"
)

// The TOS of what a node sends: acknowledgements are served first (class selector 6, RFC 2474 section 4.2.2),
// data may be ECN-capable (ECT(0), RFC 3168 section 5).
const (
	tosControl = 0xc0
	tosECT0    = 0x02
)

// way is what distinguishes the sockets that a node sends from.
type way struct {
	dst  transport.HostID
	port uint16 // source port: the entropy that switches hash
	to   uint16 // destination port; 0: wire.Port
	tos  uint8
}

// senders are a node's sending sockets, one for each way, opened when first used unless prepared. A connected socket keeps
// its route, so that a packet costs no look-up; but it also has a random number that switches of the kernel take for the hash
// of its packets (sk_txhash), so that no seed would make two runs alike.
type senders struct {
	loose   bool // sockets are not connected
	own     [4]byte
	peers   [][4]byte // by host, and switches behind them
	sockets map[way]int
	opened  []way       // the keys of sockets, first opened first, from oldest on in a circle when there are most
	oldest  int         // in opened
	most    int         // sockets
	keeper  *keeper     // opens them; nil: this process does
	spare   map[way]int // opened before they were needed, without TOS
	missed  int64       // sockets opened when a packet needed them
}

// maxSockets is how many sockets a node sends from. Beyond, the one opened first makes room: a connection that sprays has up to
// 256 ports, and many nodes share the descriptors of a machine. Ours.
const maxSockets = 4096

func newSenders(own [4]byte, peers [][4]byte) *senders {
	return &senders{own: own, peers: peers, most: maxSockets, sockets: make(map[way]int), spare: make(map[way]int)}
}

// wayOf returns the way of a packet.
func wayOf(out *transport.Outgoing) way {
	w := way{dst: out.Dst, port: out.SrcPort, to: out.DstPort}
	if out.Class == 0 {
		w.tos = tosControl
	}
	if out.ECT {
		w.tos |= tosECT0
	}
	return w
}

// send hands a packet to the kernel. taken is false when the kernel had no room for it.
func (s *senders) send(out *transport.Outgoing, payload, trailer []byte) (taken bool, err error) {
	w := wayOf(out)
	fd, ok := s.sockets[w]
	if !ok {
		if fd, err = s.get(w); err != nil {
			return false, err
		}
		s.keep(w, fd)
	}
	vectors := [3]unix.Iovec{{Base: &out.Header[0], Len: uint64(out.N)}}
	n := uintptr(1)
	for _, part := range [2][]byte{payload, trailer} {
		if len(part) > 0 {
			vectors[n] = unix.Iovec{Base: &part[0], Len: uint64(len(part))}
			n++
		}
	}
	for try := 1; ; try++ {
		var errno unix.Errno
		if s.loose {
			errno = s.sendTo(fd, w, vectors[:n])
		} else {
			errno = sendOn(fd, vectors[:n])
		}
		switch {
		case errno == 0:
			return true, nil
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN || errno == unix.ENOBUFS:
			return false, nil
		case fromOutside(errno) && try < maxOutside:
			continue
		}
		return false, fmt.Errorf("send to host %d: %w", out.Dst, errno)
	}
}

// fromOutside tells whether an error of a socket may be what an ICMP message said of an earlier packet. Any host can send those, so
// they end nothing: reading the error clears it, and the packet is sent again.
func fromOutside(errno unix.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EMSGSIZE, unix.EPROTO, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.ENETUNREACH, unix.EHOSTUNREACH,
		unix.EHOSTDOWN, unix.ENONET, unix.EACCES:
		return true
	}
	return false
}

// maxOutside is how often a packet is tried in spite of such errors. One that comes back so often is the socket's own.
const maxOutside = 16

// sendOn is what sends from a socket that is connected. Going through write(2) would cost a tenth more.
func sendOn(fd int, parts []unix.Iovec) (errno unix.Errno) {
	if len(parts) == 1 {
		_, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(parts[0].Base)), uintptr(parts[0].Len), 0, 0, 0)
		return errno
	}
	m := unix.Msghdr{Iov: &parts[0]}
	m.SetIovlen(len(parts))
	_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), 0)
	return errno
}

// sendTo is what sends from a socket that is not connected.
func (s *senders) sendTo(fd int, w way, parts []unix.Iovec) unix.Errno {
	port := cmp.Or(w.to, wire.Port)
	name := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port<<8 | port>>8, Addr: s.peers[w.dst]} // in network order on both architectures
	m := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: unix.SizeofSockaddrInet4, Iov: &parts[0]}
	m.SetIovlen(len(parts))
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), 0)
	return errno
}

// keep notes a new socket. When there are too many it closes one that was never used, or else the oldest.
func (s *senders) keep(w way, fd int) {
	for unused, spare := range s.spare {
		if len(s.opened)+len(s.spare) < s.most {
			break
		}
		unix.Close(spare)
		delete(s.spare, unused)
	}
	if len(s.opened) < s.most {
		s.opened = append(s.opened, w)
	} else {
		old := s.opened[s.oldest]
		unix.Close(s.sockets[old])
		delete(s.sockets, old)
		s.opened[s.oldest] = w
		s.oldest = (s.oldest + 1) % s.most
	}
	s.sockets[w] = fd
}

// close closes all sockets.
func (s *senders) close() {
	for _, open := range []map[way]int{s.sockets, s.spare} {
		for _, fd := range open {
			unix.Close(fd)
		}
	}
}

// sendBuffer is the send buffer of a socket in bytes. The interface takes packets at once, so it only holds
// those that wait for a neighbour's address.
const sendBuffer = 256 << 10

// prepare opens the sockets that the first packets on ways without TOS will need: opening one then takes longer than
// sending the packet.
func (s *senders) prepare(ways []way) error {
	for some := range slices.Chunk(ways, control.MaxFDs) {
		if s.keeper != nil {
			outlets := make([]outlet, len(some))
			for i, w := range some {
				outlets[i] = s.outlet(w)
			}
			fds, err := s.keeper.open(outlets)
			if err != nil {
				return err
			}
			for i, w := range some {
				s.spare[w] = fds[i]
			}
			continue
		}
		for _, w := range some {
			fd, err := s.open(w)
			if err != nil {
				return err
			}
			s.spare[w] = fd
		}
	}
	return nil
}

// get returns a socket for a way: a prepared one, or a new one.
func (s *senders) get(w way) (fd int, err error) {
	bare := way{dst: w.dst, port: w.port, to: w.to}
	fd, ok := s.spare[bare]
	if !ok {
		s.missed++
		return s.open(w)
	}
	delete(s.spare, bare)
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, int(w.tos)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("TOS of the socket from port %d to host %d: %w", w.port, w.dst, err)
	}
	return fd, nil
}

// open makes the socket of a way.
func (s *senders) open(w way) (fd int, err error) {
	n := s.outlet(w)
	if s.keeper != nil {
		fds, err := s.keeper.open([]outlet{n})
		if err != nil {
			return -1, err
		}
		return fds[0], nil
	}
	return n.open()
}

// outlet is the socket that a way takes.
func (s *senders) outlet(w way) outlet {
	n := outlet{From: s.own, Port: w.port, TOS: w.tos, To: s.peers[w.dst], ToPort: cmp.Or(w.to, wire.Port)}
	if s.loose {
		n.ToPort = 0
	}
	return n
}

// outlet is a socket to send from. Several may have the same source port and different destinations.
type outlet struct {
	From   [4]byte
	Port   uint16
	TOS    uint8
	To     [4]byte
	ToPort uint16 // 0: it is not connected
}

// open makes the socket in the network namespace of this process.
func (n *outlet) open() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
			err = fmt.Errorf("socket from port %d to %v: %w", n.Port, netip.AddrFrom4(n.To), err)
		}
	}()
	for _, o := range []struct {
		what                string
		level, value, param int
	}{
		{"share the port", unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		{"send buffer", unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer},
		// Data is verified by value at the end of a collective; the model neither damages nor needs checksums.
		{"no checksums", unix.SOL_SOCKET, unix.SO_NO_CHECK, 1},
		{"TOS", unix.IPPROTO_IP, unix.IP_TOS, int(n.TOS)},
		// Nor does an ICMP message change what fits: every link of a lab takes full packets.
		{"no fragments", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.value, o.param); err != nil {
			return fd, fmt.Errorf("%s: %w", o.what, err)
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: n.From, Port: int(n.Port)}); err != nil {
		return fd, fmt.Errorf("bind: %w", err)
	}
	if n.ToPort == 0 {
		return fd, nil
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Addr: n.To, Port: int(n.ToPort)}); err != nil {
		return fd, fmt.Errorf("connect: %w", err)
	}
	return fd, nil
}
