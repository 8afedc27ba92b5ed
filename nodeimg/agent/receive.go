package agent

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/transport/wire"
	"weft/units"
)

// batch is the largest number of datagrams per system call.
const batch = 32

// maxDatagram is the longest UDP payload of a lab: the limit of an IP packet.
const maxDatagram = 1<<16 - 1 - 28

// datagram is a received datagram with the kernel's data about it.
type datagram struct {
	data []byte
	from uint32 // IPv4 address
	// CLOCK_REALTIME in nanoseconds at arrival in the kernel; 0: unknown
	at int64
	// from a bypass NIC: when it arrived in the model, and when it was written to the ring,
	// CLOCK_MONOTONIC in nanoseconds; 0: from a socket
	lab  units.Time
	mono int64
	held units.Time // when its transit is over, for one that was held back; 0: it was not
	tos  uint8
	port uint16 // destination port; 0: wire.Port
	// source port; 0 from a bypass NIC
	source uint16
}

// receiver reads datagrams in batches from a socket of the transport or of synchronization.
type receiver struct {
	fd   int
	tray *tray
	port uint16 // of the datagrams; 0: wire.Port
}

// tray holds the datagrams of one system call. All receivers of a process share one, so that it
// stays in the cache.
type tray struct {
	headers [batch]mmsghdr
	vectors [batch]unix.Iovec
	names   [batch]unix.RawSockaddrInet4
	control [batch][controlSize]byte
	buffers []byte
	size    int // bytes for each datagram
	used    int // headers that the last call changed
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	n uint32
	_ [4]byte
}

// controlSize is the room for a timestamp and a TOS, each with its header, with some to spare.
const controlSize = 96

// newReceiver prepares fd, a UDP socket bound to wire.Port, for reading datagrams into a tray.
func newReceiver(fd int, t *tray) (*receiver, error) {
	for _, o := range []struct {
		what         string
		level, value int
	}{
		{"receive timestamps", unix.SOL_SOCKET, unix.SO_TIMESTAMPNS},
		{"receive the TOS", unix.IPPROTO_IP, unix.IP_RECVTOS},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.value, 1); err != nil {
			return nil, fmt.Errorf("socket for port %d: %s: %w", wire.Port, o.what, err)
		}
	}
	return &receiver{fd: fd, tray: t}, nil
}

// fit makes room for datagrams of up to size bytes.
func (t *tray) fit(size int) {
	if size = min(size, maxDatagram); size <= t.size {
		return
	}
	t.size, t.buffers, t.used = size, make([]byte, batch*size), batch
	for i := 0; i < len(t.buffers); i += os.Getpagesize() {
		t.buffers[i] = 0 // touches the pages now, not when the first packets arrive
	}
	for i := range t.headers {
		t.vectors[i] = unix.Iovec{Base: &t.buffers[i*size], Len: uint64(size)}
		h := &t.headers[i].Msghdr
		h.Iov, h.Iovlen = &t.vectors[i], 1
		h.Name = (*byte)(unsafe.Pointer(&t.names[i]))
		h.Control = &t.control[i][0]
	}
}

// receive reads the waiting datagrams, up to batch, and gives each to f, which must not keep it.
func (r *receiver) receive(f func(datagram)) (n int, err error) {
	t := r.tray
	for i := range t.headers[:t.used] {
		t.headers[i].Namelen = unix.SizeofSockaddrInet4
		t.headers[i].Controllen = controlSize
	}
	t.used = 0
	got, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(r.fd), uintptr(unsafe.Pointer(&t.headers)), batch,
		unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.EAGAIN || errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, fmt.Errorf("recvmmsg: %w", errno)
	}
	t.used = int(got)
	for i := range t.headers[:got] {
		h := &t.headers[i]
		d := parseControl(t.control[i][:h.Controllen])
		d.data, d.port = t.buffers[i*t.size:][:h.n], r.port
		d.from = binary.BigEndian.Uint32(t.names[i].Addr[:])
		d.source = t.names[i].Port // in network order, as a name
		f(d)
	}
	return int(got), nil
}

// drain discards the waiting datagrams of an earlier run.
func (r *receiver) drain() error {
	for {
		if n, err := r.receive(func(datagram) {}); n == 0 || err != nil {
			return err
		}
	}
}

// drops returns the number of datagrams that the socket has dropped for lack of room since it was
// opened (the last word of SO_MEMINFO, the drops of /proc/net/udp).
func (r *receiver) drops() int64 {
	const dropsAt = 8 // SK_MEMINFO_DROPS, linux/sock_diag.h
	var info [dropsAt + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(r.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return int64(info[dropsAt])
}

// parseControl reads the ancillary data of a datagram: struct cmsghdr and its data, each aligned to
// 8 bytes.
func parseControl(b []byte) (d datagram) {
	const header = unix.SizeofCmsghdr
	for len(b) >= header {
		size := binary.NativeEndian.Uint64(b)
		if size < header || size > uint64(len(b)) {
			return d
		}
		body := b[header:size]
		switch key := binary.NativeEndian.Uint64(b[8:]); {
		case key == controlKey(unix.SOL_SOCKET, unix.SCM_TIMESTAMPNS) && len(body) >= 16:
			d.at = int64(binary.NativeEndian.Uint64(body))*1e9 + int64(binary.NativeEndian.Uint64(body[8:]))
		case key == controlKey(unix.IPPROTO_IP, unix.IP_TOS) && len(body) >= 1:
			d.tos = body[0]
		}
		b = b[min(uint64(len(b)), (size+7)&^7):]
	}
	return d
}

// controlKey combines level and type of ancillary data in one number.
func controlKey(level, kind uint32) uint64 {
	var b [8]byte
	binary.NativeEndian.PutUint32(b[:], level)
	binary.NativeEndian.PutUint32(b[4:], kind)
	return binary.NativeEndian.Uint64(b[:])
}
