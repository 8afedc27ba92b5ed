package machine

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"weft/clocksync/labtime"
	"weft/internal/cleanup"
	"weft/internal/clip"
	monotonic "weft/internal/clock"
	"weft/internal/control"
	"weft/nodeimg/agent"
	"weft/nodeimg/boot"
	"weft/orchestrator/emulate"
	"weft/orchestrator/runtime"
	"weft/realtime"
)

// Group is the agents at some addresses, each of which gets one part of a run.
type Group struct {
	Addrs  []string
	Secret string
	Build  string // of this program
}

// Launches returns the launches of the parts of one run.
func (g *Group) Launches(context.Context) ([]runtime.Launch, error) {
	config, err := secure(g.Secret)
	if err != nil {
		return nil, err
	}
	l := launcher{addrs: g.Addrs, build: g.Build, run: rand.Text(), config: config}
	all := make([]runtime.Launch, len(g.Addrs))
	for k := range all {
		all[k] = l.machine(k)
	}
	return all, nil
}

// Capacities returns what each machine can carry, which it measures if it does not know.
func (g *Group) Capacities(ctx context.Context) ([]emulate.Capacity, error) {
	config, err := secure(g.Secret)
	if err != nil {
		return nil, err
	}
	all := make([]emulate.Capacity, len(g.Addrs))
	group, ctx := errgroup.WithContext(ctx)
	for k, addr := range g.Addrs {
		group.Go(func() error {
			if err := ask(ctx, addr, config, &all[k]); err != nil {
				return fmt.Errorf("%s: %s: %w", emulate.MachineName(k), addr, err)
			}
			return nil
		})
	}
	return all, group.Wait()
}

// ask asks an agent what its machine can carry.
func ask(ctx context.Context, addr string, config *tls.Config, c *emulate.Capacity) error {
	conn, err := dial(ctx, addr, config, kindMeasure, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	m, err := next(conn, kindCapacity)
	if err == nil {
		err = m.Decode(c)
	}
	if err == nil && !c.Sensible() {
		err = fmt.Errorf("capacity %+v", *c)
	}
	return err
}

// Names says which machine is which.
func (g *Group) Names() []string {
	var all []string
	for k, addr := range g.Addrs {
		all = append(all, emulate.MachineName(k)+" is at "+addr)
	}
	return all
}

// Close does nothing: the agents are others'.
func (g *Group) Close(context.Context) error { return nil }

// launcher starts the parts of a run.
type launcher struct {
	addrs  []string // of the agents, by part
	build  string
	run    string // number of the run
	config *tls.Config
}

// machine returns the launch of part k.
func (l *launcher) machine(k int) runtime.Launch {
	return func(ctx context.Context, spec runtime.Spec) (runtime.Cluster, error) {
		c, err := l.launch(ctx, k, spec)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.addrs[k], err)
		}
		return c, nil
	}
}

// cluster is a part of a run on another machine. It implements runtime.Cluster.
type cluster struct {
	*launcher
	name    string // of the machine
	addr    string // of its agent
	session *link
	fabric  *runtime.Proc
	bound   string
	exits   chan runtime.Exit
	end     context.CancelFunc
	ended   chan struct{} // closed when the session has ended
	lost    string        // how it has ended; valid once ended is closed

	reported int             // ends of processes; of listen
	captures sync.WaitGroup  // that are under way
	whole    context.Context // ends with the network, of which other machines have parts
	broke    func()          // ends whole
	sharing  sync.Once       // of the module
	unshared error           // why the agent does not have it; valid after sharing

	mu     sync.Mutex
	asked  time.Time     // last call of ask
	stood  time.Duration // longest time between two, if that is more than silence
	clock  follower
	nodes  []*runtime.Proc
	far    []*link        // to the processes; the first is the fabric's
	driven map[*link]bool // of nodes that have lab time, since they run a workload or keep clocks
}

