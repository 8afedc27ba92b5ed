package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/internal/thread"
	"weft/nodeimg/boot"
	"weft/nodeimg/labclock"
)

// A Member is a process of a lab as its runtime represents it.
type Member interface {
	comparable
	Process() *Proc
	Ended() <-chan struct{} // returns a channel that is closed when the process has ended
	Exit() *ExitError       // returns how it ended; it must have ended
	Kill() error            // kills it and waits until it has ended
}

// Members are the processes of a lab, and the part of a Cluster that both runtimes share. P is the
// runtime's own process type. A node that was restarted is a new P with the same name.
type Members[P Member] struct {
	exits chan Exit
	over  chan struct{} // closed by HangUp
	close func() error  // ends the lab; runs once

	mu      sync.Mutex // guards what follows
	of      [Agent + 1][]P
	started []P
	closing bool
	forget  func() bool // stops watching the context of Launch
	keeper  *labclock.Keeper

	reporting sync.WaitGroup // goroutines that report the end of a keeper
}

// Role is a process's role in a lab.
type Role int

// Roles. The processes of each role are numbered from 0.
const (
	Carrier Role = iota // carries packets: the fabric's process
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
		exits: make(chan Exit, all+1), over: make(chan struct{}), // + 1 for an engine
		of: [...][]P{make([]P, carriers), make([]P, len(s.Nodes)), make([]P, len(s.Switches)), make([]P, s.Agents)},
	}
}

// ErrClosing is returned by operations on a lab that is being closed.
var ErrClosing = errors.New("the lab is being closed")

// exitWait is the time limit for a process whose connection broke to have exited, and endedWait
// that for the runtime to report one that has surely ended, which a busy Docker Engine does late.
// Our own choice.
const (
	exitWait  = 5 * time.Second
	endedWait = 20 * time.Second
)

// Launch calls start to start a lab, and arranges for end to end it: in Close, and at once if start
// fails or ctx ends. The first failing step ends the waits of the others.
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
	m.forget = context.AfterFunc(ctx, func() { _ = m.Close() }) // Close returns the error again
	return nil
}

// Close ends every process and returns when all are gone. It closes the connections first,
// whereupon processes end by themselves, and kills those that have not after the grace period. It
// may be called at any time; later calls return the same result. An error means that something
// could not be ended or removed.
func (m *Members[P]) Close() error { return m.close() }

// Start calls f to start a process, unless the lab is being closed. The lab cannot be closed
// meanwhile.
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

// Connect sets the connection of a process, unless the lab is being closed.
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

// HangUp closes every control connection, which wakes everyone who waits on one, here and in the
// processes. No process can be started afterwards.
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
	if m.keeper != nil {
		m.keeper.Close()
		m.keeper = nil
	}
}

// Keeper returns the lab's keeper of lab time. The first call starts it, as a process of the lab,
// and so does one after its end. If it ends by itself, Exits says so.
func (m *Members[P]) Keeper(s *Spec) (*labclock.Keeper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closing {
		return nil, ErrClosing
	}
	if m.keeper != nil {
		select {
		case <-m.keeper.Ended():
			m.keeper.Close()
			m.keeper = nil
		default:
		}
	}
	if m.keeper == nil {
		started := make(chan error)
		thread.Own(func() {
			keeper, err := labclock.Start(s.Self, append(Environment(), s.Env...))
			if err == nil {
				m.keeper = keeper
			}
			started <- err
		})
		if err := <-started; err != nil {
			return nil, err
		}
		keeper := m.keeper
		m.reporting.Go(func() {
			<-keeper.Ended()
			select {
			case <-keeper.Lost():
				m.Report(Exit{Name: KeeperName, PID: keeper.PID(), Err: keeperLost(keeper)})
			default: // the lab closed it
			}
		})
	}
	return m.keeper, nil
}

// Closing reports whether the lab is being closed.
func (m *Members[P]) Closing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closing
}

// Started returns the processes in the order in which they were started.
func (m *Members[P]) Started() []P {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.started)
}

