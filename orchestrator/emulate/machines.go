package emulate

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"weft/internal/cleanup"
	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/runtime"
	"weft/realtime"
)

// machines is a cluster of clusters: each has the hosts of one part of the network, and a fabric
// process that carries that part. They share this machine, or are on others.
type machines struct {
	all   []runtime.Cluster
	hosts []placed // by host
	far   bool     // the clusters are on other machines
	exits chan runtime.Exit
	close func() error
}

// placed is a host's machine, and its index there.
type placed struct{ machine, host int }

// MachineName returns the name of a machine by its number.
func MachineName(k int) string { return fmt.Sprintf("m%d", k+1) }

// count returns the number of parts of the network; 1: it is in one piece.
func (x *Experiment) count() int {
	if len(x.Parts) == 0 {
		return 1
	}
	return int(slices.Max(x.Parts)) + 1
}

// place returns where the hosts are, by host.
func (x *Experiment) place() []placed {
	hosts, next := make([]placed, len(x.Plans)), make([]int, x.count())
	for h := range hosts {
		k := 0
		if x.Parts != nil {
			k = int(x.Parts[h])
		}
		hosts[h] = placed{k, next[k]}
		next[k]++
	}
	return hosts
}

// machines returns Setup.Machines.
func (x *Experiment) machines(whole runtime.Spec) []runtime.Spec {
	if x.Parts == nil {
		return nil
	}
	all := make([]runtime.Spec, x.count())
	for k := range all {
		all[k] = whole
		all[k].Nodes = nil
	}
	for h, p := range x.place() {
		all[p.machine].Nodes = append(all[p.machine].Nodes, whole.Nodes[h])
	}
	for k := range all {
		all[k].Agents = min(max(1, whole.Agents/len(all)), len(all[k].Nodes))
		if x.Processes.Machines != nil || whole.Standing {
			all[k].Agents = 0
		}
	}
	return all
}

// launch starts the processes of a setup, on several machines if its network is in parts.
func (x *Experiment) launch(ctx context.Context, setup *Setup) (runtime.Cluster, error) {
	start, specs := x.Processes.launch(), setup.Machines
	if specs == nil {
		return launch(ctx, start, setup.Spec)
	}
	m := &machines{all: make([]runtime.Cluster, len(specs)), hosts: x.place(), far: x.Processes.Machines != nil}
	var group errgroup.Group
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for k := range specs {
		group.Go(func() (err error) {
			start := start
			if far := x.Processes.Machines; far != nil {
				start = far[k]
			}
			if m.all[k], err = launch(ctx, start, specs[k]); err != nil {
				cancel()
				return fmt.Errorf("%s: %w", MachineName(k), err)
			}
			return nil
		})
	}
	m.close = sync.OnceValue(m.end)
	if err := group.Wait(); err != nil {
		return nil, cleanup.Join(err, m.Close())
	}
	m.listen()
	return m, nil
}

// listen forwards the ends of processes.
func (m *machines) listen() {
	processes := 0
	for _, c := range m.all {
		processes += c.Nodes() + c.Agents() + 1
	}
	m.exits = make(chan runtime.Exit, 2*processes+len(m.all)*len(m.all)) // and machines, and their connections
	var all sync.WaitGroup
	for k, c := range m.all {
		all.Go(func() {
			for e := range c.Exits() {
				why := *e.Err
				why.Name = m.named(k, why.Name)
				m.exits <- runtime.Exit{Name: m.named(k, e.Name), PID: e.PID, FarPID: e.FarPID, Err: &why}
			}
		})
	}
	go func() {
		all.Wait()
		close(m.exits)
	}()
}

// named returns the name of a process of machine k, with that of the machine if it is not a host.
func (m *machines) named(k int, process string) string {
	for i := range m.all[k].Nodes() {
		if m.all[k].Node(i).Name == process {
			return process
		}
	}
	return process + " of " + MachineName(k)
}

// clockSteps says whose clock stepped during a run.
func clockSteps(cluster runtime.Cluster) (warnings []string) {
	m, ok := cluster.(*machines)
	if !ok {
		return nil
	}
	for k, c := range m.all {
		if c, ok := c.(interface{ ClockStep() int64 }); ok && c.ClockStep() != 0 {
			warnings = append(warnings, fmt.Sprintf("the clock of %s stepped by %.1f ms: packets to and from it may "+
				"have come too late; was the machine suspended or moved?", MachineName(k), float64(c.ClockStep())/1e6))
		}
	}
	return warnings
}

// Nodes implements runtime.Cluster.
func (m *machines) Nodes() int { return len(m.hosts) }

