package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/clip"
)

// FD is the descriptor of the control connection that a process of a lab inherits.
const FD = 3

// KindError is the kind of a message that reports the sender's failure. Its body is the text, a
// string.
const KindError = "error"

// RemoteError is an error that the peer reported in a message of KindError.
type RemoteError struct{ Text string }

// Error returns the text, clipped: the peer may have written anything.
func (e *RemoteError) Error() string { return clip.Lines(e.Text) }

// Conn is one end of a control connection. Several goroutines may call Send; only one at a time may
// call Recv. Close unblocks both.
//
// Send blocks while the peer does not read, so a process must not send without limit while it
// leaves its own side unread. One that has no time to wait calls Postpone.
type Conn struct {
	sock *net.UnixConn
	most int    // see Limit
	src  source // owned by Recv; unbuffered, so that it holds nothing that Recv has not returned: see Inherit

	mu   sync.Mutex // guards what follows and the order of frames
	out  []byte
	keep int    // see Postpone
	kept []byte // not sent yet
}

// New returns a connection over a connected Unix stream socket and takes ownership of the socket.
func New(sock *net.UnixConn) *Conn {
	return &Conn{sock: sock, most: MaxBody, src: source{sock: sock, oob: make([]byte, unix.CmsgSpace(4*MaxFDs))}}
}

// Open returns the connection on an inherited descriptor and closes the descriptor itself.
func Open(fd int) (*Conn, error) {
	f := os.NewFile(uintptr(fd), "control")
	if f == nil {
		return nil, fmt.Errorf("control: %d is not a descriptor", fd)
	}
	return Of(f)
}

// Of returns the connection on a file, and closes the file.
func Of(f *os.File) (*Conn, error) {
	defer f.Close()
	n, err := net.FileConn(f) // duplicates
	if err != nil {
		return nil, fmt.Errorf("control: %s: %w", f.Name(), err)
	}
	sock, ok := n.(*net.UnixConn)
	if !ok {
		n.Close()
		return nil, fmt.Errorf("control: %s is a %s socket, not a Unix one", f.Name(), n.LocalAddr().Network())
	}
	return New(sock), nil
}

// Pair returns a connection and its other end, a file for a child process to inherit.
func Pair() (ours *Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("control: socketpair: %w", err)
	}
	ours, err = Open(fds[0])
	if err != nil {
		unix.Close(fds[1])
		return nil, nil, err
	}
	return ours, os.NewFile(uintptr(fds[1]), "control"), nil
}

// Connected returns both ends of a connection within this process.
func Connected() (a, b *Conn, err error) {
	a, file, err := Pair()
	if err != nil {
		return nil, nil, err
	}
	if b, err = Of(file); err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}

// Close closes the connection and all received descriptors that nobody took.
func (c *Conn) Close() error { return c.sock.Close() }

// Inherit puts a copy of the connection's descriptor at fd, open across exec, for the program that
// this process is about to execute. That program receives the messages that were not received yet.
func (c *Conn) Inherit(fd int) error {
	raw, err := c.sock.SyscallConn()
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	var dup error
	if err := raw.Control(func(s uintptr) { dup = unix.Dup3(int(s), fd, 0) }); err != nil {
		return fmt.Errorf("control: %w", err)
	}
	if dup != nil {
		return fmt.Errorf("control: duplicate to descriptor %d: %w", fd, dup)
	}
	return nil
}

// Descriptor returns the connection's descriptor, for an event loop that waits for input. The
// connection still owns it.
func (c *Conn) Descriptor() (fd int, err error) {
	raw, err := c.sock.SyscallConn()
	if err == nil {
		err = raw.Control(func(s uintptr) { fd = int(s) })
	}
	if err != nil {
		return -1, fmt.Errorf("control: %w", err)
	}
	return fd, nil
}

// SetReadDeadline makes a Recv that waits beyond t return os.ErrDeadlineExceeded; the zero time
// removes the deadline. After that error, the connection cannot be read any further.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.sock.SetReadDeadline(t) }

// Limit sets the largest body that Recv accepts, in bytes; it is MaxBody otherwise. A peer that is
// not trusted cannot make the receiver decode more.
func (c *Conn) Limit(body int) { c.most = min(body, MaxBody) }

// Send sends m and copies of fds, which the caller still owns. It returns when the kernel has
// accepted everything.
func (c *Conn) Send(m Message, fds ...int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, err := appendFrame(c.out[:0], m, len(fds))
	if err != nil {
		return err
	}
	if cap(b) <= 1<<20 { // do not keep the buffer of one large result for the rest of the run
		c.out = b
	}
	if len(fds) == 0 && len(c.kept)+len(b) <= c.keep {
		c.kept = append(c.kept, b...)
		if err := c.sendKept(); err != nil {
			return fmt.Errorf("control: send %q: %w", m.Kind, err)
		}
		return nil
	}
	if _, err := c.sock.Write(c.kept); err != nil {
		return fmt.Errorf("control: send %q: %w", m.Kind, err)
	}
	c.kept = nil
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	n, _, err := c.sock.WriteMsgUnix(b, rights, nil) // descriptors go with the first byte
	if err == nil && n < len(b) {
		_, err = c.sock.Write(b[n:])
	}
	if err != nil {
		return fmt.Errorf("control: send %q: %w", m.Kind, err)
	}
	return nil
}

