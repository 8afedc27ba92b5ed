package emulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/cleanup"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/nodeimg/agent"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/frames"
	"weft/units"
)

// Deployment is a lab that is up without a workload: its network carries the traffic of programs in
// its nodes. Its methods are safe for concurrent use.
type Deployment struct {
	*session
	broken chan struct{}     // closed when the carrier has ended
	why    error             // valid from then on
	gone   chan int          // hosts whose end of the cable is gone
	exits  chan runtime.Exit // of processes
	nodes  []boot.NodeSpec

	programs []Program
	out      *runtime.Lines            // of programs; nil: discarded
	ended    func(host int, err error) // receives the end of a program; may be nil
	life     context.Context           // of programs
	end      context.CancelFunc        // of life
	running  sync.WaitGroup            // programs

	restarting sync.Mutex // one node at a time

	asking  sync.Mutex // one request at a time
	answers chan control.Message

	clocks Clocks // of programs
	// configurations of the nodes' processes, by host; nil: no protocol synchronizes clocks
	agents []agent.Config
}

// answerTime is the real time in which the fabric process must answer. Ours: it answers within one
// turn of its loop.
const answerTime = 5 * time.Second

// Deploy launches the processes of a lab and starts its network. It ignores the plans of x but for
// the clocks.
func Deploy(ctx context.Context, x Experiment) (*Deployment, error) {
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("emulate: %w", err)
	}
	x.SampleQueues, x.FrameSchedule = 0, frames.Schedule{} // nobody would read them
	setup, err := x.ToDeploy()
	if err != nil {
		return nil, err
	}
	up, err := open(ctx, &x, setup)
	if err != nil {
		return nil, err
	}
	s := &Deployment{
		session: up,
		broken:  make(chan struct{}), gone: make(chan int, x.Fabric.Hosts), answers: make(chan control.Message, 1),
		exits:    make(chan runtime.Exit, cap(up.ends.out)),
		programs: x.Programs, ended: x.Ended, nodes: setup.Spec.Nodes,
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	s.out = runtime.NewLines(x.Processes.Stderr)
	if err := s.begin(ctx); err != nil {
		s.end()
		return nil, cleanup.Join(err, s.close())
	}
	s.beside(allHosts)
	return s, nil
}

// begin configures the processes and starts lab time.
func (s *Deployment) begin(ctx context.Context) error {
	if s.agents = s.x.clockAgents(); s.agents != nil {
		s.favour()
	}
	var nodes func(i int) agent.Config
	if s.agents != nil {
		nodes = func(i int) agent.Config { return s.agents[i] }
	}
	if err := s.configure(ctx, nodes); err != nil {
		return err
	}
	if err := s.start(s.agents != nil); err != nil {
		return s.ends.blame(ctx, err)
	}
	s.clocks = Clocks{scale: s.scale, models: s.x.Clocks, none: s.x.NoClocks}
	for i := range s.agents {
		s.running.Go(func() { s.followClock(i, s.crew.conns[i], false) })
	}
	go s.follow()
	go s.listen(s.carrier.conn)
	// nothing is carried before lab time begins
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(s.scale.T0 - clock.Monotonic())):
		return nil
	}
}

// follow passes on the ends of processes until the lab ends. A network in parts does not go on
// without one of them, or without the connection between two.
func (s *Deployment) follow() {
	defer close(s.exits)
	_, several := s.cluster.(*machines)
	for e := range s.ends.out {
		if several && s.needs(&e) {
			s.carrier.conn.Close()
		}
		s.exits <- e
	}
}

