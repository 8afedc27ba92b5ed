package machine

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/internal/remote"
	"weft/nodeimg/boot"
	"weft/realtime"
	"weft/units"
)

// Limits in real time. Ours.
const (
	// silence is the longest time without a message on a session, without an acknowledgement on any
	// connection, and for connecting with its handshake.
	silence = 3 * time.Second
	// launchSilence is silence while machines start processes, also for connections that are made
	// meanwhile: on a busy machine an agent may not get to send anything. The kernel still notices
	// the loss of the machine within silence.
	launchSilence = 10 * time.Second
	// beat is the interval of heartbeats on a session.
	beat = 500 * time.Millisecond
)

// Limits of what an agent may send in one message, in bytes, but for the messages of processes that
// it passes on. Ours: captured frames and output take 350 KB (window), and what is said of a node
// when it is up some hundred bytes.
const (
	maxMessage = 1 << 20
	maxOfNode  = 4 << 10 // more for each node, on a session
)

// Kinds of message. Each connection begins with one that says what it is: session, process, stream,
// exec, tap, module, control or measure, or join to a meeting. All but the last two belong to a
// run, whose number nobody else knows.
const (
	kindSession = "session" // session; answered by up or an error
	kindUp      = "up"      // up
	kindProcess = "process" // process; the messages of the process follow
	kindStream  = "stream"  // stream; answered by up or an error, then it is released
	kindExec    = "exec"    // execution; see there
	kindTap     = "tap"     // tap; answered by up or an error, then captured frames follow
	kindModule  = "module"  // module; its bytes follow, answered by up or an error
	kindControl = "control" // order; answered by node or an error
	kindHere    = "here"    // no body: a heartbeat, both ways on a session
	kindClock   = "clock"   // clock: a request on a session, and its answer
	kindExit    = "exit"    // exit: a process has ended
	kindNode    = "node"    // node

	kindMeasure  = "measure"  // nothing; answered by capacity or an error
	kindCapacity = "capacity" // emulate.Capacity
	kindJoin     = "join"     // join, to a meeting: an agent is there
)

// session asks for a part of a run.
type session struct {
	Run    string
	Build  string
	Me     int      // the part, from 0
	Peers  []string // addresses of all agents of the run, by part
	Lab    string
	Nodes  []boot.NodeSpec
	Memory units.Bytes
	Env    []string

	Standing bool // see runtime.Spec
}

// up says what was started.
type up struct {
	Bound  string
	Fabric boot.Report
	Nodes  []node
}

// node describes the process of a node.
type node struct {
	PID    int // there
	Cable  boot.Link
	Report boot.Report
}

// process asks for the connection to the process of a node, or fabricProcess.
type process struct {
	Run  string
	Node int
}

const fabricProcess = -1

// stream asks for the stream between two parts.
type stream struct {
	Run      string
	From, To int
}

// join says that an agent listens, at a port of the address that the connection comes from.
type join struct {
	Build string
	Host  string // name of the machine
	Port  int
}

// clock is a request for an agent's clock, and its answer: CLOCK_MONOTONIC of the asking machine
// and of the agent's, in nanoseconds.
type clock struct{ Asked, Now int64 }

// exit is the end of a process.
type exit struct {
	Name, State, Stderr string
	PID                 int // there

	lost bool // see runtime.ExitError
}

// link is a connection to another machine.
type link struct {
	*control.Conn
	far      *tls.Conn
	released atomic.Bool
	over     chan struct{} // closed when far is not in use any more
}

// dial connects to an agent and sends the first message, which says what the connection is.
func dial(ctx context.Context, addr string, config *tls.Config, kind string, what any) (*link, error) {
	limit := silence
	if kind == kindProcess || kind == kindStream {
		limit = launchSilence
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: silence, KeepAliveConfig: alive, Control: endLost}, Config: config}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, silent(err)
	}
	conn, err := messages(c.(*tls.Conn))
	if err != nil {
		return nil, err
	}
	if kind != kindProcess { // what processes say is checked where they are asked
		conn.Limit(maxMessage)
	}
	if err = conn.SendValue(kind, what); err != nil {
		conn.Close()
	}
	return conn, err
}

// errSilent says that nothing has come for too long.
var errSilent = errors.New("nothing came for too long, so its machine is stopped, out of reach or too busy")

// silent returns errSilent for the error of a deadline, and others as they are.
func silent(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		return errSilent
	}
	return err
}

// listenConfig makes listeners whose connections end when their network does.
var listenConfig = net.ListenConfig{KeepAliveConfig: alive, Control: endLost}

// Listen listens for connections from other machines.
func Listen(addr string) (net.Listener, error) {
	return listenConfig.Listen(context.Background(), "tcp", addr)
}

// endLost ends connections that have lost the other end. A session has heartbeats, but streams
// between machines do not.
var endLost = remote.EndLost(silence)

// alive has the kernel ask the other end of a connection that nothing crosses whether it is there.
var alive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3}