// Postpone makes Send keep up to most bytes that the peer does not take at once, and return: a peer
// that stands still does not hold up this process. Later calls of Send send what was kept. After
// Postpone(0) the next one sends all of it and waits, as Send does for more than most bytes.
func (c *Conn) Postpone(most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep = most
}

// sendKept sends what was kept until the peer takes no more.
func (c *Conn) sendKept() error {
	raw, err := c.sock.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for len(c.kept) > 0 && failed == nil {
			var n int
			if n, failed = unix.Write(int(fd), c.kept); n > 0 {
				c.kept = c.kept[n:]
			}
			if failed == unix.EINTR {
				failed = nil
			}
		}
		return true
	})
	if failed == unix.EAGAIN {
		failed = nil
	}
	if len(c.kept) == 0 {
		c.kept = nil
	}
	return errors.Join(err, failed)
}

// SendValue sends v as the JSON body of a message. A nil v sends an empty body.
func (c *Conn) SendValue(kind string, v any, fds ...int) error {
	m, err := Encode(kind, v)
	if err != nil {
		return err
	}
	return c.Send(m, fds...)
}

// Encode returns a message with v as its JSON body; a nil v is an empty body.
func Encode(kind string, v any) (m Message, err error) {
	m.Kind = kind
	if v != nil {
		if m.Body, err = json.Marshal(v); err != nil {
			return m, fmt.Errorf("control: body of %q: %w", kind, err)
		}
	}
	return m, nil
}

// SendError reports a failure of this side: the peer's Expect returns it as a *RemoteError.
func (c *Conn) SendError(err error) error { return c.SendValue(KindError, err.Error()) }

// Recv waits for the next message. The caller owns the descriptors that came with it; they are
// closed on exec. Recv returns io.EOF when the peer is gone and everything it sent has been read.
// After any other error the connection is unusable.
func (c *Conn) Recv() (Message, []int, error) {
	m, n, err := readFrame(&c.src, c.most)
	if err == nil && n > len(c.src.fds) {
		err = fmt.Errorf("control: %q announced %d descriptors, %d came", m.Kind, n, len(c.src.fds))
	}
	if err != nil {
		c.src.drop()
		return Message{}, nil, err
	}
	return m, c.src.take(n), nil
}

// Expect waits for the next message, which must have the given kind, and decodes its body into v
// unless v is nil. A message of KindError becomes a *RemoteError.
func (c *Conn) Expect(kind string, v any) ([]int, error) {
	m, fds, err := c.Recv()
	if err != nil {
		return nil, err
	}
	err = m.Is(kind, v)
	if err != nil {
		CloseAll(fds)
		return nil, err
	}
	return fds, nil
}

// Gone reports whether err of a connection means that the other end is gone.
func Gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}

// Is decodes the body of a message, which must have the given kind, into v unless v is nil. See
// Conn.Expect.
func (m Message) Is(kind string, v any) error {
	switch {
	case m.Kind == kind && v == nil:
		return nil
	case m.Kind == kind:
		return m.Decode(v)
	case m.Kind == KindError:
		var text string
		if err := m.Decode(&text); err != nil {
			return err
		}
		return &RemoteError{Text: text}
	}
	return fmt.Errorf("control: %q came where %q was expected", m.Kind, kind)
}

// With decodes the body of a message and calls f with it.
func With[T any](m Message, f func(*T) error) error {
	body := new(T)
	if err := m.Decode(body); err != nil {
		return err
	}
	return f(body)
}

// source reads the byte stream and collects the descriptors that come with it, in order.
//
// The kernel may join the bytes of earlier messages to those of a message with descriptors, but
// never returns the descriptors of two messages at once (unix_stream_read_generic). So the n-th
// announced descriptor is the n-th to arrive, and it has arrived when its message is complete.
type source struct {
	sock *net.UnixConn
	oob  []byte
	fds  []int // received, not yet taken
}

func (s *source) Read(p []byte) (int, error) {
	n, oobn, flags, _, err := s.sock.ReadMsgUnix(p, s.oob)
	if oobn > 0 {
		if e := s.keep(s.oob[:oobn]); e != nil && err == nil {
			err = e
		}
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, unix.ECONNRESET): // reset: the peer closed with unread input
		return 0, io.EOF
	case err != nil:
		return 0, err
	case flags&unix.MSG_CTRUNC != 0:
		return 0, errors.New("control: descriptors were cut off: too many open files?")
	case len(s.fds) > 4*MaxFDs:
		return 0, fmt.Errorf("control: %d descriptors came that no message announced", len(s.fds))
	}
	return n, nil
}

// keep collects the descriptors in a control message.
func (s *source) keep(oob []byte) error {
	ms, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return fmt.Errorf("control: ancillary data: %w", err)
	}
	for _, m := range ms {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fmt.Errorf("control: ancillary data: %w", err)
		}
		s.fds = append(s.fds, fds...)
	}
	return nil
}

func (s *source) take(n int) []int {
	if n == 0 {
		return nil
	}
	fds := append([]int(nil), s.fds[:n]...)
	s.fds = append(s.fds[:0], s.fds[n:]...)
	return fds
}

func (s *source) drop() {
	CloseAll(s.fds)
	s.fds = nil
}

// CloseAll closes descriptors, such as those that came with a message.
func CloseAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
