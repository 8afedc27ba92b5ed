package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/sys/unix"

	"weft/nodeimg/boot"
	"weft/nodeimg/control"
	"weft/orchestrator/runtime"
)

// How long to wait for what should take no time at all. Ours.
const (
	defaultGrace = 100 * time.Millisecond // for processes to end by themselves
	killTime     = 3 * time.Second        // for killed ones to be gone: the kernel takes down their namespaces
	lastWords    = time.Second            // for a process whose connection broke to have ended
)

// Cluster is a running lab: a runtime.Cluster.
type Cluster struct {
	spec     runtime.Spec
	spawn    *spawner
	groups   *groups
	out      *runtime.Lines // nil: nobody listens
	fabric   *proc          // nil: switches are nodes
	nodes    []*proc
	switches []*proc
	agents   []*proc
	exits    chan runtime.Exit

	mu      sync.Mutex // guards what follows
	started []*proc
	closing bool
	forget  func() bool // the context of Launch

	watch sync.WaitGroup // one for each started process
	once  sync.Once      // of Close
	err   error          // of Close
}

// proc is one process of the lab, and how it runs.
type proc struct {
	runtime.Proc
	run *running
}

// Launch starts every process of the lab, waits until all are configured and connected, and returns. When it
// fails, or ctx ends meanwhile, nothing is left. When ctx ends later, the cluster is closed.
func Launch(ctx context.Context, spec runtime.Spec) (*Cluster, error) {
	if err := control.KeepDescriptors(); err != nil {
		return nil, err
	}
	if err := spec.Check(); err != nil {
		return nil, fmt.Errorf("lab %s: %w", spec.Lab, err)
	}
	if NeedsUserNS() {
		return nil, fmt.Errorf("launch lab %s: %w", spec.Lab, ErrNeedsUserNS)
	}
	if spec.Grace == 0 {
		spec.Grace = defaultGrace
	}
	c := &Cluster{
		spec:     spec,
		spawn:    newSpawner(),
		nodes:    make([]*proc, len(spec.Nodes)),
		switches: make([]*proc, len(spec.Switches)),
		agents:   make([]*proc, spec.Agents),
		exits:    make(chan runtime.Exit, len(spec.Nodes)+len(spec.Switches)+spec.Agents+1),
	}
	if spec.Stderr != nil {
		c.out = runtime.NewLines(spec.Stderr)
	}
	var err error
	if c.groups, err = makeGroups(&c.spec); err == nil {
		err = c.boot(ctx)
	}
	if err != nil {
		var all *multierror.Error
		all = multierror.Append(all, err)
		if err := c.Close(); err != nil {
			all = multierror.Append(all, err)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("launch lab %s: %w", spec.Lab, ctx.Err())
		}
		return nil, fmt.Errorf("launch lab %s: %w", spec.Lab, runtime.Plain(all))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget = context.AfterFunc(ctx, func() { c.Close() })
	return c, nil
}

// boot brings all processes up, side by side. The first failure ends the others' wait.
func (c *Cluster) boot(ctx context.Context) error {
	stop := context.AfterFunc(ctx, c.hangUp)
	defer stop()
	b := runtime.Boot{HangUp: c.hangUp}
	if c.spec.Switched() {
		return c.bootSwitched(&b)
	}
	var err error
	if c.fabric, err = c.start(runtime.Fabric, c.spec.FabricArgs, "fabric"); err != nil {
		return err
	}
	spec := boot.FabricSpec{Links: len(c.nodes), Nice: c.spec.FabricNice}
	if err := c.fabric.Conn.SendValue(boot.KindBoot, spec); err != nil {
		return c.failed(c.fabric, err)
	}
	b.Do(func() error {
		_, err := c.fabric.Conn.Expect(boot.KindUp, &c.fabric.Report)
		return c.failed(c.fabric, err)
	})
	for i := range c.nodes {
		b.Do(func() error { return c.bootNode(i) })
	}
	for i := range c.agents {
		b.Do(func() error { return c.bootAgents(i) })
	}
	return b.Wait()
}

// startNode starts one node and takes it as far as its cable, whose descriptors it returns.
func (c *Cluster) startNode(i int) (fds []int, err error) {
	p, err := c.start(c.spec.Nodes[i].Name, c.spec.NodeArgs, "node")
	if err != nil {
		return nil, err
	}
	c.nodes[i] = p
	err = c.spec.Around("boot "+p.Name, func() error { return p.Conn.SendValue(boot.KindBoot, c.node(i, p)) })
	if err == nil {
		fds, err = p.Conn.Expect(boot.KindLink, &p.Link)
	}
	p.Link.Index = i
	return fds, c.failed(p, err)
}

// bootNode takes one node through its boot, and its cable to the fabric.
func (c *Cluster) bootNode(i int) error {
	fds, err := c.startNode(i)
	if err != nil {
		return err
	}
	p := c.nodes[i]
	err = c.fabric.Conn.SendValue(boot.KindLinks, []boot.Link{p.Link}, fds...)
	for _, fd := range fds {
		unix.Close(fd)
	}
	if err != nil {
		return c.failed(c.fabric, err)
	}
	_, err = p.Conn.Expect(boot.KindUp, &p.Report)
	return c.failed(p, err)
}

// bootAgents takes one process that drives nodes through its boot.
func (c *Cluster) bootAgents(i int) error {
	p, err := c.start(runtime.AgentsName(i), c.spec.NodeArgs, "node")
	if err != nil {
		return err
	}
	c.agents[i] = p
	spec := boot.NodeSpec{Name: p.Name, Agents: true, Nice: c.spec.Nodes[0].Nice}
	if err = p.Conn.SendValue(boot.KindBoot, spec); err == nil {
		_, err = p.Conn.Expect(boot.KindUp, &p.Report)
	}
	return c.failed(p, err)
}

// node is what a process is to become.
func (c *Cluster) node(i int, p *proc) boot.NodeSpec {
	spec := c.spec.Nodes[i]
	if user := boot.UserOf(p.PID); boot.HasUser(user) {
		spec.User = user
	}
	return spec
}

// failed names the process that err is about. If its connection broke, how the process ended says more.
func (c *Cluster) failed(p *proc, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) {
		if len(ended([]*running{p.run}, lastWords)) == 0 {
			return p.run.exit()
		}
	}
	return fmt.Errorf("%s: %w", p.Name, err)
}