// launch starts a part.
func (l *launcher) launch(ctx context.Context, k int, spec runtime.Spec) (*cluster, error) {
	s := session{
		Run: l.run, Build: l.build, Me: k, Peers: l.addrs,
		Lab: spec.Lab, Nodes: spec.Nodes, Memory: spec.Memory, Env: spec.Env,
		Standing: spec.Standing,
	}
	conn, err := dial(ctx, l.addrs[k], l.config, kindSession, s)
	if err != nil {
		return nil, err
	}
	conn.Limit(maxMessage + len(spec.Nodes)*maxOfNode)
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c := &cluster{
		launcher: l, name: emulate.MachineName(k), addr: l.addrs[k], session: conn, driven: map[*link]bool{},
		exits: make(chan runtime.Exit, 2*len(spec.Nodes)+len(l.addrs)+2), end: end, ended: make(chan struct{}),
		nodes: make([]*runtime.Proc, len(spec.Nodes)), far: make([]*link, 1+len(spec.Nodes)),
	}
	c.whole, c.broke = context.WithCancel(context.Background())
	go heartbeats(life, conn)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	err = c.begin(ctx, &spec)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
		conn.Close()
		return nil, err
	}
	go c.listen()
	go regularly(life, c.ask) // measures the agent's clock
	context.AfterFunc(ctx, func() { _ = c.Close() })
	return c, nil
}

// begin waits until the processes are up, measures the agent's clock, and connects to the
// processes.
func (c *cluster) begin(ctx context.Context, spec *runtime.Spec) error {
	m, err := nextWithin(c.session, kindUp, launchSilence)
	if err != nil {
		return err
	}
	var u up
	if err := m.Decode(&u); err != nil {
		return err
	}
	if len(u.Nodes) != len(spec.Nodes) {
		return fmt.Errorf("%d nodes are up, of %d", len(u.Nodes), len(spec.Nodes))
	}
	c.bound = clip.Line(u.Bound)
	for range clockSamples {
		if err := c.ask(); err != nil {
			return err
		}
		if m, err = c.next(kindClock); err == nil {
			err = c.see(m)
		}
		if err != nil {
			return err
		}
	}
	if c.fabric, err = c.connect(ctx, fabricProcess, runtime.Fabric); err != nil {
		return err
	}
	c.fabric.Report = printable(u.Fabric)
	for i := range spec.Nodes {
		if err := c.adopt(ctx, i, spec.Nodes[i].Name, &u.Nodes[i]); err != nil {
			return err
		}
	}
	return nil
}

// adopt connects to the process of a node, which has started.
func (c *cluster) adopt(ctx context.Context, i int, name string, n *node) error {
	p, err := c.connect(ctx, i, name)
	if err != nil {
		return err
	}
	if n.Cable.Kind != boot.TAP && n.Cable.Kind != boot.Packet {
		return fmt.Errorf("%s has a cable of kind %q", name, clip.Text(string(n.Cable.Kind)))
	}
	p.Report, p.FarPID = printable(n.Report), n.PID
	p.Link = boot.Link{Node: name, Kind: n.Cable.Kind, Why: clip.Line(n.Cable.Why), FD: -1}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[i] = p
	return nil
}

// printable returns the report of a process on another machine with notes that can be printed.
func printable(r boot.Report) boot.Report {
	for _, all := range [][]string{r.Notes, r.Lacks} {
		for i, note := range all {
			all[i] = clip.Line(note)
		}
	}
	return r
}

// connect connects to a process.
func (c *cluster) connect(ctx context.Context, node int, name string) (*runtime.Proc, error) {
	far, err := dial(ctx, c.addr, c.config, kindProcess, process{Run: c.run, Node: node})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	ours, near, err := control.Connected()
	if err != nil {
		return nil, cleanup.Join(err, far.Close())
	}
	c.mu.Lock()
	c.far[1+node] = far
	c.mu.Unlock()
	begun := func(m control.Message) error {
		if node != fabricProcess && m.Kind == agent.KindStart {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.driven[far] = true
		}
		return nil
	}
	go relay(near, far.Conn, change{message: c.outgoing(near, node == fabricProcess), passed: begun})
	return &runtime.Proc{Name: name, Conn: ours}, nil
}

