package emulate

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/nodeimg/agent"
	"weft/orchestrator/runtime"
)

// crew are those who drive the nodes of a cluster: processes that drive several, to which the nodes were lent, or each node's own.
type crew struct {
	conns   []*control.Conn // to who drives a node, by host
	keepers []keeper        // the processes of nodes that were lent, likewise; empty: none was
}

// keeper is the process of a node that another drives. All that it says is that it is alive.
type keeper struct {
	conn  *control.Conn
	heard atomic.Int64 // when it said so last, in nanoseconds of Unix time
}

// lend gives the nodes of a cluster to the processes that drive several, if there are such: neighbours to different ones, so that
// all have as much to do.
func lend(ctx context.Context, cluster runtime.Cluster) (*crew, error) {
	c := &crew{conns: make([]*control.Conn, cluster.Nodes())}
	for i := range c.conns {
		c.conns[i] = cluster.Node(i).Conn
	}
	if cluster.Agents() == 0 {
		return c, nil
	}
	c.keepers = make([]keeper, len(c.conns))
	for i := range c.keepers {
		c.keepers[i].conn = c.conns[i]
	}
	stop := context.AfterFunc(ctx, func() { c.readDeadline(time.Now()) })
	defer stop()
	lent := make([][]int, len(c.conns))
	var group errgroup.Group
	for i := range c.keepers {
		group.Go(func() (err error) {
			if err = c.keepers[i].conn.SendValue(agent.KindLend, nil); err == nil {
				lent[i], err = c.keepers[i].conn.Expect(agent.KindLent, nil)
			}
			return called(cluster.Node(i), err)
		})
	}
	err := group.Wait()
	for i := range lent {
		if err == nil {
			err = c.give(cluster, i, lent[i])
		}
		for _, fd := range lent[i] {
			unix.Close(fd)
		}
	}
	if err != nil {
		c.close()
		return nil, blame(ctx, cluster, err)
	}
	c.allHeard(time.Now())
	for i := range c.keepers {
		go c.keepers[i].listen()
	}
	return c, nil
}

// give gives a node, with what its process lent, to one that is to drive it.
func (c *crew) give(cluster runtime.Cluster, i int, lent []int) error {
	to := cluster.Agent(i % cluster.Agents())
	conn, theirs, err := control.Pair()
	if err != nil {
		return err
	}
	c.conns[i] = conn
	how := agent.Adopt{Name: cluster.Node(i).Name, Left: (len(c.conns) - 1 - i) / cluster.Agents()}
	err = to.Conn.SendValue(agent.KindAdopt, how, append([]int{int(theirs.Fd())}, lent...)...)
	return called(to, cleanup.Join(err, theirs.Close()))
}

// called says which process err is about.
func called(p *runtime.Proc, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.Name, err)
}

// listen notes when the keeper says that it is alive, until its connection ends with the cluster.
func (k *keeper) listen() {
	for {
		if _, _, err := k.conn.Recv(); err != nil {
			return
		}
		k.heard.Store(time.Now().UnixNano())
	}
}

// quiet is how long ago the process of a node that another drives was heard of; 0: no other does.
func (c *crew) quiet(i int, now time.Time) time.Duration {
	if len(c.keepers) == 0 {
		return 0
	}
	return now.Sub(time.Unix(0, c.keepers[i].heard.Load()))
}

// allHeard counts as if all keepers had just said that they are alive.
func (c *crew) allHeard(now time.Time) {
	for i := range c.keepers {
		c.keepers[i].heard.Store(now.UnixNano())
	}
}

func (c *crew) readDeadline(t time.Time) {
	for _, conn := range c.conns {
		_ = conn.SetReadDeadline(t)
	}
}

// close ends the connections to who drives nodes that were lent. All others end with the cluster.
func (c *crew) close() {
	for i := range c.keepers {
		if c.conns[i] != c.keepers[i].conn {
			c.conns[i].Close()
		}
	}
}

// drivers are the processes that drive nodes.
func drivers(cluster runtime.Cluster) (all []*runtime.Proc) {
	for i := range cluster.Agents() {
		all = append(all, cluster.Agent(i))
	}
	if len(all) > 0 {
		return all
	}
	for i := range cluster.Nodes() {
		all = append(all, cluster.Node(i))
	}
	return all
}
