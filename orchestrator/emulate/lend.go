package emulate

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weft/host"
	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/nodeimg/agent"
	"weft/orchestrator/runtime"
)

// crew holds the processes that drive the nodes of a cluster: either processes that drive several
// nodes, which were lent to them, or each node's own.
type crew struct {
	conns []*control.Conn // connections to the driving process, by host
	// connections to the processes of lent nodes, which only report that they are alive, by host;
	// empty: none was lent
	keepers []*control.Conn
	// silences of the carrier, of what drives each node, and of each keeper
	silences *silences
}

// firstKeeper returns the number of the first keeper in crew.silences.
func firstKeeper(nodes int) int { return 1 + nodes }

// peer returns whose process has a number in silences.
func (c *crew) peer(process int) int {
	if first := firstKeeper(len(c.conns)); process >= first {
		process -= len(c.conns)
	}
	return process + fabricPeer
}

// Drive hands the nodes of a cluster to its processes that drive several, asks for real-time
// scheduling of them, and returns the connections to what drives each host. close ends those that
// the cluster does not.
func Drive(ctx context.Context, cluster runtime.Cluster) (conns []*control.Conn, close func(), err error) {
	c, err := lend(ctx, cluster)
	if err != nil {
		return nil, nil, endsOf(cluster).blame(ctx, err)
	}
	for _, p := range drivers(cluster) {
		_ = poller.Favour(p.PID) // the verdict says if it matters
	}
	return c.conns, c.close, nil
}

// Agents returns the number of processes that drive a number of nodes: one for each processor but
// the fabric's, so that a wake-up serves many nodes and no process waits for a processor.
func Agents(nodes int) int { return max(1, min(goruntime.NumCPU()-1, nodes)) }

// CheckSockets returns an error if a host has more connections than sockets that it may send from,
// one for each connection at least. Its packets would wait for sockets to be closed and opened.
func CheckSockets(plans []host.Plan) error {
	most, processes := 0, Agents(len(plans))
	for i := range plans {
		most = max(most, len(plans[i].Conns))
	}
	each := (len(plans) + processes - 1) / processes
	may, err := agent.SocketsFor(each)
	if err != nil || most <= may {
		return err
	}
	return fmt.Errorf("a host has %d connections, and a process of %d hosts may open %d sockets for each: packets "+
		"would wait for sockets; raise that limit (ulimit -n)", most, each, may)
}

// lend hands the nodes of a cluster to the processes that drive several, if there are any.
// Neighbours go to different processes, so that all have the same load.
func lend(ctx context.Context, cluster runtime.Cluster) (*crew, error) {
	c := &crew{conns: make([]*control.Conn, cluster.Nodes())}
	for i := range c.conns {
		c.conns[i] = cluster.Node(i).Conn
	}
	if cluster.Agents() == 0 {
		c.silences = newSilences(firstKeeper(len(c.conns)))
		return c, nil
	}
	c.silences = newSilences(firstKeeper(len(c.conns)) + len(c.conns))
	c.keepers = slices.Clone(c.conns)
	stop := context.AfterFunc(ctx, func() { c.readDeadline(time.Now()) })
	defer stop()
	for first := 0; first < len(c.conns); first += lentAtOnce {
		if err := c.pass(cluster, first, min(first+lentAtOnce, len(c.conns))); err != nil {
			c.close()
			return nil, err
		}
	}
	for i := range c.keepers {
		go c.hear(i)
	}
	return c, nil
}

// lentAtOnce is the number of nodes whose descriptors this process has at the same time: each may
// lend hundreds, and a process may have as few as 20,000 in a container.
const lentAtOnce = 16

// pass takes the descriptors of the nodes from first to before end, and gives them to the processes
// that will drive them.
func (c *crew) pass(cluster runtime.Cluster, first, end int) error {
	lent := make([][]int, end-first)
	var group errgroup.Group
	for k := range lent {
		i := first + k
		group.Go(func() (err error) {
			if err = c.keepers[i].SendValue(agent.KindLend, nil); err == nil {
				lent[k], err = c.keepers[i].Expect(agent.KindLent, nil)
			}
			return called(cluster.Node(i), err)
		})
	}
	err := group.Wait()
	for k := range lent {
		if err == nil {
			err = c.give(cluster, first+k, lent[k])
		}
		control.CloseAll(lent[k])
	}
	return err
}

// give hands node i, with the descriptors that its process lent, to the process that will drive it.
func (c *crew) give(cluster runtime.Cluster, i int, lent []int) error {
	number, left := driver(cluster, i)
	to := cluster.Agent(number)
	conn, theirs, err := control.Pair()
	if err != nil {
		return err
	}
	c.conns[i] = conn
	how := agent.Adopt{Name: cluster.Node(i).Name, Left: left}
	err = to.Conn.SendValue(agent.KindAdopt, how, append([]int{int(theirs.Fd())}, lent...)...)
	return called(to, cleanup.Join(err, theirs.Close()))
}

// Died returns the error of a process that ended. A process that drives nodes is named with them.
func Died(cluster runtime.Cluster, e runtime.Exit) *runtime.ExitError {
	const few = 3
	var driven []string
	for i := 0; cluster.Agents() > 0 && i < cluster.Nodes(); i++ {
		if k, _ := driver(cluster, i); cluster.Agent(k).PID == e.PID {
			driven = append(driven, cluster.Node(i).Name)
		}
	}
	if len(driven) == 0 {
		return e.Err
	}
	if n := len(driven) - few; n > 0 {
		driven = append(driven[:few], fmt.Sprintf("%d more", n))
	}
	named := *e.Err
	named.Name += ", the process of " + strings.Join(driven, ", ") + ","
	return &named
}

// called adds the name of the process to err.
func called(p *runtime.Proc, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.Name, err)
}

// hear records the reports of a keeper until its connection ends with the cluster.
func (c *crew) hear(i int) {
	for {
		if _, _, err := c.keepers[i].Recv(); err != nil {
			return
		}
		c.silences.hear(firstKeeper(len(c.conns))+i, time.Now())
	}
}

func (c *crew) readDeadline(t time.Time) {
	for _, conn := range c.conns {
		_ = conn.SetReadDeadline(t)
	}
}

// close ends the connections to the processes that drive lent nodes. All others end with the
// cluster.
func (c *crew) close() {
	for i := range c.keepers {
		if c.conns[i] != c.keepers[i] {
			c.conns[i].Close()
		}
	}
}

// drivers returns the processes that drive nodes.
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