// next returns the next message of a kind, and skips heartbeats.
func (c *cluster) next(kind string) (control.Message, error) { return next(c.session, kind) }

func next(conn *link, kind string) (control.Message, error) { return nextWithin(conn, kind, silence) }

// nextWithin is next with the longest time without any message.
func nextWithin(conn *link, kind string, limit time.Duration) (control.Message, error) {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(limit))
		m, fds, err := conn.Recv()
		control.CloseAll(fds)
		if err != nil {
			return m, fmt.Errorf("its agent does not answer: %w", silent(err))
		}
		switch m.Kind {
		case kindHere:
		case kindExit: // before all is ready
			var e exit
			if err := m.Decode(&e); err != nil {
				return m, err
			}
			return m, e.err()
		default:
			return m, m.Is(kind, nil)
		}
	}
}

// ask asks for the agent's clock. It notes if this process has not run for a while.
func (c *cluster) ask() error {
	c.standing(time.Now())
	return c.session.SendValue(kindClock, clock{Asked: monotonic.Monotonic()})
}

// standing notes at an instant at which this process runs how long it had not run, and returns the
// longest such time, if agents have ended their processes in it.
func (c *cluster) standing(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gap := now.Sub(c.asked); !c.asked.IsZero() && gap > silence {
		c.stood = max(c.stood, gap)
	}
	c.asked = now
	return c.stood
}

