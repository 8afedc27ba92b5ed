// Package sockbuf sizes the buffers of sockets, beyond the system's limits where the process may.
package sockbuf

import "golang.org/x/sys/unix"

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
