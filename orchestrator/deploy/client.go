package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"weft/internal/control"
)

// client is a connection to the supervisor of a lab, for one request.
type client struct {
	conn *control.Conn
	pid  int // of the supervisor
}

// Close ends the request.
func (c *client) Close() error { return c.conn.Close() }

// send sends a request. If the supervisor has hung up, the error is the reason that it gave before.
func (c *client) send(kind string, body any, fds ...int) error {
	err := c.conn.SendValue(kind, body, fds...)
	if control.Gone(err) {
		if m, _, failed := c.conn.Recv(); failed == nil && m.Kind == control.KindError {
			return m.Is("", nil)
		}
	}
	return err
}

// dial connects to a lab's supervisor.
func dial(r *Root, name string) (*client, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir, err := r.folder(name)
	if missing(err) {
		return nil, Unreachable(name)
	}
	if err != nil {
		return nil, fmt.Errorf("lab %s: %w", name, err)
	}
	defer dir.Close()
	folder, err := dir.Open(".")
	if err != nil {
		return nil, fmt.Errorf("lab %s: %w", name, err)
	}
	defer folder.Close()
	sock, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: viaDescriptor(folder, socketFile), Net: "unix"})
	if errors.Is(err, syscall.ECONNREFUSED) || missing(err) { // nobody listens
		return nil, fmt.Errorf("lab %s has %w (%w); weft clean removes what is left of it", name, ErrCrashed,
			errors.Unwrap(err))
	}
	if err != nil { // the socket's backlog is full
		return nil, fmt.Errorf("lab %s: its supervisor does not answer (%w); weft destroy %s ends it", name,
			errors.Unwrap(err), name)
	}
	who, err := peer(sock)
	if err != nil {
		sock.Close()
		return nil, fmt.Errorf("lab %s: %w", name, err)
	}
	return &client{conn: control.New(sock), pid: int(who.Pid)}, nil
}

// A Handle gives access to a deployed lab. Every method is one request to the supervisor. It gives
// up if the supervisor does not answer within helloTime, however long the request itself may take.
type Handle struct {
	root *Root
	name string
}

// Open returns a handle on a deployed lab. The caller keeps the state directory open while it uses
// the handle.
func Open(r *Root, name string) (*Handle, error) {
	h := &Handle{root: r, name: name}
	c, err := dial(r, name)
	if err != nil {
		return nil, err
	}
	return h, c.Close()
}

// Name returns the lab's name.
func (h *Handle) Name() string { return h.name }

// ErrCrashed is returned for a lab whose supervisor is gone.
var ErrCrashed = errors.New("crashed")

// helloTime is the time limit for a supervisor to answer the greeting before any request: one that
// is stopped does not. Our own choice: it takes milliseconds.
const helloTime = 5 * time.Second

// reach connects to the supervisor for a request that may take long, if it answers a greeting.
func (h *Handle) reach() (*client, error) {
	err := h.callWithin(helloTime, kindHello, nil, kindDone, nil)
	if err != nil && !errors.As(err, new(*control.RemoteError)) { // any answer is one
		return nil, err
	}
	return dial(h.root, h.name)
}

// watched calls answered, which waits for the answers to a request of any length on c. It ends c
// when the supervisor does not answer a greeting meanwhile, and then returns that.
func (h *Handle) watched(c *client, answered func() error) error {
	quit, silent := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(silent)
		tick := time.NewTicker(helloTime)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
			}
			err := h.callWithin(helloTime, kindHello, nil, kindDone, nil)
			if errors.As(err, new(*silentError)) { // of an end, c learns itself
				silent <- err
				c.Close()
				return
			}
		}
	}()
	err := answered()
	close(quit)
	if err == nil {
		return nil // it came while a greeting was under way
	}
	select {
	case why := <-silent:
		return cmp.Or(why, err)
	default:
		return err
	}
}

// silentError says that a supervisor is there and does not answer.
type silentError struct {
	lab  string
	pid  int
	wait time.Duration
}

// Error implements error.
func (e *silentError) Error() string {
	return fmt.Sprintf("lab %s: its supervisor (process %d) does not answer within %v; weft destroy %s ends it",
		e.lab, e.pid, e.wait, e.lab)
}

// callTime is the time limit for a supervisor to answer other requests. Our own choice: even the
// boot of a node takes a fraction of it.
const callTime = 20 * time.Second

// call makes a request and decodes its answer.
func (h *Handle) call(kind string, body any, answer string, into any) error {
	return h.callWithin(callTime, kind, body, answer, into)
}

// callWithin is call with a time limit, and descriptors that go with the request.
func (h *Handle) callWithin(wait time.Duration, kind string, body any, answer string, into any, fds ...int) error {
	connect := h.reach
	if wait <= helloTime {
		connect = func() (*client, error) { return dial(h.root, h.name) }
	}
	c, err := connect()
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.conn.SetReadDeadline(time.Now().Add(wait))
	if err = c.send(kind, body, fds...); err == nil {
		_, err = c.conn.Expect(answer, into)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &silentError{h.name, c.pid, wait}
	}
	if control.Gone(err) { // it ended before it answered
		if gone := h.ended(); gone != nil {
			return gone
		}
	}
	return err
}