// listen handles the messages of the fabric process until its connection ends.
func (s *Deployment) listen(conn *control.Conn) {
	defer func() {
		close(s.broken)
		if m, several := s.cluster.(*machines); several && s.life.Err() == nil {
			m.endCaptures() // their users now learn why
		}
	}()
	for {
		m, _, err := conn.Recv()
		if err != nil {
			if err = s.carrier.cause(err); s.life.Err() == nil {
				err = s.explain(s.needs, err)
			}
			s.why = fmt.Errorf("%s is gone: %w", s.carrier.who, err)
			return
		}
		switch m.Kind {
		case realtime.KindAlive, realtime.KindSamples, realtime.KindSteps:
		case realtime.KindGone:
			var g realtime.Gone
			if err := m.Decode(&g); err == nil {
				select {
				case s.gone <- g.Host:
				default: // nobody listens
				}
			}
		case control.KindError:
			var text string
			if err := m.Decode(&text); err != nil {
				text = err.Error()
			}
			s.why = fmt.Errorf("%s failed: %w", s.carrier.who, &control.RemoteError{Text: text})
			return
		default:
			select {
			case s.answers <- m:
			default: // nobody waits for it any more
			}
		}
	}
}

// ask sends the fabric process a request and waits for its answer.
func (s *Deployment) ask(kind string, body any, answer string, into any, fds ...int) error {
	return s.askFor(answerTime, kind, body, answer, into, fds...)
}

// askFor is ask for a request that takes longer.
func (s *Deployment) askFor(limit time.Duration, kind string, body any, answer string, into any, fds ...int) error {
	s.asking.Lock()
	defer s.asking.Unlock()
	select {
	case <-s.answers: // late answer to an earlier request
	default:
	}
	err := s.carrier.conn.SendValue(kind, body, fds...)
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	select {
	case m := <-s.answers:
		if m.Kind != answer {
			return fmt.Errorf("%s answered %q", s.carrier.name, m.Kind)
		}
		return m.Decode(into)
	case <-s.broken:
		return s.why
	case <-timeout.C:
		if err != nil {
			return fmt.Errorf("%s: %w", s.carrier.name, err)
		}
		return fmt.Errorf("%s does not answer: is it stopped?", s.carrier.name)
	}
}

// do is ask for a request whose answer is only success or an error.
func (s *Deployment) do(kind string, body any, fds ...int) error {
	var did realtime.Did
	if err := s.ask(kind, body, realtime.KindDid, &did, fds...); err != nil {
		return err
	}
	if did.Error != "" {
		return errors.New(did.Error)
	}
	return nil
}

// explain replaces err, with which a connection ended, by the end of a process that explains it.
func (s *Deployment) explain(explains func(*runtime.Exit) bool, err error) error {
	if e, ok := s.ends.first(context.Background(), explains); ok {
		return e.Err
	}
	return err
}

// Exits is Exits of the cluster, whose own is not to be read.
func (s *Deployment) Exits() <-chan runtime.Exit { return s.exits }

// Cluster returns the lab's processes.
func (s *Deployment) Cluster() runtime.Cluster { return s.cluster }

// Machine returns the name of the machine that has a host; "": this one.
func (s *Deployment) Machine(host int) string {
	if m, ok := s.cluster.(*machines); ok && m.far {
		return MachineName(m.hosts[host].machine)
	}
	return ""
}

// Host returns what a host was launched with.
func (s *Deployment) Host(host int) *boot.NodeSpec { return &s.nodes[host] }

// Runs reports whether the lab has a program that a host runs.
func (s *Deployment) Runs(host int) bool {
	return slices.ContainsFunc(s.programs, func(p Program) bool { return p.Host == host })
}

// Memory describes the memory limit of the nodes in words.
func (s *Deployment) Memory() string { return s.cluster.Bound() }

// Notes returns in words what the machine did not grant to the processes, and what clocks programs
// cannot have.
func (s *Deployment) Notes() []string {
	notes := bootNotes(s.cluster, s.carrier, true)
	for _, more := range []string{s.clocks.none, s.unfavoured} {
		if more != "" {
			notes = append(notes, more)
		}
	}
	return notes
}

// Now returns the present lab time.
func (s *Deployment) Now() units.Time { return s.labNow() }

// Gone receives each host whose interface is gone, because its node has ended or a program in it
// has deleted the interface.
func (s *Deployment) Gone() <-chan int { return s.gone }

// Broken is closed when the network has ended by itself; Why then returns the reason.
func (s *Deployment) Broken() <-chan struct{} { return s.broken }

// Why returns the reason why the network has ended. It may be called once Broken is closed.
func (s *Deployment) Why() error { return s.why }

