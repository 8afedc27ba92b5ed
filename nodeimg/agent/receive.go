package agent

import (
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"weft/transport/wire"
)

// batch is the most datagrams taken by one system call.
const batch = 32

// maxDatagram is room for the longest UDP payload a lab can use: wire.MaxPayload and a header, or a jumbo
// frame's worth, whichever the IP packet allows.
const maxDatagram = 1<<16 - 1 - 28

// datagram is what has arrived: bytes, and what the kernel says about them.
type datagram struct {
	data []byte
	from uint32 // IPv4 address
	at   int64  // CLOCK_REALTIME in nanoseconds when the kernel got it; 0: it did not say
	tos  uint8
	port uint16 // where it came to; 0: wire.Port
}

// receiver reads datagrams in batches from a socket, that bound to the transport's port or one for synchronization.
type receiver struct {
	fd      int
	headers [batch]mmsghdr
	vectors [batch]unix.Iovec
	names   [batch]unix.RawSockaddrInet4
	control [batch][controlSize]byte
	buffers []byte
	size    int
	port    uint16 // of the datagrams; 0: wire.Port
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	n uint32
	_ [4]byte
}

// controlSize is room for a time stamp and a TOS, each with its header, and to spare.
const controlSize = 96

// newReceiver prepares fd, a UDP socket bound to wire.Port, for reading datagrams of up to size bytes.
func newReceiver(fd, size int) (*receiver, error) {
	for _, o := range []struct {
		what         string
		level, value int
	}{
		{"receive time stamps", unix.SOL_SOCKET, unix.SO_TIMESTAMPNS},
		{"receive the TOS", unix.IPPROTO_IP, unix.IP_RECVTOS},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.value, 1); err != nil {
			return nil, fmt.Errorf("socket for port %d: %s: %w", wire.Port, o.what, err)
		}
	}
	size = min(size, maxDatagram)
	r := &receiver{fd: fd, size: size, buffers: make([]byte, batch*size)}
	for i := 0; i < len(r.buffers); i += os.Getpagesize() {
		r.buffers[i] = 0 // now, not while the first packets come
	}
	for i := range r.headers {
		r.vectors[i] = unix.Iovec{Base: &r.buffers[i*size], Len: uint64(size)}
		h := &r.headers[i].Msghdr
		h.Iov, h.Iovlen = &r.vectors[i], 1
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Control = &r.control[i][0]
	}
	return r, nil
}

// receive takes what is there, up to batch datagrams, and gives each to f, which must not keep it.
func (r *receiver) receive(f func(datagram)) (n int, err error) {
	for i := range r.headers {
		r.headers[i].Namelen = unix.SizeofSockaddrInet4
		r.headers[i].Controllen = controlSize
	}
	got, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(r.fd), uintptr(unsafe.Pointer(&r.headers)), batch, unix.MSG_DONTWAIT, 0, 0)
	if errno == unix.EAGAIN || errno == unix.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, fmt.Errorf("recvmmsg: %w", errno)
	}
	for i := range r.headers[:got] {
		h := &r.headers[i]
		d := parseControl(r.control[i][:h.Controllen])
		d.data, d.port = r.buffers[i*r.size:][:h.n], r.port
		d.from = binary.BigEndian.Uint32(r.names[i].Addr[:])
		f(d)
	}
	return int(got), nil
}

// drops returns how many datagrams the socket had no room for since it was opened (SO_MEMINFO, whose last
// word is what /proc/net/udp calls drops).
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

// parseControl reads the ancillary data of a datagram: struct cmsghdr and its data, each aligned to 8 bytes.
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

// controlKey is the level and the type of ancillary data as one word of memory.
func controlKey(level, kind uint32) uint64 {
	var b [8]byte
	binary.NativeEndian.PutUint32(b[:], level)
	binary.NativeEndian.PutUint32(b[4:], kind)
	return binary.NativeEndian.Uint64(b[:])
}
