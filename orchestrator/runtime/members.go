package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/nodeimg/boot"
)

// A Member is a process of a lab as its runtime knows it.
type Member interface {
	comparable
	Process() *Proc
	Ended() <-chan struct{} // closed when it has ended
	Exit() *ExitError       // how it ended; it must have
	Kill() error            // ends it, and waits until it has ended
}

// Members are the processes of a lab, and the part of a Cluster that is the same in every runtime. P is the runtime's own type of a
// process. A node that was started again is another process with the same name.
type Members[P Member] struct {
	exits chan Exit
	over  chan struct{} // closed by HangUp
	close func() error  // ends the lab, once

	mu      sync.Mutex // guards what follows
	of      [Agent + 1][]P
	started []P
	closing bool
	forget  func() bool // the context of Launch
}

// Role is what a process is in a lab.
type Role int

// The roles, in each of which processes have numbers from 0.
const (
	Carrier Role = iota // of packets: the fabric's process
	Host
	Switch
	Agent // drives hosts
)

// NewMembers returns the members of a lab, none of which has been started.
func NewMembers[P Member](s *Spec) *Members[P] {
	carriers := 1
	if s.Switched() {
		carriers = 0
	}
	all := carriers + len(s.Nodes) + len(s.Switches) + s.Agents
	return &Members[P]{
		exits: make(chan Exit, all+1), over: make(chan struct{}), // also an engine's
		of: [...][]P{make([]P, carriers), make([]P, len(s.Nodes)), make([]P, len(s.Switches)), make([]P, s.Agents)},
	}
}

// ErrClosing is returned for what is not done any more.
var ErrClosing = errors.New("the lab is being closed")

// lastWords is how long a process whose connection broke may take to have ended. Ours.
const lastWords = time.Second

// Launch has start start a lab, and end end it: at Close, and at once if start fails or when ctx ends. The first failure ends the wait
// of other steps.
func (m *Members[P]) Launch(ctx context.Context, start func(*Boot) error, end func() error) error {
	m.close = sync.OnceValue(end)
	stop := context.AfterFunc(ctx, m.HangUp)
	err := start(&Boot{HangUp: m.HangUp})
	stop()
	if err != nil {
		err = cleanup.Join(err, m.Close())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget = context.AfterFunc(ctx, func() { _ = m.Close() }) // whoever calls Close is told
	return nil
}

// Close ends every process and returns when all are gone. Connections are closed first, at which processes end by themselves; whichever
// has not within the grace period is killed. It may be called at any time, and again, with the same result. An error means that something
// could not be ended or removed.
func (m *Members[P]) Close() error { return m.close() }

// Start has f start a process, unless the lab is being closed. Meanwhile nobody closes it.
func (m *Members[P]) Start(f func() (P, error)) (p P, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return p, ErrClosing
	}
	if p, err = f(); err == nil {
		m.started = append(m.started, p)
	}
	return p, err
}

// Connect makes a connection that of a process, unless the lab is being closed.
func (m *Members[P]) Connect(p P, conn *control.Conn) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		conn.Close()
		return ErrClosing
	}
	p.Process().Conn = conn
	return nil
}

// HangUp closes every control connection, which wakes whoever waits on one, here and in the processes. Nothing is started afterwards.
func (m *Members[P]) HangUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closing {
		m.closing = true
		close(m.over)
	}
	if m.forget != nil {
		m.forget()
	}
	for _, p := range m.started {
		if conn := p.Process().Conn; conn != nil {
			conn.Close()
		}
	}
}

// Closing says whether the lab is being closed.
func (m *Members[P]) Closing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closing
}

// Started returns the processes that were started, in their order.
func (m *Members[P]) Started() []P {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.started)
}

// Failed names the process that err is about. If its connection broke, how the process ended says more.
func (m *Members[P]) Failed(p P, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) {
		select {
		case <-p.Ended():
			return p.Exit()
		case <-time.After(lastWords):
		}
	}
	return fmt.Errorf("%s: %w", p.Process().Name, err)
}