// Change changes the network at once, whatever the instant in c.
func (s *Deployment) Change(c fabric.Change) error { return s.do(realtime.KindChange, c) }

// Look returns the present state of the network.
func (s *Deployment) Look() (*realtime.State, error) {
	state := new(realtime.State)
	if err := s.ask(realtime.KindLook, nil, realtime.KindState, state); err != nil {
		return nil, err
	}
	return state, nil
}

// measureTime is the real time limit for measuring one direction. Ours: a try takes some seconds.
const measureTime = 5 * time.Minute

// Measure measures a direction of a link with probes, on the kernel datapath.
func (s *Deployment) Measure(port int) (found realtime.Found, err error) {
	err = s.askFor(measureTime, realtime.KindMeasure, realtime.Measure{Port: port}, realtime.KindFound, &found)
	return found, err
}

// Capture sends copies of frames to a socket until its other end is closed. The descriptor stays
// the caller's.
func (s *Deployment) Capture(c realtime.Capture, socket int) error {
	return s.do(realtime.KindCapture, c, socket)
}

// ErrNoRestart is returned for clusters whose nodes cannot be ended and started again.
var ErrNoRestart = errors.New("the runtime of this lab cannot end or restart a node")

func (s *Deployment) restarter() (runtime.Restarter, error) {
	r, ok := s.cluster.(runtime.Restarter)
	if !ok {
		return nil, ErrNoRestart
	}
	return r, nil
}

// Kill ends a node, with all that runs in it. Its kernel would still answer for some milliseconds
// while the network namespace is taken down, so the network drops its packets at once.
func (s *Deployment) Kill(host int) error {
	r, err := s.restarter()
	if err != nil {
		return err
	}
	if err := s.do(realtime.KindHalt, realtime.Halt{Host: host, Halted: true}); err != nil {
		return err
	}
	return r.Kill(host)
}

// Freeze stops or resumes a node: its processes, and what its kernel sends and answers by itself.
func (s *Deployment) Freeze(host int, frozen bool) error {
	r, err := s.restarter()
	if err != nil {
		return err
	}
	halt := func() error { return s.do(realtime.KindHalt, realtime.Halt{Host: host, Halted: frozen}) }
	// the network first, so that nobody sees a half-stopped node
	if frozen {
		if err := halt(); err != nil {
			return err
		}
		return r.Freeze(host, true)
	}
	if err := r.Freeze(host, false); err != nil {
		return err
	}
	return halt()
}

// Restart starts a node that has ended.
func (s *Deployment) Restart(ctx context.Context, host int) error {
	r, err := s.restarter()
	if err != nil {
		return err
	}
	s.restarting.Lock() // the cable of a node on another machine waits there for one request
	defer s.restarting.Unlock()
	link, err := r.Restart(ctx, host)
	if err != nil {
		return err
	}
	var fds []int
	if link.Kind != boot.Wired && link.FD >= 0 {
		defer unix.Close(link.FD)
		fds = []int{link.FD}
	}
	err = s.do(realtime.KindPlug, realtime.Plug{Host: host, Kind: portKind(link)}, fds...)
	if err != nil {
		return cleanup.Join(err, r.Kill(host))
	}
	if err := s.do(realtime.KindHalt, realtime.Halt{Host: host, Halted: false}); err != nil {
		return err
	}
	if err := s.resynchronize(ctx, host); err != nil {
		if control.Gone(err) {
			p := s.cluster.Node(host)
			err = s.explain(func(e *runtime.Exit) bool {
				return e.Name == p.Name && e.PID == p.PID && e.FarPID == p.FarPID
			}, err)
		}
		return cleanup.Join(err, r.Kill(host))
	}
	s.beside(host)
	return nil
}

// portKind returns the fabric's name for the kind of a cable's end.
func portKind(l boot.Link) string {
	if l.Kind == boot.Packet {
		return realtime.PortPacket
	}
	return realtime.PortTAP
}

// Close ends every process of the lab and returns when all are gone.
func (s *Deployment) Close() error {
	s.end()
	err := s.close()
	s.running.Wait()
	<-s.broken
	s.clocks.Close()
	return err
}
