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

// Progress is a connection that ends when nothing has crossed for a time, in either direction: Read
// and Write return os.ErrDeadlineExceeded then. A slow transfer goes on if it is written in small
// pieces, as TLS does.
type Progress struct {
	net.Conn
	limit time.Duration
}

// sendBuffer is how much a Progress gives the kernel to send, in bytes. What waits there counts as
// sent. Ours: at 10 kB/s it crosses within seconds.
const sendBuffer = 64 << 10

// NewProgress returns c with a limit.
func NewProgress(c net.Conn, limit time.Duration) *Progress {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetWriteBuffer(sendBuffer) // without it the limit is only less exact
	}
	return &Progress{c, limit}
}

// Read implements net.Conn.
func (p *Progress) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if n > 0 {
		p.crossed()
	}
	return n, err
}

// Write implements net.Conn.
func (p *Progress) Write(b []byte) (int, error) {
	p.crossed()
	return p.Conn.Write(b)
}

// crossed gives what crosses next, in either direction, the whole limit.
func (p *Progress) crossed() { _ = p.SetDeadline(time.Now().Add(p.limit)) } // fails once it is closed

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
