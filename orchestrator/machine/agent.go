package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/clip"
	monotonic "weft/internal/clock"
	"weft/internal/control"
	"weft/orchestrator/emulate"
	"weft/orchestrator/runtime"
	"weft/realtime"
)

// Agent starts and ends the processes of runs on this machine.
type Agent struct {
	Launch runtime.Launch // nil: emulate.LaunchHere
	Secret string
	Build  string // of this program; a run of another is refused
	// Measure returns what this machine can carry; nil: emulate.Calibrate.
	Measure func(ctx context.Context) (emulate.Capacity, error)
	Self    string            // program of the processes; empty: this one
	Say     func(line string) // receives what happens, from several goroutines

	mu   sync.Mutex
	runs map[string]*part // by number
}

// part is a part of a run on this machine.
type part struct {
	session
	cluster runtime.Cluster // valid once up is closed, as what follows
	rest    func()          // ends what the cluster does not
	up      chan struct{}   // closed when the processes are up

	mu       sync.Mutex
	nodes    []*control.Conn     // to what drives each node; valid once up is closed
	lent     map[string]*os.File // what goes with messages to processes, by their kinds; nil: the run has ended
	dilation float64             // 0: the network has no configuration yet
	clocks   *emulate.Clocks     // of programs; nil: lab time has not begun
	streams  map[int]*crossing   // to other parts, by their numbers
	came     chan struct{}       // gets a value when a stream is added
}

// maxRuns is the number of runs at once. Ours.
const maxRuns = 4

// Serve accepts connections until ctx ends, and then ends all processes.
func (a *Agent) Serve(ctx context.Context, l net.Listener) error {
	config, err := secure(a.Secret)
	if err != nil {
		return err
	}
	a.runs = map[string]*part{}
	CleanFiles()
	return serve(ctx, l, config, a.serve)
}

// serve handles a connection by its first message.
func (a *Agent) serve(ctx context.Context, conn *link, _ net.Addr) {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	m := first(conn)
	if m == nil {
		return
	}
	var err error
	switch m.Kind {
	case kindSession:
		var s session
		if err = m.Decode(&s); err == nil {
			err = a.session(ctx, conn, s)
		}
	case kindProcess:
		var p process
		if err = m.Decode(&p); err == nil {
			err = a.process(conn, p)
		}
	case kindStream:
		var s stream
		if err = m.Decode(&s); err == nil {
			err = a.stream(ctx, conn, s)
		}
	case kindMeasure:
		err = a.measure(ctx, conn)
	case kindExec:
		var e execution
		if err = m.Decode(&e); err == nil {
			err = a.exec(ctx, conn, e)
		}
	case kindTap:
		var t tap
		if err = m.Decode(&t); err == nil {
			err = a.tap(ctx, conn, t)
		}
	case kindModule:
		var t module
		if err = m.Decode(&t); err == nil {
			err = a.module(conn, t)
		}
	case kindControl:
		var o order
		if err = m.Decode(&o); err == nil {
			err = a.control(ctx, conn, o)
		}
	default:
		err = fmt.Errorf("a connection began with %q; expected what it is for", m.Kind)
	}
	if err != nil {
		_ = conn.SendError(err) // the other end may be gone
		conn.Close()
	}
}

// measure tells what this machine can carry.
func (a *Agent) measure(ctx context.Context, conn *link) error {
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go heartbeats(ctx, conn)
	measure := a.Measure
	if measure == nil {
		measure = func(ctx context.Context) (emulate.Capacity, error) {
			return emulate.Calibrate(ctx, emulate.Processes{Self: a.Self})
		}
	}
	c, err := measure(ctx)
	if err != nil {
		return conn.SendError(err)
	}
	c.Boot, _ = runtime.BootID() // without it, the machine is taken to be of its own
	return conn.SendValue(kindCapacity, c)
}

// add adds a run.
func (a *Agent) add(s session) (*part, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case s.Build != a.Build:
		return nil, fmt.Errorf("this is another build of weft (%s) than that of the run (%s); expected the same on "+
			"all machines", a.Build, s.Build)
	case len(a.runs) == maxRuns:
		return nil, fmt.Errorf("this agent has %d runs, as many as it takes; try again when one has ended", maxRuns)
	case a.runs[s.Run] != nil:
		return nil, errTwice
	case s.Me < 0 || s.Me >= len(s.Peers) || len(s.Nodes) == 0 || s.Run == "":
		return nil, fmt.Errorf("part %d of %d with %d nodes", s.Me, len(s.Peers), len(s.Nodes))
	}
	p := &part{session: s, up: make(chan struct{}), streams: map[int]*crossing{}, came: make(chan struct{}, 1),
		lent: map[string]*os.File{}}
	a.runs[s.Run] = p
	return p, nil
}