// see records the answer to ask.
func (c *cluster) see(m control.Message) error {
	now := monotonic.Monotonic()
	var k clock
	if err := m.Decode(&k); err != nil {
		return err
	}
	trip := now - k.Asked
	if trip < 0 {
		return errors.New("its agent's answer is for a request in the future")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock.add(clockSample{at: k.Asked + trip/2, offset: k.Now - k.Asked - trip/2, trip: trip})
	scale, ok := c.clock.steer(now)
	if !ok {
		return nil
	}
	for i, p := range c.far {
		if i > 0 && !c.driven[p] {
			continue
		}
		_ = p.SendValue(labtime.KindScale, scale) // a process that has ended is told elsewhere
	}
	return nil
}

// listen follows the session until it ends.
func (c *cluster) listen() {
	defer close(c.exits)
	defer close(c.ended)
	for {
		_ = c.session.SetReadDeadline(time.Now().Add(silence))
		m, _, err := c.session.Recv()
		if err == nil {
			switch m.Kind {
			case kindHere:
			case kindClock:
				err = c.see(m)
			case kindExit:
				var e exit
				if err = m.Decode(&e); err == nil {
					c.report(e)
				}
			default:
				err = m.Is(kindHere, nil)
			}
		}
		if err != nil {
			how := "the connection to it ended: " + silent(err).Error()
			if stood := c.standing(time.Now()); stood > 0 {
				how = fmt.Sprintf("this process has stood still for %.1f s, and agents end what is silent for %v",
					stood.Seconds(), silence)
			}
			c.report(exit{Name: "agent", State: how})
			c.lost = how
			c.fabric.Conn.Close()
			for i := range c.Nodes() {
				p := c.Node(i)
				p.Conn.Close()
				c.report(c.gone(p, how))
			}
			return
		}
	}
}

// gone is the end of a node whose machine is lost.
func (c *cluster) gone(p *runtime.Proc, how string) exit {
	return exit{Name: p.Name, State: fmt.Sprintf("it was on %s: %s", c.name, how), PID: p.FarPID, lost: true}
}

// maxExits limits the process exits that a machine may report, and maxStderr the bytes of standard
// error that are kept of each: a deployed lab keeps them until it is taken down. Our own choice.
const (
	maxExits  = 10_000
	maxStderr = 8 << 10
)

// report reports the end of a process.
func (c *cluster) report(e exit) {
	if c.reported++; c.reported > maxExits {
		return
	}
	select {
	case c.exits <- runtime.Exit{Name: e.Name, FarPID: e.PID, Err: e.err()}:
	default: // the agent reports more ends than it has processes
	}
}

// err returns how a process has ended.
func (e exit) err() *runtime.ExitError {
	tail := clip.Lines(strings.Clone(e.Stderr[max(0, len(e.Stderr)-maxStderr):])) // which does not keep the message
	return &runtime.ExitError{Name: clip.Line(e.Name), State: clip.Line(e.State), Stderr: tail, Lost: e.lost}
}

// outgoing returns the change of messages to a process: it sends what their descriptors stand for,
// and translates the start of lab time. What fails because of a descriptor is answered to near.
func (c *cluster) outgoing(near *control.Conn, fabric bool) func(control.Message, []int) (control.Message, bool,
	error) {
	start := c.start(fabric)
	return func(m control.Message, fds []int) (control.Message, bool, error) {
		switch {
		case fabric && m.Kind == realtime.KindCapture && len(fds) == 1:
			if err := c.capture(fds[0]); err != nil {
				return m, false, near.SendValue(realtime.KindDid, realtime.Did{Error: err.Error()})
			}
		case !fabric && m.Kind == agent.KindConfigure && len(fds) == 1:
			if err := c.share(fds[0]); err != nil {
				return m, false, near.SendError(err)
			}
		default:
			if err := stays(m, fds); err != nil {
				return m, false, err
			}
		}
		m, err := start(m)
		return m, true, err
	}
}

// start returns a function that translates the start of lab time in a message into the agent's
// clock.
func (c *cluster) start(fabric bool) func(control.Message) (control.Message, error) {
	begin := func(t0 int64) int64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.clock.start(t0)
	}
	return func(m control.Message) (control.Message, error) {
		switch {
		case fabric && m.Kind == realtime.KindConfigure:
			var cfg realtime.Config
			err := m.Decode(&cfg)
			c.mu.Lock()
			c.clock.dilation = cfg.Dilation
			c.mu.Unlock()
			return m, err
		case fabric && m.Kind == realtime.KindStart:
			var s realtime.Start
			if err := m.Decode(&s); err != nil {
				return m, err
			}
			s.T0 = begin(s.T0)
			return control.Encode(m.Kind, s)
		case !fabric && m.Kind == agent.KindStart:
			var s agent.Start
			if err := m.Decode(&s); err != nil {
				return m, err
			}
			s.T0 = begin(s.T0)
			return control.Encode(m.Kind, s)
		}
		return m, nil
	}
}

// EndCaptures ends the captures, since the network has ended.
func (c *cluster) EndCaptures() { c.broke() }

// ClockStep returns by how much the machine's clock has stepped, in nanoseconds.
func (c *cluster) ClockStep() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock.stepped
}

// Nodes implements runtime.Cluster.
func (c *cluster) Nodes() int { return len(c.nodes) }

// Node implements runtime.Cluster.
func (c *cluster) Node(i int) *runtime.Proc {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[i]
}

// Switches implements runtime.Cluster.
func (c *cluster) Switches() int { return 0 }

// Switch implements runtime.Cluster.
func (c *cluster) Switch(int) *runtime.Proc { return nil }

// Fabric implements runtime.Cluster.
func (c *cluster) Fabric() *runtime.Proc { return c.fabric }

// Agents implements runtime.Cluster: nodes drive themselves.
func (c *cluster) Agents() int { return 0 }

// Agent implements runtime.Cluster.
func (c *cluster) Agent(int) *runtime.Proc { return nil }

// Exits implements runtime.Cluster.
func (c *cluster) Exits() <-chan runtime.Exit { return c.exits }

// Bound implements runtime.Cluster.
func (c *cluster) Bound() string { return c.bound }

// Close implements runtime.Cluster.
func (c *cluster) Close() error {
	c.end()
	c.session.Close()
	<-c.ended
	c.captures.Wait()
	return nil
}
