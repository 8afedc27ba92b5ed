package docker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/poller"
	"weft/nodeimg/boot"
	"weft/nodeimg/image"
	"weft/orchestrator/runtime"
)

// How long to wait for what should take no time at all. Ours.
const (
	defaultGrace = time.Second            // for processes to end by themselves once nobody controls them
	bootTime     = 15 * time.Second       // for a process that was started to accept control
	exitTime     = 100 * time.Millisecond // from a process's loss of its namespaces to its end
	readTime     = 50 * time.Millisecond  // for what a process wrote at its end to be read
	removeTime   = 20 * time.Second       // for the engine to remove containers that have ended
)

// errEnded is why a process that has just been started cannot be found.
var errEnded = errors.New("it ended at once")

// proc is one process of the lab, and the container that it is the first of.
type proc struct {
	runtime.Proc
	spec      *boot.NodeSpec // nil: the fabric's
	container string         // its ID
	pidfd     int            // held until all is over, so that the number means no other process
	tail      *runtime.Tail
	begun     chan struct{} // closed when PID and pidfd are valid, or never will be: it may have ended meanwhile
	read      chan struct{} // closed when nothing more is to come for tail

	died  chan struct{} // closed when the container ended; then state is valid
	gone  chan struct{} // closed when the engine has removed it
	state string
	oom   bool
}

// Ended is closed when the engine has said that the container ended.
func (p *proc) Ended() <-chan struct{} { return p.died }

// Kill ends the process, and returns when the engine has noticed.
func (p *proc) Kill() error {
	if err := runtime.Kill(p.PID, p.pidfd); err != nil {
		return err
	}
	return p.await(p.died, "has not noticed its end")
}

// Cluster is a running lab: a runtime.Cluster.
type Cluster struct {
	*runtime.Members[*proc]
	spec   runtime.Spec
	engine *engine
	owner  runtime.Owner
	id     string // of this launch: labelRun
	image  string // of nodes, by its ID
	out    *runtime.Lines
	reaper *reaper
	slots  chan struct{} // taken by what the engine is asked to start at once

	plugged chan struct{} // closed when the fabric takes cables, or never will

	mu   sync.Mutex // guards what the engine has said: this, and of each process
	lost error      // its events ended: why

	life  context.Context // of requests and of the listener
	end   context.CancelFunc
	watch sync.WaitGroup
}

// Launch starts every process of the lab in a container of its own, waits until all are configured and connected, and
// returns. When it fails, or ctx ends meanwhile, nothing is left. When ctx ends later, the cluster is closed. It is a
// runtime.Launch; the engine is that of DOCKER_HOST, or at the usual place.
func Launch(ctx context.Context, spec runtime.Spec) (runtime.Cluster, error) {
	c, err := launch(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("launch lab %s: %w", spec.Lab, err)
	}
	return c, nil
}

func launch(ctx context.Context, spec runtime.Spec) (*Cluster, error) {
	spec.Agents = 0 // each container drives itself
	owner, out, err := spec.Prepare(defaultGrace)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Members: runtime.NewMembers[*proc](&spec), spec: spec, owner: owner, out: out}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if err := c.Launch(ctx, c.boot, c.close); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare does all that leaves nothing behind but an image.
func (c *Cluster) prepare(ctx context.Context) (err error) {
	if err := privileged(); err != nil {
		return err
	}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	c.id = hex.EncodeToString(id[:])
	if c.engine, err = open(ctx, ""); err != nil {
		return err
	}
	if err = c.engine.have(ctx, c.spec.Images); err == nil {
		err = c.spec.Around("import image", func() (err error) {
			c.image, err = image.Ensure(ctx, c.engine.api, c.spec.Self)
			return err
		})
	}
	if err == nil {
		c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
		c.slots = make(chan struct{}, atOnce())
		c.plugged = make(chan struct{})
		if err = c.listen(); err == nil {
			err = c.spec.Around("start reaper", func() (err error) {
				c.reaper, err = startReaper(c.spec.Self, c.engine.host, c.id, c.owner)
				return err
			})
		}
		if err != nil {
			c.end()
			c.watch.Wait()
		}
	}
	if err != nil {
		c.engine.api.Close()
	}
	return err
}

// boot brings all processes up, side by side.
func (c *Cluster) boot(b *runtime.Boot) error {
	if c.spec.Switched() {
		return c.bootSwitched(b)
	}
	b.Do(c.bootFabric)
	for i := range c.Nodes() {
		b.Do(func() error { return c.bootNode(i) })
	}
	if err := b.Wait(); err != nil {
		return err
	}
	return c.Up(c.Of(runtime.Carrier, 0))
}

// bootFabric starts the fabric's process, to which nodes then bring their cables.
func (c *Cluster) bootFabric() error {
	defer close(c.plugged)
	spec := boot.FabricSpec{Links: c.Nodes(), Nice: c.spec.FabricNice}
	p, err := c.start(runtime.Fabric, nil)
	if err != nil {
		return err
	}
	if err := c.take(p, spec, spec.Nice); err != nil {
		return c.failed(p, err)
	}
	poller.Prefer(p.PID, poller.Urgent) // what is refused shows in the fidelity verdict, if it matters
	c.Set(runtime.Carrier, 0, p)
	return nil
}

// bootNode takes one node through its boot, and its cable to the fabric.
func (c *Cluster) bootNode(i int) error {
	p, cable, err := c.startNode(i)
	if err != nil {
		return err
	}
	defer unix.Close(cable)
	<-c.plugged
	fabric := c.Of(runtime.Carrier, 0)
	if fabric == nil {
		return runtime.ErrClosing
	}
	return c.failed(fabric, fabric.Conn.SendValue(boot.KindLinks, []boot.Link{p.Link}, cable))
}

// startNode takes one node through its boot, and returns the other end of its cable.
func (c *Cluster) startNode(i int) (p *proc, cable int, err error) {
	spec := &c.spec.Nodes[i]
	if p, err = c.start(spec.Name, spec); err != nil {
		return nil, -1, err
	}
	defer func() {
		if err != nil {
			p.discard()
		}
	}()
	if err = c.take(p, spec, spec.Nice); err != nil {
		return p, -1, c.failed(p, err)
	}
	cable = p.Link.FD
	p.Link.Index, p.Link.FD = i, 0
	if err = c.Up(p); err != nil {
		unix.Close(cable)
		return p, -1, err
	}
	c.Set(runtime.Host, i, p)
	return p, cable, nil
}

// failed names the process that err is about. How it ended says more, and a busy engine is late to say that.
func (c *Cluster) failed(p *proc, err error) error {
	if errors.Is(err, errEnded) {
		select {
		case <-p.died:
			return p.Exit()
		case <-time.After(removeTime):
		}
	}
	return c.Failed(p, err)
}