// start starts one process, unless the cluster is being closed.
func (c *Cluster) start(name string, args []string, command string) (p *proc, err error) {
	if args == nil {
		args = []string{command}
	}
	op := runtime.Op{Do: "start " + command + " " + name, Kind: runtime.Process, Name: name}
	err = c.spec.Do(op, func() (err error) {
		c.spawn.do(func() { p, err = c.startHere(name, args) })
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if name != runtime.Fabric {
		c.groups.enter(name, p.PID) // before it is told what to become
	}
	return p, nil
}

// startHere does so on the spawner's thread.
func (c *Cluster) startHere(name string, args []string) (*proc, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, errors.New("the lab is being closed")
	}
	p := &proc{Proc: runtime.Proc{Name: name}}
	var err error
	if p.run, p.Conn, err = start(&c.spec, name, args, c.out); err != nil {
		return nil, err
	}
	p.PID = p.run.cmd.Process.Pid
	c.started = append(c.started, p)
	c.watch.Go(func() { c.await(p) })
	return p, nil
}

// await reports the end of p unless it was asked for.
func (c *Cluster) await(p *proc) {
	<-p.run.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.exits <- runtime.Exit{Name: p.Name, PID: p.PID, Err: p.run.exit()} // has room for all
	}
}

// hangUp closes every control connection, which wakes whoever waits on one, here and in the processes.
func (c *Cluster) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	if c.forget != nil {
		c.forget()
	}
	for _, p := range c.started {
		p.Conn.Close()
	}
}

// Node returns the process of the host with this number.
func (c *Cluster) Node(i int) *runtime.Proc {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &c.nodes[i].Proc
}

// Nodes returns the number of hosts.
func (c *Cluster) Nodes() int { return len(c.nodes) }

// Switches returns the number of switches that are nodes, and Switch the process of one.
func (c *Cluster) Switches() int              { return len(c.switches) }
func (c *Cluster) Switch(i int) *runtime.Proc { return &c.switches[i].Proc }

// Agents returns the number of processes that may drive nodes, and Agent one of them.
func (c *Cluster) Agents() int               { return len(c.agents) }
func (c *Cluster) Agent(i int) *runtime.Proc { return &c.agents[i].Proc }

// Fabric returns the fabric's process; nil if switches are nodes.
func (c *Cluster) Fabric() *runtime.Proc {
	if c.fabric == nil {
		return nil
	}
	return &c.fabric.Proc
}

// Exits reports each process that ends before Close, at once. It is closed by Close.
func (c *Cluster) Exits() <-chan runtime.Exit { return c.exits }

// Close ends every process and returns when all are gone. Connections are closed first, at which processes
// end by themselves; whichever has not within the grace period is killed. It may be called at any time, and
// again, with the same result. An error means that a process could not be ended.
func (c *Cluster) Close() error {
	c.once.Do(func() { c.err = c.close() })
	return c.err
}

func (c *Cluster) close() error {
	_ = c.spec.Around("hang up", func() error { c.hangUp(); return nil })
	runs := make([]*running, 0, len(c.started)) // nothing is started after hangUp
	for _, p := range c.started {
		runs = append(runs, p.run)
	}
	var all *multierror.Error
	var left []*running
	_ = c.spec.Around("end processes", func() error {
		left = ended(runs, c.spec.Grace)
		for _, r := range left {
			_ = r.cmd.Process.Kill() // it may just have ended
		}
		return nil
	})
	for _, r := range ended(left, killTime) {
		all = multierror.Append(all, fmt.Errorf("%s (process %d) does not end, %v after it was killed", r.name, r.cmd.Process.Pid, killTime))
	}
	c.spawn.stop()
	if all == nil && c.groups != nil {
		err := c.spec.Around("remove control group", func() error { return c.groups.remove(context.Background()) })
		if err != nil {
			all = multierror.Append(all, err)
		}
	}
	if all == nil {
		c.watch.Wait()
		close(c.exits)
	}
	return runtime.Plain(all)
}
