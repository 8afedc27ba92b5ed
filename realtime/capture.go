package realtime

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/units"
)

// Capture requests a copy of every frame that a port starts to send, or that a host sends and
// receives. The copies are written to the socket that comes with the request, one record per
// message, until its other end is closed.
type Capture struct {
	Port int // index in Config.Network.Ports; -1: of a host
	Host int // -1: of a port
	Snap int // largest number of bytes copied of a frame; 0: all
}

// Captured is a captured frame. Append encodes it and ParseCaptured decodes it.
type Captured struct {
	At      units.Time // of a port: when the first bit left; of a host: when the fabric process read or wrote it
	Out     bool       // sent by the host or the port; otherwise delivered to the host
	Length  int        // of the whole frame, in bytes
	Dropped uint32     // records lost before this one, because nothing read them in time
	Frame   []byte     // the first bytes, up to Capture.Snap
}

// capturedHeader is the length of a record without its frame.
const capturedHeader = 8 + 4 + 4 + 1

// Append appends the encoded record to b.
func (c *Captured) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(c.At))
	b = binary.BigEndian.AppendUint32(b, uint32(c.Length))
	b = binary.BigEndian.AppendUint32(b, c.Dropped)
	out := byte(0)
	if c.Out {
		out = 1
	}
	return append(append(b, out), c.Frame...)
}

// ParseCaptured decodes a record. Frame is a part of b.
func ParseCaptured(b []byte) (Captured, error) {
	if len(b) < capturedHeader || b[16] > 1 {
		return Captured{}, fmt.Errorf("captured: a record of %d bytes", len(b))
	}
	c := Captured{
		At: units.Time(binary.BigEndian.Uint64(b)), Length: int(binary.BigEndian.Uint32(b[8:])),
		Dropped: binary.BigEndian.Uint32(b[12:]), Out: b[16] == 1, Frame: b[capturedHeader:],
	}
	if len(c.Frame) > c.Length || c.At < 0 {
		return Captured{}, fmt.Errorf("captured: %d bytes of a frame of %d at %d", len(c.Frame), c.Length, c.At)
	}
	return c, nil
}

// maxCaptures is the largest number of concurrent captures.
const maxCaptures = 64

// capture is a capture in progress.
type capture struct {
	Capture
	// fd is the socket for records.
	fd      int
	dropped uint32 // records lost since the last one that was sent
	record  []byte
	over    bool   // nothing reads it any more
	lost    *int64 // counter of the records lost by all captures
}

// Values of captureHost's parameter sent.
const (
	sentByHost      = true
	deliveredToHost = false
)

// capture starts a capture.
func (l *loop) capture(c Capture, fds []int) (kept bool, err error) {
	if len(l.captures) == maxCaptures {
		return false, fmt.Errorf("%d captures are under way", maxCaptures)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return false, err
	}
	if c.Snap <= 0 {
		c.Snap = l.cfg.MaxFrame
	}
	l.captures = append(l.captures, &capture{Capture: c, fd: fds[0], lost: &l.report.Uncaptured})
	l.net.Observers.Trace(l.tracePort)
	return true, nil
}

// captureHost copies a frame that a host has sent or that is delivered to it.
func (l *loop) captureHost(h fabric.HostID, sent bool, frame []byte) {
	for _, c := range l.captures {
		if c.Host == int(h) {
			c.copy(max(0, l.labNow()), sent, frame, false)
		}
	}
}

// tracePort copies a packet that a port starts to send.
func (l *loop) tracePort(at units.Time, port int, p *fabric.Packet, ecn fabric.ECN) {
	for _, c := range l.captures {
		if c.Port == port {
			c.copy(at, true, l.frameOf(p), ecn == fabric.CE)
		}
	}
}

// copy sends a record. A record that does not fit into the socket is lost and counted: the network
// does not wait.
func (c *capture) copy(at units.Time, out bool, frame []byte, marked bool) {
	if c.over {
		return
	}
	r := Captured{At: at, Out: out, Length: len(frame), Dropped: c.dropped, Frame: frame[:min(len(frame), c.Snap)]}
	c.record = r.Append(c.record[:0])
	copied := c.record[capturedHeader:]
	if marked && len(copied) >= ethLen+ipMin && copied[ipTOSAt]&3 != uint8(fabric.CE) {
		markCE(copied)
	}
	err := unix.Send(c.fd, c.record, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	switch {
	case err == nil:
		c.dropped = 0
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS):
		c.dropped++
		*c.lost++
	default:
		c.over = true
	}
}

// forgetCaptures ends captures whose other end is closed.
func (l *loop) forgetCaptures() {
	if l.captures == nil {
		return
	}
	left := l.captures[:0]
	for _, c := range l.captures {
		poll := []unix.PollFd{{Fd: int32(c.fd)}}
		n, err := unix.Poll(poll, 0)
		if c.over || err == nil && n > 0 && poll[0].Revents&(unix.POLLHUP|unix.POLLERR) != 0 {
			unix.Close(c.fd)
			continue
		}
		left = append(left, c)
	}
	if l.captures = left; len(left) == 0 {
		l.captures = nil
		l.net.Observers.Trace(nil)
	}
}
