package measure

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/sockbuf"
	"weft/units"
)

// headers is the size of the IPv4 and UDP headers in bytes.
const headers units.Bytes = 20 + 8

// minSize is the smallest packet: headers and the payload of Run, which is a magic number, the
// train and the sequence number.
const minSize = headers + 16

const magic = 0x77656674 // "weft"

// Sender sends probes from one namespace.
type Sender struct {
	fd int
	to unix.SockaddrInet4
}

// Receiver receives them in another namespace.
type Receiver struct{ fd int }

// buffer is the requested socket buffer of both sides. Queued packets are charged to the sender's
// socket, so a small buffer would block it, and a slow receiver must not lose packets.
const buffer = 64 << 20

// NewSender opens a socket in the network namespace of the calling thread. Its packets are ECT(0).
func NewSender(to netip.AddrPort) (*Sender, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	err = errors.Join(unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, 2), // RFC 3168, section 5
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO))
	if err := errors.Join(err, sockbuf.Send(fd, buffer)); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("sender of probes: %w", err)
	}
	return &Sender{fd: fd, to: unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}}, nil
}

// NewReceiver opens a socket in the network namespace of the calling thread.
func NewReceiver(at netip.AddrPort) (*Receiver, error) {
	fd, err := socket()
	if err != nil {
		return nil, err
	}
	patience := unix.NsecToTimeval(int64(20 * time.Millisecond)) // how often receive returns without a packet
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVTOS, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience),
		sockbuf.Receive(fd, buffer),
		unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}))
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("receiver of probes at %v: %w", at, err)
	}
	return &Receiver{fd: fd}, nil
}

// Close closes the socket.
func (s *Sender) Close() error { return unix.Close(s.fd) }

// Close closes the socket.
func (r *Receiver) Close() error { return unix.Close(r.fd) }

func socket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket for probes: %w", err)
	}
	return fd, nil
}

// send sends packet seq of a train and returns the departure time in nanoseconds of the machine's
// clock.
func (s *Sender) send(payload []byte, train, seq uint32) (int64, error) {
	binary.BigEndian.PutUint32(payload, magic)
	binary.BigEndian.PutUint32(payload[4:], train)
	binary.BigEndian.PutUint32(payload[8:], seq)
	at := now(unix.CLOCK_REALTIME)
	err := unix.Sendto(s.fd, payload, 0, &s.to)
	if errors.Is(err, unix.ENOBUFS) { // a queue of this namespace dropped it, which is an ordinary loss
		err = nil
	}
	return at, err
}

// arrival is a received probe.
type arrival struct {
	train, seq uint32
	at         int64
	ce         bool
}

// receive waits some milliseconds for a packet. ok is false if none arrived, or only a foreign one.
func (r *Receiver) receive(payload, control []byte) (a arrival, ok bool, err error) {
	n, cn, _, _, err := unix.Recvmsg(r.fd, payload, control, 0)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return a, false, nil
	case err != nil:
		return a, false, fmt.Errorf("receive a probe: %w", err)
	}
	a, ok = parse(payload[:n], control[:cn])
	return a, ok, nil
}

// parse decodes a probe and its control messages.
func parse(payload, control []byte) (a arrival, ok bool) {
	if len(payload) < 12 || binary.BigEndian.Uint32(payload) != magic {
		return a, false
	}
	a.train, a.seq = binary.BigEndian.Uint32(payload[4:]), binary.BigEndian.Uint32(payload[8:])
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return a, false
	}
	for i := range messages {
		m := &messages[i]
		switch at := sockbuf.Stamp(m); {
		case at != 0:
			a.at = at
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_TOS && len(m.Data) >= 1:
			a.ce = m.Data[0]&3 == 3
		}
	}
	return a, a.at != 0
}

func now(clock int32) int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic("measure: the machine has no clock: " + err.Error())
	}
	return t.Nano()
}

// Through binds the sender to a device of its namespace, whatever the routing table says. Any
// thread may call it.
func (s *Sender) Through(device string) error {
	if err := unix.BindToDevice(s.fd, device); err != nil {
		return fmt.Errorf("send probes through %s: %w", device, err)
	}
	return nil
}