// errTwice says that two parts of a run came to one agent.
var errTwice = errors.New("this agent has another part of the run; expected addresses of different agents")

// errEnded says that a run is not there.
var errEnded = errors.New("this agent has no such run")

// find returns a run.
func (a *Agent) find(run string) (*part, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.runs[run]; p != nil {
		return p, nil
	}
	return nil, errEnded
}

// await is find that waits up to launchSilence for the run, since a stream may come before its
// session.
func (a *Agent) await(ctx context.Context, run string) (*part, error) {
	for end := time.Now().Add(launchSilence); ; {
		p, err := a.find(run)
		if err == nil || time.Now().After(end) {
			return p, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// remove ends a run.
func (a *Agent) remove(p *part) error {
	a.mu.Lock()
	delete(a.runs, p.Run)
	a.mu.Unlock()
	p.mu.Lock()
	for _, c := range p.streams {
		c.conn.Close()
	}
	for _, f := range p.lent {
		f.Close()
	}
	p.streams, p.lent = nil, nil
	clocks := p.clocks
	p.mu.Unlock()
	if p.cluster == nil {
		return nil
	}
	if p.rest != nil {
		p.rest()
	}
	err := p.cluster.Close()
	if clocks != nil {
		clocks.Close()
	}
	return err
}

// session runs a part until its session ends.
func (a *Agent) session(ctx context.Context, conn *link, s session) error {
	p, err := a.add(s)
	if err != nil {
		return err
	}
	about := fmt.Sprintf("%s: part %d of %d", clip.Text(s.Lab), s.Me+1, len(s.Peers))
	a.Say(fmt.Sprintf("%s, %d hosts", about, len(s.Nodes)))
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { heartbeats(ctx, conn) })
	all.Go(func() {
		defer cancel()
		answer(conn)
	})
	err = a.start(ctx, p, conn)
	if err == nil {
		p.report(ctx, conn)
	}
	if err = cleanup.Join(err, a.remove(p)); err != nil {
		_ = conn.SendError(err) // the other end may be gone
	}
	cancel()
	conn.Close()
	all.Wait()
	a.Say(about + " has ended")
	return nil
}

// answer answers requests for the clock until the session ends, or its machine does.
func answer(conn *link) {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(silence))
		m, fds, err := conn.Recv()
		control.CloseAll(fds)
		if err != nil {
			return
		}
		if m.Kind != kindClock {
			continue
		}
		var c clock
		if m.Decode(&c) != nil {
			return
		}
		c.Now = monotonic.Monotonic()
		if conn.SendValue(kindClock, c) != nil {
			return
		}
	}
}

// heartbeats sends heartbeats until ctx ends or the connection fails.
func heartbeats(ctx context.Context, conn *link) {
	regularly(ctx, func() error { return conn.SendValue(kindHere, nil) })
}

// regularly calls send at once and after each beat, until it fails or ctx ends.
func regularly(ctx context.Context, send func() error) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for send() == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// start starts the processes of a part, and connects it with the others. It tells the session when
// one of these connections is lost.
func (a *Agent) start(ctx context.Context, p *part, session *link) error {
	spec := runtime.Spec{
		Lab: p.Lab, Nodes: p.Nodes, Memory: p.Memory, Env: p.Env, Self: a.Self, Standing: p.Standing,
	}
	if !p.Standing {
		spec.Agents = emulate.Agents(len(p.Nodes))
	}
	start := a.Launch
	if start == nil {
		start = emulate.LaunchHere
	}
	cluster, err := start(ctx, spec)
	if err != nil {
		return err
	}
	p.cluster = cluster
	if p.nodes, p.rest, err = emulate.Drive(ctx, cluster); err != nil {
		return err
	}
	close(p.up)
	config, err := secure(a.Secret)
	if err != nil {
		return err
	}
	for to, addr := range p.Peers[:p.Me] {
		conn, err := dial(ctx, addr, config, kindStream, stream{Run: p.Run, From: p.Me, To: to})
		if err == nil {
			if _, err = nextWithin(conn, kindUp, launchSilence); err == nil {
				err = p.add(to, conn, true)
			} else {
				conn.Close()
			}
		}
		if err != nil {
			return fmt.Errorf("stream to %s at %s: %w", emulate.MachineName(to), clip.Text(addr), err)
		}
	}
	for p.count() < len(p.Peers)-1 { // without one, its machine ends the run
		select {
		case <-p.came:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for to, c := range p.streams {
		go func() {
			if err := c.lost(ctx); err != nil {
				name := "the connection to " + emulate.MachineName(to)
				_ = session.SendValue(kindExit, exit{Name: name, State: err.Error()})
			}
		}()
	}
	return nil
}

// crossing is the connection to another part, which the fabric process has too.
type crossing struct {
	conn *net.TCPConn
	keys realtime.Keys
}

// lookEvery is the interval at which an agent looks whether the network has ended a crossing.
const lookEvery = 200 * time.Millisecond

// lost waits until the network has ended the connection, and returns why; nil: ctx has ended first,
// or this machine has closed it.
func (c *crossing) lost(ctx context.Context) (why error) {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return err
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for why == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if raw.Control(func(fd uintptr) {
			ends := []unix.PollFd{{Fd: int32(fd)}}
			if n, err := unix.Poll(ends, 0); err != nil || n == 0 || ends[0].Revents&(unix.POLLERR|unix.POLLHUP) == 0 {
				return
			}
			why = errors.New("the other machine is out of reach, or has reset it") // the fabric process was told which
			if code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && code != 0 {
				why = unix.Errno(code)
			}
		}) != nil {
			return nil
		}
	}
	return why
}

// wants returns an error unless the stream to another part is missing. p.mu is held.
func (p *part) wants(part int) error {
	if part < 0 || part >= len(p.Peers) || part == p.Me || p.streams == nil || p.streams[part] != nil {
		return fmt.Errorf("a stream to part %d, which has one or does not exist", part)
	}
	return nil
}

// add releases a connection and adds it as the stream to another part.
func (p *part) add(part int, conn *link, dialed bool) error {
	raw, keys, err := conn.release(dialed)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.wants(part); err != nil {
		return cleanup.Join(err, raw.Close())
	}
	p.streams[part] = &crossing{raw, keys}
	select {
	case p.came <- struct{}{}:
	default:
	}
	return nil
}

func (p *part) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.streams)
}