// stateOf returns the state of a lab.
func stateOf(r *Root, name string) (*State, error) { return (&Handle{r, name}).State() }

// State returns the present state of the lab. It is an error if the lab's network does not answer.
func (h *Handle) State() (*State, error) {
	s := new(State)
	if err := h.call(kindState, nil, kindState, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Hosts returns the names of the lab's hosts.
func (h *Handle) Hosts() (names []string, err error) {
	s, err := h.State()
	if err != nil {
		return nil, err
	}
	for _, n := range s.Nodes {
		if n.Address != "" && n.MAC != "" { // switches have no MAC
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// Link changes a link.
func (h *Handle) Link(k Link) error { return h.call(kindLink, k, kindDone, nil) }

// nodeTime is callTime for actions on nodes. Our own choice: a supervisor waits for a busy
// container engine for 20 s to remove a container, and then for a minute until the next one is up.
const nodeTime = 2 * time.Minute

// Node kills, pauses, resumes or restarts a node.
func (h *Handle) Node(n Node) error { return h.callWithin(nodeTime, kindNode, n, kindDone, nil) }

// Exec runs a program in a node until it ends and returns its exit status. The files are its
// standard input, output and error, or one terminal for all three. When ctx ends, the supervisor
// ends the program.
func (h *Handle) Exec(ctx context.Context, e Exec, files ...*os.File) (Exit, error) {
	c, err := h.reach()
	if err != nil {
		return Exit{}, err
	}
	defer c.Close()
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	if err := c.send(kindExec, e, fds...); err != nil {
		return Exit{}, err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = c.conn.SendValue(kindSignal, nil) // any message ends the program
		_ = c.conn.SetReadDeadline(time.Now().Add(3 * time.Second))
	})
	defer stop()
	var exit Exit
	err = h.watched(c, func() error {
		_, err := c.conn.Expect(kindExit, &exit)
		return err
	})
	if ctx.Err() != nil {
		return exit, ctx.Err()
	}
	if control.Gone(err) {
		return Exit{Code: CodeNode, Ended: "its supervisor has ended"}, nil
	}
	if err != nil {
		return Exit{}, err
	}
	return exit, nil
}

// Events calls f for every event so far. With follow it then calls f for new events until the lab
// or ctx ends. A supervisor that ends without a last word is an error: it was killed.
func (h *Handle) Events(ctx context.Context, follow bool, f func(Event) error) error {
	err := stream(ctx, h, kindEvents, Follow{follow}, kindEvent, f, kindDone, nil)
	if ctx.Err() != nil {
		return nil
	}
	if control.Gone(err) {
		if gone := h.ended(); gone != nil {
			return gone
		}
	}
	return err
}

// Crashed returns ErrCrashed if the supervisor is gone and nobody takes the lab down.
func (h *Handle) Crashed() error {
	lock, err := h.root.Lock(h.name, lockTime)
	if err != nil { // whoever takes it down holds the lock, or has removed the directory
		return nil
	}
	defer h.root.Remove() // if it is empty
	defer lock.Unlock()
	if err := h.ended(); errors.Is(err, ErrCrashed) {
		return err
	}
	return nil
}

// exitTime is the time limit for a supervisor that is killed to stop listening. Our own choice:
// milliseconds on an idle machine.
const exitTime = 5 * time.Second

// ended returns why a supervisor that has hung up answers no more; nil: it does. One that is killed
// listens for a moment after its connections are closed.
func (h *Handle) ended() error {
	for over := time.Now().Add(exitTime); ; time.Sleep(exitTime / 500) {
		c, err := dial(h.root, h.name)
		if err != nil {
			return err
		}
		_ = c.conn.SetReadDeadline(over)
		if err = c.send(kindState, nil); err == nil {
			_, err = c.conn.Expect(kindState, nil)
		}
		c.Close()
		if !control.Gone(err) || time.Now().After(over) {
			return nil
		}
	}
}

// stream makes a request that is answered by any number of parts, for which it calls f, and by a
// last message, which it decodes into a value unless that is nil. It ends early, with an error, if
// ctx ends or f returns one.
func stream[T any](ctx context.Context, h *Handle, kind string, body any, part string, f func(T) error,
	last string, into any) error {
	c, err := h.reach()
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := c.send(kind, body); err != nil {
		return err
	}
	return h.watched(c, func() error { return receive(ctx, h, c, part, f, last, into) })
}

// receive receives the answers of stream.
func receive[T any](ctx context.Context, h *Handle, c *client, part string, f func(T) error, last string,
	into any) error {
	for {
		m, _, err := c.conn.Recv()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("lab %s: %w", h.name, err)
		case m.Kind != part:
			return m.Is(last, into)
		}
		var v T
		if err := m.Decode(&v); err != nil {
			return err
		}
		if err := f(v); err != nil {
			return err
		}
	}
}

// Capture has copies of frames sent to a socket (SOCK_SEQPACKET, unix(7)) and returns what they are
// copies of. The caller keeps the other end of the socket, and ends the capture by closing it.
func (h *Handle) Capture(c Capture, socket *os.File) (is Capturing, err error) {
	err = h.callWithin(callTime, kindCapture, c, kindCapture, &is, int(socket.Fd()))
	return is, err
}