// Boot hands a process what it is to become, and waits until it is that.
func (m *Members[P]) Boot(p P, spec any) error {
	if err := p.Process().Conn.SendValue(boot.KindBoot, spec); err != nil {
		return m.Failed(p, err)
	}
	return m.Up(p)
}

// Up waits until a process is what it was to become. Its report adds to what was noted before.
func (m *Members[P]) Up(p P) error {
	report := &p.Process().Report
	notes := report.Notes
	_, err := p.Process().Conn.Expect(boot.KindUp, report)
	report.Notes = append(notes, report.Notes...)
	return m.Failed(p, err)
}

// Set makes a process the one with a role and a number, and Of returns that; the zero P: it has not been set.
func (m *Members[P]) Set(role Role, i int, p P) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of[role][i] = p
}

// Of returns the process with a role and a number.
func (m *Members[P]) Of(role Role, i int) P {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[role][i]
}

// Named returns the process of a node or a switch, whether it has ended or not; the zero P: there is none.
func (m *Members[P]) Named(name string) (none P) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return none
	}
	for _, p := range slices.Concat(m.of[Host], m.of[Switch]) {
		if p != none && p.Process().Name == name {
			return p
		}
	}
	return none
}

// Find returns the process with a name that was started last and has not ended, whether it has booted or not; nil: there is none.
func (m *Members[P]) Find(name string) *Proc {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return nil
	}
	for _, p := range slices.Backward(m.started) {
		if proc := p.Process(); proc.Name == name && proc.Conn != nil && !ended(p) {
			return proc
		}
	}
	return nil
}

// ended says whether a process has ended.
func ended[P Member](p P) bool {
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

// Alive returns the process of a host that has not ended.
func (m *Members[P]) Alive(i int) (P, error) {
	p := m.Of(Host, i)
	if m.Closing() || ended(p) {
		return p, fmt.Errorf("%s: %w", p.Process().Name, ErrNoNode)
	}
	return p, nil
}

// Dead returns the process of a host that has ended, for another to take its place.
func (m *Members[P]) Dead(i int) (P, error) {
	p, err := m.Alive(i)
	if err == nil {
		return p, fmt.Errorf("%s is running", p.Process().Name)
	}
	return p, nil
}

// Kill ends a host at once, with all that runs in it: its process is the first of its PID namespace.
func (m *Members[P]) Kill(i int) error {
	p, err := m.Alive(i)
	if err != nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return fmt.Errorf("%s: %w", p.Process().Name, err)
	}
	return nil
}

// Freeze stops every process of a host, or lets them go on.
func (m *Members[P]) Freeze(i int, frozen bool) error {
	p, err := m.Alive(i)
	if err != nil {
		return err
	}
	return p.Process().Freeze(frozen)
}

// Nodes is the number of hosts, and Node the process of one.
func (m *Members[P]) Nodes() int       { return len(m.of[Host]) }
func (m *Members[P]) Node(i int) *Proc { return m.Of(Host, i).Process() }

// Switches is the number of switches that are nodes, and Switch the process of one.
func (m *Members[P]) Switches() int      { return len(m.of[Switch]) }
func (m *Members[P]) Switch(i int) *Proc { return m.Of(Switch, i).Process() }

// Agents is the number of processes that may drive nodes, and Agent one of them.
func (m *Members[P]) Agents() int       { return len(m.of[Agent]) }
func (m *Members[P]) Agent(i int) *Proc { return m.Of(Agent, i).Process() }

// Fabric returns the fabric's process; nil if switches are nodes.
func (m *Members[P]) Fabric() *Proc {
	var none P
	if len(m.of[Carrier]) == 0 || m.Of(Carrier, 0) == none {
		return nil
	}
	return m.Of(Carrier, 0).Process()
}

// Tell reports the end of a process, or of what all depend on, unless it was asked for. There is room for one of each.
func (m *Members[P]) Tell(e Exit) {
	if m.Closing() {
		return
	}
	select {
	case m.exits <- e:
	case <-m.over:
	}
}

// Silence closes what Exits returned. Nobody may tell anything afterwards.
func (m *Members[P]) Silence() { close(m.exits) }

// Exits reports each process that ends before Close, at once. It is closed by Close.
func (m *Members[P]) Exits() <-chan Exit { return m.exits }