// Failed adds the name of the process to err. If err is a broken connection or an *EndedError of
// the process, Failed returns how the process ended instead.
func (m *Members[P]) Failed(p P, err error) error {
	if err == nil {
		return nil
	}
	var gone *EndedError
	wait := time.Duration(0)
	if errors.As(err, &gone) && gone.Proc == p.Process() {
		wait = endedWait
	} else if control.Gone(err) {
		wait = exitWait
	}
	if wait > 0 {
		select {
		case <-p.Ended():
			return p.Exit()
		case <-time.After(wait):
		}
	}
	if gone != nil {
		return err // which has the name
	}
	return fmt.Errorf("%s: %w", p.Process().Name, err)
}

// Boot sends a process its spec and waits until it is up.
func (m *Members[P]) Boot(p P, spec any) error {
	if err := p.Process().Conn.SendValue(boot.KindBoot, spec); err != nil {
		return m.Failed(p, err)
	}
	return m.Up(p)
}

// Up waits until a process is up. What its report notes, and lacks, is added to that in Report.
func (m *Members[P]) Up(p P) error {
	report := &p.Process().Report
	notes, lacks := report.Notes, report.Lacks
	report.Notes, report.Lacks = nil, nil
	_, err := p.Process().Conn.Expect(boot.KindUp, report)
	report.Notes, report.Lacks = append(notes, report.Notes...), append(lacks, report.Lacks...)
	return m.Failed(p, err)
}

// Set makes p the process with a role and a number.
func (m *Members[P]) Set(role Role, i int, p P) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.of[role][i] = p
}

// Of returns the process with a role and a number, or the zero P if Set has not been called.
func (m *Members[P]) Of(role Role, i int) P {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of[role][i]
}

// Named returns the process of a node or switch, running or not, or the zero P if there is none.
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

// Find returns the latest process with a name if it has not ended, booted or not; else nil.
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

// ended reports whether a process has ended.
func ended[P Member](p P) bool {
	select {
	case <-p.Ended():
		return true
	default:
		return false
	}
}

// Alive returns the process of a host, or an error if it has ended.
func (m *Members[P]) Alive(i int) (P, error) {
	p := m.Of(Host, i)
	if m.Closing() || ended(p) {
		return p, fmt.Errorf("%s: %w", p.Process().Name, ErrNoNode)
	}
	return p, nil
}

// Dead returns the process of a host that has ended, or an error if it is running.
func (m *Members[P]) Dead(i int) (P, error) {
	p, err := m.Alive(i)
	if err == nil {
		return p, fmt.Errorf("%s is running", p.Process().Name)
	}
	return p, nil
}

// Kill kills a host with everything that runs in it: its process is the first of its PID namespace.
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

// Freeze stops every process of a host, or continues them.
func (m *Members[P]) Freeze(i int, frozen bool) error {
	p, err := m.Alive(i)
	if err != nil {
		return err
	}
	return p.Process().Freeze(frozen)
}

// Nodes returns the number of hosts, and Node the process of one.
func (m *Members[P]) Nodes() int       { return len(m.of[Host]) }
func (m *Members[P]) Node(i int) *Proc { return m.Of(Host, i).Process() }

// Switches returns the number of switches that are nodes, and Switch the process of one.
func (m *Members[P]) Switches() int      { return len(m.of[Switch]) }
func (m *Members[P]) Switch(i int) *Proc { return m.Of(Switch, i).Process() }

// Agents returns the number of processes that may drive nodes, and Agent one of them.
func (m *Members[P]) Agents() int       { return len(m.of[Agent]) }
func (m *Members[P]) Agent(i int) *Proc { return m.Of(Agent, i).Process() }

// Fabric returns the fabric's process, or nil if switches are nodes.
func (m *Members[P]) Fabric() *Proc {
	var none P
	if len(m.of[Carrier]) == 0 || m.Of(Carrier, 0) == none {
		return nil
	}
	return m.Of(Carrier, 0).Process()
}

// Report reports the unexpected end of a process, or of the engine, on Exits. The channel has room
// for one report of each.
func (m *Members[P]) Report(e Exit) {
	if m.Closing() {
		return
	}
	select {
	case m.exits <- e:
	case <-m.over:
	}
}

// CloseExits closes the channel of Exits. The lab must have been hung up, and Report must not be
// called afterwards.
func (m *Members[P]) CloseExits() {
	m.reporting.Wait()
	close(m.exits)
}

// Exits returns a channel that reports each process that ends before Close. Close closes it.
func (m *Members[P]) Exits() <-chan Exit { return m.exits }