// Node implements runtime.Cluster.
func (m *machines) Node(i int) *runtime.Proc { return m.all[m.hosts[i].machine].Node(m.hosts[i].host) }

// Switches implements runtime.Cluster.
func (m *machines) Switches() int { return 0 }

// Switch implements runtime.Cluster.
func (m *machines) Switch(int) *runtime.Proc { return nil }

// Fabric implements runtime.Cluster with the process of the first part.
func (m *machines) Fabric() *runtime.Proc { return m.all[0].Fabric() }

// Agents implements runtime.Cluster.
func (m *machines) Agents() (n int) {
	for _, c := range m.all {
		n += c.Agents()
	}
	return n
}

// Agent implements runtime.Cluster.
func (m *machines) Agent(i int) *runtime.Proc {
	for _, c := range m.all {
		if i < c.Agents() {
			return c.Agent(i)
		}
		i -= c.Agents()
	}
	return nil
}

// driver returns which process drives host i of a cluster, and how many more hosts that one will
// get.
func driver(cluster runtime.Cluster, i int) (agent, left int) {
	m, ok := cluster.(*machines)
	if !ok {
		return i % cluster.Agents(), (cluster.Nodes() - 1 - i) / cluster.Agents()
	}
	at := m.hosts[i]
	first := 0
	for _, c := range m.all[:at.machine] {
		first += c.Agents()
	}
	agent, left = driver(m.all[at.machine], at.host)
	return first + agent, left
}

// Exits implements runtime.Cluster.
func (m *machines) Exits() <-chan runtime.Exit { return m.exits }

// Bound implements runtime.Cluster.
func (m *machines) Bound() string { return m.all[0].Bound() }

// Exec implements runtime.Cluster.
func (m *machines) Exec(ctx context.Context, node string, command runtime.Command) error {
	for i := range m.hosts {
		if m.Node(i).Name == node {
			return m.all[m.hosts[i].machine].Exec(ctx, node, command)
		}
	}
	return fmt.Errorf("%s: %w", node, runtime.ErrNoNode)
}

// endCaptures ends the captures on machines that have not ended themselves.
func (m *machines) endCaptures() {
	for _, c := range m.all {
		if c, ok := c.(interface{ EndCaptures() }); ok {
			c.EndCaptures()
		}
	}
}

// restarter returns what can end and restart host i, and its index there.
func (m *machines) restarter(i int) (runtime.Restarter, int, error) {
	at := m.hosts[i]
	r, ok := m.all[at.machine].(runtime.Restarter)
	if !ok {
		return nil, 0, ErrNoRestart
	}
	return r, at.host, nil
}

// Kill implements runtime.Restarter.
func (m *machines) Kill(i int) error {
	r, host, err := m.restarter(i)
	if err != nil {
		return err
	}
	return r.Kill(host)
}

// Freeze implements runtime.Restarter.
func (m *machines) Freeze(i int, frozen bool) error {
	r, host, err := m.restarter(i)
	if err != nil {
		return err
	}
	return r.Freeze(host, frozen)
}

// Restart implements runtime.Restarter.
func (m *machines) Restart(ctx context.Context, i int) (boot.Link, error) {
	r, host, err := m.restarter(i)
	if err != nil {
		return boot.Link{}, err
	}
	return r.Restart(ctx, host)
}

// Close implements runtime.Cluster.
func (m *machines) Close() error { return m.close() }

// end is Close, once.
func (m *machines) end() error {
	errs := make([]error, len(m.all))
	var all sync.WaitGroup
	for k, c := range m.all {
		if c != nil {
			all.Go(func() { errs[k] = c.Close() })
		}
	}
	all.Wait()
	return cleanup.Join(errs...)
}

// carrier returns the carrier that the fabric processes make together.
func (m *machines) carrier() (*carrier, error) {
	ours, conn, err := control.Connected()
	if err != nil {
		return nil, err
	}
	c := &carrier{name: "fabric", who: "the fabric", conn: ours, joint: true, ended: make(chan struct{}),
		end: func() {}}
	members := make([]realtime.Member, len(m.all))
	for k, cluster := range m.all {
		f := cluster.Fabric()
		members[k] = realtime.Member{Name: MachineName(k), Conn: f.Conn}
		for _, n := range f.Report.Notes {
			if !slices.Contains(c.notes, n) {
				c.notes = append(c.notes, n)
			}
		}
	}
	go func() {
		defer close(c.ended)
		// Join names the silent part, before watch finds the whole fabric silent. It has sent its
		// error to the other end.
		c.why = realtime.Join(conn, members, patience()*3/4, m.far)
	}()
	return c, nil
}
