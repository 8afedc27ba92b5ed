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
	"weft/units"
)

// tosECT0 is the TOS of data that is ECN-capable: ECT(0), RFC 3168 section 5.
const tosECT0 = 0x02

// socketKey identifies one of the sockets that a node sends from.
type socketKey struct {
	dst  transport.HostID
	port uint16 // source port: the entropy that switches hash
	to   uint16 // destination port; 0: wire.Port
	tos  uint8
}

// senders are a node's sending sockets, one per key, opened at first use or in advance. A connected
// socket caches its route, so that a packet needs no lookup. But it also has a random number that
// switches of the kernel use as the hash of its packets (sk_txhash), so that a seed would not
// reproduce a run.
type senders struct {
	loose   bool // sockets are not connected
	own     [4]byte
	peers   [][4]byte // by host, followed by switches
	sockets map[socketKey]int
	// keys of open sockets, oldest first, as a ring from index oldest once there are maxOpen
	inUse   []socketKey
	oldest  int // in inUse
	maxOpen int // largest number of sockets
	// opens the sockets; nil: this process does
	keeper *keeper
	spare  map[socketKey]int // sockets opened in advance, without TOS
	missed int64             // sockets opened while a packet of a connection waited
}

// maxSockets is the largest number of sockets that a node sends from. Beyond it the oldest is
// closed: a connection that sprays has up to 256 ports, and many nodes share the descriptors of a
// machine. Ours.
const maxSockets = 4096

func newSenders(own [4]byte, peers [][4]byte) *senders {
	return &senders{own: own, peers: peers, maxOpen: maxSockets, sockets: make(map[socketKey]int),
		spare: make(map[socketKey]int)}
}

// keyOf returns the key of a packet's socket.
func keyOf(out *transport.Outgoing) socketKey {
	k := socketKey{dst: out.Dst, port: out.SrcPort, to: out.DstPort}
	if out.Class == 0 {
		k.tos = wire.TOSControl
	}
	if out.ECT {
		k.tos |= tosECT0
	}
	return k
}

// room implements outlet: the kernel copies payload from wherever it is.
func (s *senders) room(*transport.Outgoing) []byte { return nil }

// send implements outlet. taken is false if the kernel had no room for the packet.
func (s *senders) send(out *transport.Outgoing, payload, trailer []byte, _ units.Time) (taken bool, err error) {
	k := keyOf(out)
	fd, ok := s.sockets[k]
	if !ok {
		if fd, err = s.get(k); err != nil {
			return false, err
		}
		s.keep(k, fd)
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
			errno = s.sendTo(fd, k, vectors[:n])
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

// fromOutside reports whether a socket's error may come from an ICMP message about an earlier
// packet. Any host can send those, so they end nothing: reading the error clears it, and the packet
// is sent again.
func fromOutside(errno unix.Errno) bool {
	switch errno {
	case unix.ECONNREFUSED, unix.EMSGSIZE, unix.EPROTO, unix.ENOPROTOOPT, unix.EOPNOTSUPP, unix.ENETUNREACH,
		unix.EHOSTUNREACH,
		unix.EHOSTDOWN, unix.ENONET, unix.EACCES:
		return true
	}
	return false
}

// maxOutside is the number of attempts for a packet in spite of such errors. An error that persists
// is the socket's own.
const maxOutside = 16

// sendOn sends from a connected socket. Going through write(2) would cost a tenth more.
func sendOn(fd int, parts []unix.Iovec) (errno unix.Errno) {
	if len(parts) == 1 {
		_, _, errno = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(parts[0].Base)),
			uintptr(parts[0].Len), 0, 0, 0)
		return errno
	}
	m := unix.Msghdr{Iov: &parts[0]}
	m.SetIovlen(len(parts))
	_, _, errno = unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), 0)
	return errno
}