// stream takes the stream from another part.
func (a *Agent) stream(ctx context.Context, conn *link, s stream) error {
	p, err := a.await(ctx, s.Run)
	if err == nil && s.To != p.Me {
		err = errTwice
	}
	if err == nil {
		p.mu.Lock()
		err = p.wants(s.From)
		p.mu.Unlock()
	}
	if err == nil {
		err = conn.SendValue(kindUp, nil)
	}
	if err == nil {
		err = p.add(s.From, conn, false)
	}
	return err
}

// report reports that the part is up and then the ends of its processes, until ctx ends.
func (p *part) report(ctx context.Context, conn *link) {
	u := up{Bound: p.cluster.Bound(), Fabric: p.cluster.Fabric().Report}
	for i := range p.cluster.Nodes() {
		u.Nodes = append(u.Nodes, p.node(i))
	}
	if conn.SendValue(kindUp, u) != nil {
		return // the session has ended
	}
	for {
		select {
		case e, ok := <-p.cluster.Exits():
			if !ok {
				return
			}
			err := emulate.Died(p.cluster, e)
			_ = conn.SendValue(kindExit, exit{Name: err.Name, State: err.State, Stderr: err.Stderr, PID: e.PID})
		case <-ctx.Done():
			return
		}
	}
}

// process relays the messages of a process.
func (a *Agent) process(conn *link, asked process) error {
	p, err := a.find(asked.Run)
	if err != nil {
		return err
	}
	select {
	case <-p.up:
	case <-time.After(silence):
		return fmt.Errorf("the processes of this run are not up after %v", silence)
	}
	switch {
	case asked.Node == fabricProcess:
		fabric := p.cluster.Fabric().Conn
		relay(conn.Conn, fabric, change{
			with: func(m control.Message) ([]int, error) {
				if m.Kind == realtime.KindConfigure { // what nodes get with theirs
					return nil, nil
				}
				return p.with(m, false)
			},
			passed: func(m control.Message) error {
				err := p.follow(m)
				if err == nil && m.Kind == realtime.KindConfigure {
					err = p.connect(fabric)
				}
				return err
			}})
	case asked.Node >= 0 && asked.Node < len(p.Nodes):
		p.mu.Lock()
		to := p.nodes[asked.Node]
		p.mu.Unlock()
		relay(conn.Conn, to, change{
			with: func(m control.Message) ([]int, error) { return p.with(m, true) },
			back: func(m control.Message) error { return p.correct(asked.Node, m) }})
	default:
		return fmt.Errorf("node %d of %d", asked.Node, len(p.Nodes))
	}
	return nil
}

// connect hands the streams to the fabric process, in the order of parts.
func (p *part) connect(fabric *control.Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.Peers {
		if k == p.Me {
			continue
		}
		s := p.streams[k]
		if s == nil {
			return fmt.Errorf("no stream to part %d", k)
		}
		f, err := s.conn.File()
		if err != nil {
			return err
		}
		err = fabric.SendValue(realtime.KindPeers, []realtime.Keys{s.keys}, int(f.Fd()))
		if err = cleanup.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
