package deploy

import (
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

// dial connects to a lab's supervisor.
func dial(r *Root, name string) (*client, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	dir, err := r.folder(name)
	if missing(err) {
		return nil, fmt.Errorf("lab %s: %w", name, ErrNotDeployed)
	}
	if errors.Is(err, errForeign) {
		return nil, fmt.Errorf("lab %s: %w; weft destroy %s ends what runs of it", name, err, name)
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
	sock, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: through(folder, socketFile), Net: "unix"})
	if errors.Is(err, syscall.ECONNREFUSED) || missing(err) { // nobody listens, or nobody ever did
		return nil, fmt.Errorf("lab %s has %w (%w); weft clean removes what is left of it", name, ErrCrashed, errors.Unwrap(err))
	}
	if err != nil { // so many wait for an answer that no more may
		return nil, fmt.Errorf("lab %s: its supervisor does not answer (%w); weft destroy %s ends it", name, errors.Unwrap(err), name)
	}
	who, err := peer(sock)
	if err != nil || int(who.Uid) != os.Geteuid() {
		sock.Close()
		return nil, fmt.Errorf("lab %s: its supervisor belongs to another user", name)
	}
	return &client{conn: control.New(sock), pid: int(who.Pid)}, nil
}

// A Handle is a deployed lab, as seen from outside. Every method is a request of its own to the supervisor.
type Handle struct {
	root *Root
	name string
}

// Open returns a deployed lab. The state directory stays the caller's.
func Open(r *Root, name string) (*Handle, error) {
	h := &Handle{root: r, name: name}
	c, err := dial(r, name)
	if err != nil {
		return nil, err
	}
	return h, c.Close()
}

// Name is the lab's.
func (h *Handle) Name() string { return h.name }

// ErrCrashed is returned for a lab whose supervisor is no more.
var ErrCrashed = errors.New("crashed")

// stateTime is how long a supervisor may take to say how its lab is. Ours: it takes milliseconds.
const stateTime = 5 * time.Second

// askTime is how long a supervisor may take for an answer. Ours: a node boots in a fraction of it.
const askTime = 20 * time.Second

// ask makes a request and reads its answer.
func (h *Handle) ask(kind string, body any, answer string, into any) error {
	return h.askWithin(askTime, kind, body, answer, into)
}

// askWithin does so, and waits for the answer for so long.
func (h *Handle) askWithin(wait time.Duration, kind string, body any, answer string, into any) error {
	c, err := dial(h.root, h.name)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.conn.SetReadDeadline(time.Now().Add(wait))
	if err := c.conn.SendValue(kind, body); err != nil {
		return err
	}
	_, err = c.conn.Expect(answer, into)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("lab %s: its supervisor (process %d) does not answer within %v; weft destroy %s ends it", h.name, c.pid, wait, h.name)
	}
	return err
}

// stateOf asks a lab's supervisor how it is.
func stateOf(r *Root, name string) (*State, error) { return (&Handle{r, name}).State() }

// State is what the lab is like.
func (h *Handle) State() (*State, error) {
	s := new(State)
	if err := h.askWithin(stateTime, kindState, nil, kindState, s); err != nil {
		return nil, err
	}
	return s, nil
}

// Link changes a link.
func (h *Handle) Link(k Link) error { return h.ask(kindLink, k, kindDone, nil) }

// Node does something to a node.
func (h *Handle) Node(n Node) error { return h.ask(kindNode, n, kindDone, nil) }

// Exec runs a program in a node until it ends, and returns how. The files are its standard input, output and error, or
// a terminal that is all of them. When ctx ends the program is told to end.
func (h *Handle) Exec(ctx context.Context, e Exec, files ...*os.File) (Exit, error) {
	c, err := dial(h.root, h.name)
	if err != nil {
		return Exit{}, err
	}
	defer c.Close()
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	if err := c.conn.SendValue(kindExec, e, fds...); err != nil {
		return Exit{}, err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = c.conn.SendValue(kindSignal, nil) // any word ends it
		_ = c.conn.SetReadDeadline(time.Now().Add(3 * time.Second))
	})
	defer stop()
	var exit Exit
	_, err = c.conn.Expect(kindExit, &exit)
	if ctx.Err() != nil {
		return exit, ctx.Err()
	}
	if err != nil && isEnd(err) {
		return Exit{Code: CodeNode, Ended: "its supervisor has ended"}, nil
	}
	if err != nil {
		return Exit{}, err
	}
	return exit, nil
}

// Events calls f with every event so far and, with follow, with those to come until the lab or ctx ends.
func (h *Handle) Events(ctx context.Context, follow bool, f func(Event) error) error {
	c, err := dial(h.root, h.name)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := c.conn.SendValue(kindEvents, Follow{follow}); err != nil {
		return err
	}
	for {
		m, _, err := c.conn.Recv()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && isEnd(err):
			return nil // the lab has ended
		case err != nil:
			return err
		case m.Kind == kindDone:
			return nil
		case m.Kind != kindEvent:
			return fmt.Errorf("%q was not expected", m.Kind)
		}
		var e Event
		if err := m.Decode(&e); err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// Capture has copies of frames sent to a socket of which the caller keeps the other end, and returns what they are of.
// It ends when that end is closed. The socket is one of messages: unix(7), SOCK_SEQPACKET.
func (h *Handle) Capture(c Capture, socket *os.File) (Capturing, error) {
	d, err := dial(h.root, h.name)
	if err != nil {
		return Capturing{}, err
	}
	defer d.Close()
	_ = d.conn.SetReadDeadline(time.Now().Add(askTime))
	if err := d.conn.SendValue(kindCapture, c, int(socket.Fd())); err != nil {
		return Capturing{}, err
	}
	var is Capturing
	_, err = d.conn.Expect(kindCapture, &is)
	return is, err
}