// sendTo sends from an unconnected socket.
func (s *senders) sendTo(fd int, k socketKey, parts []unix.Iovec) unix.Errno {
	port := cmp.Or(k.to, wire.Port)
	// in network order on both architectures
	name := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port<<8 | port>>8, Addr: s.peers[k.dst]}
	m := unix.Msghdr{Name: (*byte)(unsafe.Pointer(&name)), Namelen: unix.SizeofSockaddrInet4, Iov: &parts[0]}
	m.SetIovlen(len(parts))
	_, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&m)), 0)
	return errno
}

// keep records a new socket. If there are too many it closes one that was never used, or else the
// oldest.
func (s *senders) keep(k socketKey, fd int) {
	for unused, spare := range s.spare {
		if len(s.inUse)+len(s.spare) < s.maxOpen {
			break
		}
		unix.Close(spare)
		delete(s.spare, unused)
	}
	if len(s.inUse) < s.maxOpen {
		s.inUse = append(s.inUse, k)
	} else {
		old := s.inUse[s.oldest]
		unix.Close(s.sockets[old])
		delete(s.sockets, old)
		s.inUse[s.oldest] = k
		s.oldest = (s.oldest + 1) % s.maxOpen
	}
	s.sockets[k] = fd
}

// opened implements outlet.
func (s *senders) opened() int64 { return s.missed }

// close closes all sockets.
func (s *senders) close() {
	for _, open := range []map[socketKey]int{s.sockets, s.spare} {
		for _, fd := range open {
			unix.Close(fd)
		}
	}
}

// sendBuffer is the send buffer of a socket in bytes. The interface accepts packets at once, so it
// only holds those that wait for a neighbour's address.
const sendBuffer = 256 << 10

// prepare opens the sockets for the first packets with the given keys, without TOS. Opening one
// during the run takes longer than sending the packet.
func (s *senders) prepare(keys []socketKey) error {
	for some := range slices.Chunk(keys, control.MaxFDs) {
		if s.keeper != nil {
			specs := make([]socketSpec, len(some))
			for i, k := range some {
				specs[i] = s.spec(k)
			}
			fds, err := s.keeper.open(specs)
			if err != nil {
				return err
			}
			for i, k := range some {
				s.spare[k] = fds[i]
			}
			continue
		}
		for _, k := range some {
			fd, err := s.open(k)
			if err != nil {
				return err
			}
			s.spare[k] = fd
		}
	}
	return nil
}

// get returns the socket of a key: a prepared one, or a new one.
func (s *senders) get(k socketKey) (fd int, err error) {
	bare := socketKey{dst: k.dst, port: k.port, to: k.to}
	fd, ok := s.spare[bare]
	if !ok {
		if k.to == 0 { // synchronization opens its own with its first messages
			s.missed++
		}
		return s.open(k)
	}
	delete(s.spare, bare)
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, int(k.tos)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("TOS of the socket from port %d to host %d: %w", k.port, k.dst, err)
	}
	return fd, nil
}

// open opens the socket of a key.
func (s *senders) open(k socketKey) (fd int, err error) {
	n := s.spec(k)
	if s.keeper != nil {
		fds, err := s.keeper.open([]socketSpec{n})
		if err != nil {
			return -1, err
		}
		return fds[0], nil
	}
	return n.open()
}

// spec returns the description of a key's socket.
func (s *senders) spec(k socketKey) socketSpec {
	n := socketSpec{From: s.own, Port: k.port, TOS: k.tos, To: s.peers[k.dst], ToPort: cmp.Or(k.to, wire.Port)}
	if s.loose {
		n.ToPort = 0
	}
	return n
}

// socketSpec describes a sending socket. Several may have the same source port and different
// destinations.
type socketSpec struct {
	From   [4]byte
	Port   uint16
	TOS    uint8
	To     [4]byte
	ToPort uint16 // 0: not connected
}

// open opens the socket in the network namespace of this process.
func (n *socketSpec) open() (fd int, err error) {
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
		// The end of a collective verifies data by value; the model neither damages packets nor
		// needs checksums.
		{"no checksums", unix.SOL_SOCKET, unix.SO_NO_CHECK, 1},
		{"TOS", unix.IPPROTO_IP, unix.IP_TOS, int(n.TOS)},
		// ICMP messages must not change the path MTU: every link of a lab takes full packets.
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
