package machine

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/units"
)

// Limits in real time. Ours.
const (
	// silence is the longest time without a message on a session.
	silence = 3 * time.Second
	// beat is the interval of heartbeats on a session.
	beat = 500 * time.Millisecond
	// dialTime limits connecting with its handshake, and waiting for another agent to learn of a
	// run.
	dialTime = 10 * time.Second
)

// Kinds of message. Each connection begins with one that says what it is: session, process, stream
// or measure, or join to a meeting. The first three belong to a run, whose number nobody else
// knows.
const (
	kindSession = "session" // session; answered by up or an error
	kindUp      = "up"      // up
	kindProcess = "process" // process; the messages of the process follow
	kindStream  = "stream"  // stream; the bytes of the stream follow
	kindHere    = "here"    // no body: a heartbeat, both ways on a session
	kindClock   = "clock"   // clock: a request on a session, and its answer
	kindExit    = "exit"    // exit: a process has ended

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
}

// up says what was started.
type up struct {
	Bound  string
	Fabric boot.Report
	Nodes  []boot.Report
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
}

// dial connects to an agent and sends the first message, which says what the connection is.
func dial(ctx context.Context, addr string, config *tls.Config, kind string, what any) (*control.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	d := tls.Dialer{Config: config}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	conn, err := messages(c)
	if err == nil {
		if err = conn.SendValue(kind, what); err != nil {
			conn.Close()
		}
	}
	return conn, err
}

// messages returns a connection for messages over c, and takes c over. Messages with descriptors
// fail at the other end.
func messages(c net.Conn) (*control.Conn, error) {
	ours, theirs, err := control.Pair()
	if err != nil {
		return nil, cleanup.Join(err, c.Close())
	}
	inner, err := net.FileConn(theirs)
	theirs.Close()
	if err != nil {
		return nil, cleanup.Join(err, c.Close(), ours.Close())
	}
	go carry(c, inner)
	return ours, nil
}

// carry copies bytes both ways between two connections until one ends, and closes both.
func carry(a, b net.Conn) {
	done := make(chan struct{}, 2)
	one := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // either end may go at any time
		done <- struct{}{}
	}
	go one(a, b)
	go one(b, a)
	<-done
	a.Close()
	b.Close()
}

// relay forwards messages both ways between two connections until one ends, and closes both. change
// changes those from a to b, and passed is called with the kind of each after it was forwarded;
// both may be nil.
func relay(
	a, b *control.Conn, change func(control.Message) (control.Message, error), passed func(kind string) error,
) {
	done := make(chan struct{}, 2)
	one := func(from, to *control.Conn, change func(control.Message) (control.Message, error),
		passed func(string) error) {
		for pass(from, to, change, passed) == nil { // on an error both connections end, which their users see
		}
		done <- struct{}{}
	}
	go one(a, b, change, passed)
	go one(b, a, nil, nil)
	<-done
	a.Close()
	b.Close()
}

// pass forwards one message.
func pass(
	from, to *control.Conn, change func(control.Message) (control.Message, error), passed func(kind string) error,
) error {
	m, fds, err := from.Recv()
	if err == nil && len(fds) > 0 {
		control.CloseAll(fds)
		err = fmt.Errorf("%q has descriptors, which do not leave a machine", m.Kind)
	}
	if err == nil && change != nil {
		m, err = change(m)
	}
	if err == nil {
		err = to.Send(m)
	}
	if err == nil && passed != nil {
		err = passed(m.Kind)
	}
	return err
}
