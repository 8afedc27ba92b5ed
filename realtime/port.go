package realtime

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/poller"
	"weft/transport/wire"
	"weft/units"
)

// port is the fabric process's end of a host's link, with the state of that host's traffic.
type port struct {
	fd     int
	cable  cable // fd, to read and write frames
	kind   string
	nic    *nic // the bypass NIC of the host's agent; nil: it uses sockets
	gone   bool // the host has ended, and its interface with it
	down   bool // the interface was down when a frame was last written to it
	halted bool // nothing is carried from the host or to it
	full   bool // the NIC holds maxNICQueue: nothing is read until it is idle
	burst  int  // number of frames to try to read in a row: what the last read suggests is there
	held   ring // packets that wait for their departure instant

	heldBytes units.Bytes // sum of sizes in held

	heldBack  bool       // a pause keeps the host from sending, or its effects do
	heldUntil units.Time // the end of that, as far as known

	told   uint32     // number of notices of a pause or its end
	notice wire.Pause // the last notice
	repeat bool       // it is sent once more at the next beat
}

// cable is a host's link. Neither call blocks: again means that there is nothing to read, or no
// room to write.
type cable interface {
	Read(frame []byte) (n int, again bool, err error)
	Write(frame []byte) (n int, again bool, err error)
}

// descriptor is the cable of a file descriptor.
type descriptor int

func (d descriptor) Read(frame []byte) (n int, again bool, err error) {
	return poller.Read(int(d), frame)
}
func (d descriptor) Write(frame []byte) (n int, again bool, err error) {
	return poller.Write(int(d), frame)
}

// attach prepares the descriptor of a host.
func (p *port) attach(from Port) error {
	if err := unix.SetNonblock(from.FD, true); err != nil {
		return fmt.Errorf("set nonblocking: %w", err)
	}
	switch from.Kind {
	case PortTAP:
	case PortPacket:
		if err := preparePacketSocket(from.FD); err != nil {
			return err
		}
	default:
		return fmt.Errorf("descriptor of unknown kind %q", from.Kind)
	}
	p.fd, p.cable, p.kind, p.burst = from.FD, descriptor(from.FD), from.Kind, 1
	return nil
}

// preparePacketSocket makes a packet socket behave as a TAP does: it delivers only what the host
// sent.
func preparePacketSocket(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return fmt.Errorf("packet socket: ignore outgoing: %w", err)
	}
	return nil
}

// isGone reports whether an error means that the interface at the other end no longer exists: for a
// TAP the device, for a packet socket that it is down.
func isGone(err error) bool {
	return errors.Is(err, unix.ENETDOWN) || errors.Is(err, unix.EBADFD) ||
		errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV)
}

// isDown reports whether an error means that the interface is down. It may come up again, unless
// its network namespace is being removed: then a TAP device is first down.
func isDown(err error) bool { return errors.Is(err, unix.EIO) }

// isUp asks the kernel whether a port's interface takes frames. That of a packet socket, on the
// other end of a veth pair, always does.
func (p *port) isUp() bool {
	if p.gone || p.kind != PortTAP {
		return true
	}
	ready := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(ready, 0)
	return n > 0 || err != nil // an interface that cannot be asked counts as up
}

// drops returns how many frames the kernel could not queue for reading, as far as it says: for
// packet sockets (packet(7), PACKET_STATISTICS). For TAPs the node reads its interface's counter.
func (p *port) drops() int64 {
	if p.kind != PortPacket {
		return 0
	}
	s, err := unix.GetsockoptTpacketStats(p.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return int64(s.Drops)
}

// ring holds packets that were read before their departure, first in first out.
type ring struct {
	slots   []*fabric.Packet // its length is a power of two
	head, n int
}

func (r *ring) push(p *fabric.Packet) {
	if r.n == len(r.slots) {
		bigger := make([]*fabric.Packet, max(16, 2*r.n))
		for i := range r.n {
			bigger[i] = r.slots[(r.head+i)&(len(r.slots)-1)]
		}
		r.slots, r.head = bigger, 0
	}
	r.slots[(r.head+r.n)&(len(r.slots)-1)] = p
	r.n++
}

// front returns the departure of the first packet. Packet.SentAt holds it until the packet is
// injected.
func (r *ring) front() (departure units.Time, ok bool) {
	if r.n == 0 {
		return 0, false
	}
	return r.slots[r.head].SentAt, true
}

func (r *ring) pop() *fabric.Packet {
	p := r.slots[r.head]
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	return p
}
