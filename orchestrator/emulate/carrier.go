package emulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"weft/internal/control"
	"weft/nodeimg/boot"
	"weft/orchestrator/kernelpath"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/tc-shaping/ports"
	"weft/tc-shaping/qdisc"
	"weft/units"
)

// Kernel says that the machine's kernel carries the packets of an experiment. Its switches are
// nodes.
type Kernel struct {
	Switches []netip.Addr       // addresses by switch
	Net      netip.Prefix       // subnet of all addresses
	Can      qdisc.Capabilities // of this machine's kernel

	// Slower are further dilations to try, in order, while links do not behave as configured;
	// without any the lab fails. Slowed, which may be nil, receives the dilation in use before
	// anything runs.
	Slower []float64
	Slowed func(realtime.Ready)

	// Shown, if not nil, receives what tc says of one switch, that of the first host, once half of
	// the workload's bytes have arrived. It is not called for a run that ends before. It is called
	// from one goroutine, before Run returns.
	Shown func(Shown)

	// transit is about the times for which receivers hold packets back; nil: links delay them. Set
	// with the setup.
	transit *ports.Transit
}

// Shown is the state of a switch of the kernel datapath during a run.
type Shown struct {
	Switch   string     // its name
	At       units.Time // lab time
	Dilation float64    // rates in Text are those of the lab divided by it
	Text     string     // see kernelpath.Show
}

// ready waits until the carrier reports that it is ready, and sets the dilation that it chose.
func (x *Experiment) ready(conn *control.Conn) error {
	if x.Kernel == nil {
		_, err := conn.Expect(realtime.KindReady, nil)
		return err
	}
	var r realtime.Ready
	if _, err := conn.Expect(realtime.KindReady, &r); err != nil {
		return err
	}
	if x.Dilation = r.Dilation; len(r.Tried) > 0 && x.Kernel.Slowed != nil {
		x.Kernel.Slowed(r)
	}
	return nil
}

// A carrier carries the packets of a lab: the process of the modelled fabric, or this process's
// control of the kernel. Both speak the protocol of package realtime over a connection.
type carrier struct {
	name  string // for messages
	who   string // for messages, in a sentence
	conn  *control.Conn
	notes []string
	ended chan struct{} // closed when it has ended; nil: it ends with the cluster
	end   context.CancelFunc
	why   error // how several machines' ended; valid once ended is closed
	joint bool  // it is several machines'
}

// cause returns why the connection to the carrier failed with err: of several machines', which of
// them ended it.
func (c *carrier) cause(err error) error {
	if !c.joint || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	<-c.ended
	return cmp.Or(c.why, err)
}

// carrier returns the carrier for a cluster that was launched for x. network is that of the setup.
func (x *Experiment) carrier(cluster runtime.Cluster, network *kernelpath.Network) (*carrier, error) {
	if m, ok := cluster.(*machines); ok {
		return m.carrier()
	}
	if network == nil {
		f := cluster.Fabric()
		return &carrier{name: f.Name, who: "the fabric process", conn: f.Conn, notes: f.Report.Notes}, nil
	}
	ours, conn, err := control.Connected()
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	c := &carrier{name: "datapath kernel", who: "the kernel datapath", conn: ours, ended: make(chan struct{}),
		end: end}
	if !kernelpath.Seeded() && x.Kernel.Can.Lacks(qdisc.PartBPF) != nil {
		c.notes = []string{"this kernel has no hash seed per switch (needs Linux 6.11): the choices of switches " +
			"among equal " +
			"paths differ only in the order in which they map one hash"}
	}
	if t := x.Kernel.transit; t != nil {
		apart := "which changes nothing at queues, since all packets there have the same delay behind them"
		if t.Apart > 0 {
			apart = fmt.Sprintf("so packets of near and far hosts meet in queues up to %v of lab time out of step: "+
				"compare completion times, not queues and marks", t.Apart.Rounded())
		}
		c.notes = append(c.notes, "this kernel has no netem: links delay nothing, and receivers hold packets back for "+
			"the delay of their path, "+apart)
	}
	go func() {
		defer close(c.ended)
		_ = kernelpath.Serve(ctx, conn, network, cluster, x.Kernel.Can, x.Processes.Step) // the other end has the error
	}()
	return c, nil
}

// close ends a carrier that does not end with the cluster, and waits for its end.
func (c *carrier) close() {
	if c.ended == nil {
		return
	}
	c.end()
	c.conn.Close()
	<-c.ended
}

// network returns the configuration of the kernel.
func (x *Experiment) network() (*kernelpath.Network, error) {
	names := make([]string, len(x.Plans))
	for h := range x.Plans {
		names[h] = x.Plans[h].Name
	}
	n, err := kernelpath.Plan(&kernelpath.Lab{
		Fabric: &x.Fabric, Hosts: names, Addrs: x.Addrs, Switches: x.Kernel.Switches, Net: x.Kernel.Net, MTU: x.ipMTU(),
	})
	if err != nil {
		return nil, fmt.Errorf("datapath kernel: %w", err)
	}
	if !x.Kernel.Can.Delays() {
		t := ports.TransitOf(&x.Fabric, x.Changes, x.ipMTU())
		x.Kernel.transit = &t
	}
	return n, nil
}

// switched adds the switches of a lab on the kernel datapath to the runtime's spec.
func (x *Experiment) switched(s *runtime.Spec, n *kernelpath.Network) {
	s.Cables = n.Cables
	for i := range n.Switches {
		s.Switches = append(s.Switches, boot.NodeSpec{Name: n.Switches[i].Name, Switch: true, MTU: x.ipMTU()})
	}
	for h := range s.Nodes {
		host, node := &n.Hosts[h], &s.Nodes[h]
		home := &n.Switches[host.Home]
		node.Wired, node.Addr, node.Peers = true, netip.PrefixFrom(host.Addr, host.Addr.BitLen()), host.Peers
		node.Gateway = &boot.Gateway{Addr: home.Addr, MAC: home.MAC, Net: x.Kernel.Net}
	}
}