// messages returns a connection for messages over c, and takes c over. Messages with descriptors
// fail at the other end.
func messages(c *tls.Conn) (*link, error) {
	ours, theirs, err := control.Pair()
	if err != nil {
		return nil, cleanup.Join(err, c.Close())
	}
	inner, err := net.FileConn(theirs)
	theirs.Close()
	if err != nil {
		return nil, cleanup.Join(err, c.Close(), ours.Close())
	}
	l := &link{Conn: ours, far: c, over: make(chan struct{})}
	go l.carry(inner)
	return l, nil
}

// carry copies bytes both ways between the network and this process until one end is gone, and
// closes both, or leaves the network to release. What one end sent before it ended arrives, also
// while the other goes on sending: closing a TCP connection with bytes that nobody has read throws
// away what is still to leave (RFC 9293, section 3.6.1).
func (l *link) carry(near net.Conn) {
	defer close(l.over)
	defer near.Close()
	one := func(to, from net.Conn) (done chan struct{}) {
		done = make(chan struct{})
		go func() {
			defer close(done)
			if _, err := io.Copy(to, from); err != nil { // whoever uses the connection learns that it has ended
				_, _ = io.Copy(io.Discard, from)
			}
		}()
		return done
	}
	sent, came := one(l.far, near), one(near, l.far)
	select {
	case <-sent:
		if !l.released.Load() && l.far.CloseWrite() == nil {
			_ = l.far.SetReadDeadline(time.Now().Add(silence))
			<-came
		}
	case <-came:
	}
	if l.released.Load() {
		<-sent
		_ = l.far.SetReadDeadline(time.Now())
		<-came
		return
	}
	l.far.Close()
}

// release ends the messages, after the last has left, and returns the TCP connection with keys for
// it that only its two ends can know (RFC 8446, section 7.5). dialed says which of them this is.
// The other end must send nothing until this returns.
func (l *link) release(dialed bool) (*net.TCPConn, realtime.Keys, error) {
	l.released.Store(true)
	err := l.Conn.Close()
	<-l.over
	raw, ok := l.far.NetConn().(*net.TCPConn)
	if !ok {
		return nil, realtime.Keys{}, cleanup.Join(err, errors.New("a connection that is not TCP"), l.far.Close())
	}
	state := l.far.ConnectionState()
	keys, exported := state.ExportKeyingMaterial("EXPORTER-weft-stream", nil, 64)
	if err = errors.Join(err, exported, raw.SetReadDeadline(time.Time{})); err != nil {
		return nil, realtime.Keys{}, cleanup.Join(err, raw.Close())
	}
	there, back := keys[:32], keys[32:]
	if dialed {
		return raw, realtime.Keys{Send: there, Receive: back}, nil
	}
	return raw, realtime.Keys{Send: back, Receive: there}, nil
}

// change is what a relay does beside passing messages on. Each function may be nil.
type change struct {
	// message changes a message from a to b, and takes what came with it: descriptors do not leave
	// a machine. They stay the relay's. ok is false for a message that goes no further.
	message func(m control.Message, fds []int) (changed control.Message, ok bool, err error)
	// with returns what goes with a message to b, which the relay closes.
	with   func(control.Message) ([]int, error)
	passed func(control.Message) error // is called with each message to b afterwards
	back   func(control.Message) error // is called with each from b to a before
}

// relay forwards messages both ways between two connections until one has ended and its last
// message has been passed on, and closes both.
func relay(a, b *control.Conn, c change) {
	done := make(chan struct{}, 2)
	go func() {
		for pass(a, b, c) == nil { // on an error both connections end, which their users see
		}
		done <- struct{}{}
	}()
	go func() {
		back := change{}
		if c.back != nil {
			back.message = func(m control.Message, fds []int) (control.Message, bool, error) {
				return m, true, cmp.Or(stays(m, fds), c.back(m))
			}
		}
		for pass(b, a, back) == nil {
		}
		done <- struct{}{}
	}()
	<-done
	a.Close()
	b.Close()
}

// stays returns an error if descriptors came with a message that nobody takes.
func stays(m control.Message, fds []int) error {
	if len(fds) == 0 {
		return nil
	}
	return fmt.Errorf("%q has descriptors, which do not leave a machine", m.Kind)
}

// pass forwards one message. It drops the message if the receiver is gone: what that sent before is
// still passed on, and the relay ends with it.
func pass(from, to *control.Conn, c change) error {
	m, fds, err := from.Recv()
	if err != nil {
		return err
	}
	defer control.CloseAll(fds)
	ok := true
	if c.message != nil {
		m, ok, err = c.message(m, fds)
	} else {
		err = stays(m, fds)
	}
	if err != nil || !ok {
		return err
	}
	var with []int
	if c.with != nil {
		if with, err = c.with(m); err != nil {
			return err
		}
		defer control.CloseAll(with)
	}
	if err = to.Send(m, with...); err == nil && c.passed != nil {
		err = c.passed(m)
	}
	if control.Gone(err) {
		return nil
	}
	return err
}
