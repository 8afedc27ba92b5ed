// Package remote limits what connections with other machines cost before their other end is known,
// and after it is lost.
package remote

import (
	"cmp"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EndLost returns a Control of net.Dialer and net.ListenConfig. It has the kernel end a connection
// whose other end has acknowledged nothing for limit (TCP_USER_TIMEOUT, RFC 5482).
func EndLost(limit time.Duration) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
		})
		return cmp.Or(err, failed)
	}
}

// Strangers are the connections whose other end has not proved yet who it is. Clients with a key
// are among them for milliseconds, so the oldest is closed when there are too many. The methods are
// safe for concurrent use.
type Strangers struct {
	Most int // connections, at least 1

	mu  sync.Mutex
	all []net.Conn // from the oldest on
}

// Add adds a connection.
func (s *Strangers) Add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == s.Most {
		_ = s.all[0].Close() // its goroutine gets the error
		s.all = s.all[1:]
	}
	s.all = append(s.all, c)
}

// Remove removes a connection whose other end is known, or that has ended, if it is there.
func (s *Strangers) Remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(one net.Conn) bool { return one == c })
}
