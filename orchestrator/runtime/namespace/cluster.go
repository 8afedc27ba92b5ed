package namespace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/internal/privilege"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
)

// defaultGrace is how long processes may take to exit by themselves. Ours.
const defaultGrace = 100 * time.Millisecond

// Cluster is a running lab; it implements runtime.Cluster and runtime.Restarter.
type Cluster struct {
	*runtime.Members[*proc]
	spec   runtime.Spec
	spawn  *spawner
	groups *groups
	out    *runtime.Lines // may be nil
	slots  chan struct{}  // limits the nodes that are brought up at once

	watch sync.WaitGroup // one for each started process
}

// Launch starts every process of the lab, waits until all are configured and connected, and
// returns. If it fails or ctx ends meanwhile, it leaves nothing. If ctx ends later, the cluster is
// closed.
func Launch(ctx context.Context, spec runtime.Spec) (*Cluster, error) {
	launcher, out, err := spec.Prepare(defaultGrace)
	if err == nil && privilege.NeedsUserNS() {
		err = ErrNeedsUserNS
	}
	if err != nil {
		return nil, fmt.Errorf("launch lab %s: %w", spec.Lab, err)
	}
	spec.Env = append(slices.Clip(spec.Env), launcherVar+"="+launcher.String())
	c := &Cluster{Members: runtime.NewMembers[*proc](&spec), spec: spec, spawn: newSpawner(), out: out,
		slots: make(chan struct{}, runtime.AtOnce())}
	boot := func(b *runtime.Boot) (err error) {
		if c.groups, err = makeGroups(&c.spec); err != nil {
			return err
		}
		return c.boot(b)
	}
	if err := c.Launch(ctx, boot, c.close); err != nil {
		return nil, fmt.Errorf("launch lab %s: %w", spec.Lab, err)
	}
	return c, nil
}

// boot brings up all processes concurrently.
func (c *Cluster) boot(b *runtime.Boot) error {
	if c.spec.Switched() {
		return c.bootSwitched(b)
	}
	fabric, err := c.start(runtime.Fabric, c.spec.FabricArgs, "fabric")
	if err != nil {
		return err
	}
	c.Set(runtime.Carrier, 0, fabric)
	if err := fabric.Conn.SendValue(boot.KindBoot, boot.FabricSpec{Links: c.Nodes()}); err != nil {
		return c.Failed(fabric, err)
	}
	b.Do(func() error { return c.Up(fabric) })
	for i := range c.Nodes() {
		b.Do(func() error { return c.inTurn(func() error { return c.bootNode(i) }) })
	}
	for i := range c.Agents() {
		b.Do(func() error { return c.bootAgents(i) })
	}
	return b.Wait()
}

// inTurn calls f when few enough other calls run. Once the lab is being closed, f starts nothing.
func (c *Cluster) inTurn(f func() error) error {
	c.slots <- struct{}{}
	defer func() { <-c.slots }()
	return f()
}

// startNode starts one node and boots it up to its cable, whose descriptors it returns.
func (c *Cluster) startNode(i int) (p *proc, fds []int, err error) {
	if p, err = c.start(c.spec.Nodes[i].Name, c.spec.NodeArgs, "node"); err != nil {
		return nil, nil, err
	}
	c.Set(runtime.Host, i, p)
	err = c.spec.Around("boot "+p.Name, func() error { return p.Conn.SendValue(boot.KindBoot, c.node(i, p)) })
	if err == nil {
		fds, err = p.Conn.Expect(boot.KindLink, &p.Link)
	}
	p.Link.Index = i
	return p, fds, c.Failed(p, err)
}

// bootNode boots one node and connects its cable to the fabric.
func (c *Cluster) bootNode(i int) error {
	p, fds, err := c.startNode(i)
	if err != nil {
		return err
	}
	fabric := c.Of(runtime.Carrier, 0)
	err = fabric.Conn.SendValue(boot.KindLinks, []boot.Link{p.Link}, fds...)
	control.CloseAll(fds)
	if err != nil {
		return c.Failed(fabric, err)
	}
	return c.Up(p)
}

// bootAgents boots one process that drives nodes.
func (c *Cluster) bootAgents(i int) error {
	p, err := c.start(runtime.AgentsName(i), c.spec.NodeArgs, "node")
	if err != nil {
		return err
	}
	c.Set(runtime.Agent, i, p)
	return c.Boot(p, boot.NodeSpec{Name: p.Name, Agents: true, Nice: c.spec.Nodes[0].Nice})
}

// node returns the boot spec of a node's process.
func (c *Cluster) node(i int, p *proc) boot.NodeSpec {
	spec := c.spec.Nodes[i]
	if user := boot.ProgramUser(p.PID); boot.HasUser(user) {
		spec.User = user
	}
	return spec
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
		c.groups.enter(name, p.PID) // before it gets its spec
	}
	return p, nil
}

// startHere is start on the spawner's thread.
func (c *Cluster) startHere(name string, args []string) (*proc, error) {
	return c.Start(func() (*proc, error) {
		p, err := start(&c.spec, name, args, c.out)
		if err == nil {
			c.watch.Go(func() {
				<-p.done
				c.Report(runtime.Exit{Name: p.Name, PID: p.PID, Err: p.Exit()})
			})
		}
		return p, err
	})
}

// close ends every process and returns when all are gone.
func (c *Cluster) close() error {
	_ = c.spec.Around("hang up", func() error { c.HangUp(); return nil })
	var all cleanup.Errors
	var left []*proc
	_ = c.spec.Around("end processes", func() error {
		left = awaitExits(c.Started(), c.spec.Grace)
		for _, p := range left {
			_ = p.kill() // reported below
		}
		return nil
	})
	for _, p := range awaitExits(left, runtime.KillTime) {
		all.Add(fmt.Errorf("%s (process %d) still runs %v after it was killed", p.Name, p.PID, runtime.KillTime))
	}
	c.spawn.stop()
	if all.Err() == nil && c.groups != nil {
		err := c.spec.Around("remove control group", func() error { return c.groups.remove(context.Background()) })
		if err != nil {
			all.Add(err)
		}
	}
	if all.Err() == nil {
		c.watch.Wait()
		c.CloseExits()
	}
	return all.Err()
}
