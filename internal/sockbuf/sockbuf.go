// Package sockbuf sizes the buffers of sockets, beyond the system's limits where the process may,
// and reads what the kernel says of a datagram.
package sockbuf

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Stamp returns the kernel's stamp of a datagram's arrival (SO_TIMESTAMPNS), in ns of
// CLOCK_REALTIME, or 0 if the message is another one.
func Stamp(m *unix.SocketControlMessage) int64 {
	if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_TIMESTAMPNS || len(m.Data) < 16 {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(m.Data))*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
}

// StampOf returns the stamp among the control messages of a datagram, or 0 if there is none.
func StampOf(control []byte) int64 {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for i := range messages {
		if at := Stamp(&messages[i]); at != 0 {
			return at
		}
	}
	return 0
}

// Receive asks for a receive buffer of n bytes: beyond the system's limit if the process may,
// otherwise up to it.
func Receive(fd, n int) error { return set(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, n) }

// Send does the same for the send buffer.
func Send(fd, n int) error { return set(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, n) }

func set(fd, forced, limited, n int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, forced, n) == nil {
		return nil
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, limited, n)
}
