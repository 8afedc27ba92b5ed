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

// Time limits of operations that normally take milliseconds. Our own choice.
const (
	defaultGrace = time.Second            // for processes to exit once their connection is closed
	bootTime     = time.Minute            // for a process to accept control, unless it ends
	exitTime     = 100 * time.Millisecond // from the loss of a connection to a process to its exit
	readTime     = 50 * time.Millisecond  // for reading a process's last output
	removeTime   = 20 * time.Second       // for the engine to remove containers that have ended
)

// errEnded means that a container ended right after its start.
var errEnded = errors.New("it ended right after its start")

// proc is one process of the lab, the first of its container.
type proc struct {
	runtime.Proc
	spec      *boot.NodeSpec // nil for the fabric
	container string         // its ID
	pidfd     int            // open until the lab is closed, so that PID is not reused
	tail      *runtime.Tail
	begun     chan struct{} // closed when PID and pidfd are set, or when starting it failed
	read      chan struct{} // closed at the end of its output

	died  chan struct{} // closed when the container has ended; then state is valid
	gone  chan struct{} // closed when the engine has removed it
	state string
	oom   bool
}

// Ended returns a channel that is closed when the engine has reported the container's end.
func (p *proc) Ended() <-chan struct{} { return p.died }

// Kill kills the process and returns when the engine has noticed.
func (p *proc) Kill() error {
	if err := runtime.Kill(p.PID, p.pidfd); err != nil {
		return err
	}
	return p.await(p.died, "has not noticed its end")
}

// Cluster is a running lab; it implements runtime.Cluster and runtime.Restarter.
type Cluster struct {
	*runtime.Members[*proc]
	spec   runtime.Spec
	engine *engine
	owner  runtime.Owner
	id     string // of this launch, the value of labelRun
	image  string // ID of the nodes' image
	out    *runtime.Lines
	reaper *reaper
	slots  chan struct{} // limits the containers that are started at once

	plugged chan struct{} // closed when the fabric accepts cables, or has failed

	mu   sync.Mutex // guards lost, and the state and oom of each process
	lost error      // why the engine's events ended

	life  context.Context // of requests and the event listener
	end   context.CancelFunc
	watch sync.WaitGroup
}

// Launch starts every process of the lab in a container of its own, waits until all are configured
// and connected, and returns. If it fails or ctx ends meanwhile, it leaves nothing. If ctx ends
// later, the cluster is closed. It is a runtime.Launch. The engine is that of DOCKER_HOST or the
// default one.
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

// prepare does everything that leaves at most an image behind.
func (c *Cluster) prepare(ctx context.Context) (err error) {
	if err := checkPrivileges(); err != nil {
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
	if err = c.engine.checkImages(ctx, c.spec.Images); err == nil {
		err = c.spec.Around("import image", func() (err error) {
			c.image, err = image.Ensure(ctx, c.engine.api, c.spec.Self)
			return err
		})
	}
	if err == nil {
		c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
		c.slots = make(chan struct{}, runtime.AtOnce())
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

// boot brings up all processes concurrently.
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

// bootFabric boots the fabric's process. Nodes then add their cables to it.
func (c *Cluster) bootFabric() error {
	defer close(c.plugged)
	p, err := c.start(runtime.Fabric, nil)
	if err != nil {
		return err
	}
	if err := c.takeControl(p, boot.FabricSpec{Links: c.Nodes()}, 0); err != nil {
		return c.Failed(p, err)
	}
	poller.Prefer(p.PID, poller.Urgent) // a failure shows in the fidelity verdict, if it matters
	c.Set(runtime.Carrier, 0, p)
	return nil
}

// bootNode boots one node and connects its cable to the fabric.
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
	return c.Failed(fabric, fabric.Conn.SendValue(boot.KindLinks, []boot.Link{p.Link}, cable))
}

// startNode boots one node and returns the other end of its cable.
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
	if err = c.takeControl(p, spec, spec.Nice); err != nil {
		return p, -1, c.Failed(p, err)
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
