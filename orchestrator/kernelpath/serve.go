package kernelpath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weft/clocksync/labtime"
	"weft/fabric"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/orchestrator/runtime"
	"weft/realtime"
	"weft/results/record"
	"weft/tc-shaping/bpf"
	"weft/tc-shaping/qdisc"
	"weft/tc-shaping/tcnl"
	"weft/units"
)

// Nodes are the processes that hold the namespaces of a lab, as runtime.Cluster provides them.
type Nodes interface {
	Node(i int) *runtime.Proc
	Switch(i int) *runtime.Proc
}

// Serve lets the kernel carry the packets of a lab. It handles the requests of the orchestrator at
// the other end of conn, in the protocol of package realtime, until a stop request, and closes
// conn. Cancelling ctx ends the measurement of links; afterwards the end of conn does. Nothing that
// it creates outlives the nodes. kernel is what Available has found. step, if not nil, is called
// before and after each step of building the network, like runtime.Spec.Step.
func Serve(ctx context.Context, conn *control.Conn, net *Network, nodes Nodes, kernel qdisc.Capabilities,
	step func(string)) error {
	c := &carrier{conn: conn, net: net, nodes: nodes, routes: make([]*routing, len(net.Switches)), kernel: kernel,
		steps: runtime.Spec{Step: step}}
	defer conn.Close()
	defer c.close()
	err := c.setUp(ctx)
	if err == nil {
		err = conn.SendValue(realtime.KindReady, realtime.Ready{Dilation: c.cfg.Dilation, Tried: c.tried})
	}
	if err == nil {
		err = c.run()
	}
	if err != nil {
		_ = conn.SendError(err) // the connection itself may be the cause
	}
	return err
}

// carrier is a running network. One goroutine owns it.
type carrier struct {
	conn   *control.Conn
	net    *Network
	nodes  Nodes
	cfg    realtime.Config
	routes []*routing // by switch
	lines  []line     // by fabric port
	halted []bool     // by host
	kernel qdisc.Capabilities
	// memory of BPF programs, by fabric port, and of those that choose among paths; nil: this
	// kernel has none
	gates   *bpf.Table
	choices *bpf.Routes
	flows   *bpf.Flows    // nil: switches look at no queues
	ccm     *coordination // nil: there is none, or lab time has not started

	hosts, switches []*tcnl.Conn     // connections to their namespaces; nil until opened
	bySwitch        [][]int          // fabric ports
	lost            int64            // packets that interfaces had dropped before lab time started
	findings        []Finding        // of the measurement before lab time
	checked         record.LinkCheck // the same in numbers
	tried           []realtime.Tried
	scale           labtime.Scale
	next            int // index in cfg.Changes

	steps    runtime.Spec // only its Step is used
	maxQueue units.Bytes  // longest queue that a sample saw at a switch port
}

// message is a message of the orchestrator, or the reason why no more arrive.
type message struct {
	m   control.Message
	fds []int
	err error
}

// listen forwards the orchestrator's messages until the connection ends.
func (c *carrier) listen(to chan<- message, quit <-chan struct{}) {
	for {
		m, fds, err := c.conn.Recv()
		select {
		case to <- message{m, fds, err}:
		case <-quit:
			control.CloseAll(fds)
			return
		}
		if err != nil {
			return
		}
	}
}

// Limits on how often queues are sampled, in real time, whatever the lab asks for: each sample is
// one request to the kernel per switch, and all together may take a small share of the time. The
// maximum queue is needed even if the lab asks for no samples. Our own values.
const (
	minSample    = 5 * time.Millisecond
	sampleShare  = 20 // sampling takes at most 1/sampleShare of the time
	otherwiseAll = 100 * time.Millisecond
)

// sampling returns the time until the next sample, after one that took this long.
func (c *carrier) sampling(took time.Duration) time.Duration {
	wait := otherwiseAll
	if c.cfg.Sample > 0 {
		wait = time.Duration(float64(c.cfg.Sample.Duration()) * c.cfg.Dilation)
	}
	return max(minSample, wait-took, sampleShare*took)
}

// run handles requests until the orchestrator sends stop.
func (c *carrier) run() error {
	var start realtime.Start
	if _, err := c.conn.Expect(realtime.KindStart, &start); err != nil {
		return err
	}
	c.scale = labtime.Scale{T0: start.T0, Dilation: c.cfg.Dilation}
	if err := c.coordinate(); err != nil {
		return err
	}
	messages, quit := make(chan message), make(chan struct{})
	defer close(quit)
	go c.listen(messages, quit)
	alive := time.NewTicker(realtime.AliveEvery)
	defer alive.Stop()
	look := time.NewTimer(c.sampling(0))
	defer look.Stop()
	for {
		change := c.untilChange()
		select {
		case m := <-messages:
			if over, err := c.handle(m); over || err != nil {
				return err
			}
		case <-alive.C:
			if err := c.conn.SendValue(realtime.KindAlive, nil); err != nil {
				return err
			}
		case <-look.C:
			began := time.Now()
			if err := errors.Join(c.sample(), c.sendSteps()); err != nil {
				return err
			}
			look.Reset(c.sampling(time.Since(began)))
		case <-change:
			if err := c.make(&c.cfg.Changes[c.next]); err != nil {
				return err
			}
			c.next++
		}
	}
}

// untilChange returns a channel that fires when the next change of the network is due, or nil if
// there is none.
func (c *carrier) untilChange() <-chan time.Time {
	if c.next >= len(c.cfg.Changes) {
		return nil
	}
	return time.After(time.Duration(c.scale.Mono(c.cfg.Changes[c.next].At) - clock.Monotonic()))
}

// labNow returns the present lab time.
func (c *carrier) labNow() units.Time { return max(0, c.scale.Lab(clock.Monotonic())) }

// handle carries out one request. It returns an error only to end the run; a request that fails
// gets an error as its answer.
func (c *carrier) handle(m message) (over bool, err error) {
	defer control.CloseAll(m.fds)
	if m.err != nil {
		return true, fmt.Errorf("the orchestrator is gone: %w", m.err)
	}
	switch m.m.Kind {
	case realtime.KindStop:
		report, err := c.report()
		if err == nil {
			err = c.sendSteps()
		}
		if err != nil {
			return true, err
		}
		return true, c.conn.SendValue(realtime.KindReport, report)
	case realtime.KindMeasure:
		var measure realtime.Measure
		if err := m.m.Decode(&measure); err != nil {
			return true, err
		}
		var found realtime.Found
		err := c.keepingAlive(func(ctx context.Context) { found = c.measure(ctx, measure.Port) })
		if err != nil {
			return true, err
		}
		return false, c.conn.SendValue(realtime.KindFound, found)
	case realtime.KindLook:
		state, err := c.state()
		if err != nil {
			return true, err
		}
		return false, c.conn.SendValue(realtime.KindState, state)
	}
	var did realtime.Did
	if err := c.request(m); err != nil {
		did.Error = err.Error()
	}
	return false, c.conn.SendValue(realtime.KindDid, did)
}

// keepingAlive runs do, which may take long, and sends keep-alives meanwhile. If the peer is gone,
// it cancels do and returns an error.
func (c *carrier) keepingAlive(do func(context.Context)) error {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	alive := time.NewTicker(realtime.AliveEvery)
	defer alive.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-alive.C:
			if err := c.conn.SendValue(realtime.KindAlive, nil); err != nil {
				return err
			}
		}
	}
}

// request carries out requests whose failure leaves the network intact.
func (c *carrier) request(m message) error {
	switch m.m.Kind {
	case realtime.KindChange:
		return control.With(m.m, c.make)
	case realtime.KindHalt:
		return control.With(m.m, c.halt)
	case realtime.KindPlug:
		return control.With(m.m, func(p *realtime.Plug) error { return c.plug(p.Host) })
	case realtime.KindCapture:
		return errors.New("datapath kernel does not copy frames to weft; tcpdump captures them in a host or a " +
			"switch: weft exec NODE -- tcpdump -i IFACE -w -")
	}
	return fmt.Errorf("%q was not expected", m.m.Kind)
}

// make applies a change of the network.
func (c *carrier) make(change *fabric.Change) error {
	err := c.change(change.Ports, func(l *line) {
		if change.Up != nil {
			l.down = !*change.Up
		}
		if change.Link != nil {
			l.line = *change.Link
		}
	})
	if err != nil {
		return err
	}
	if c.ccm != nil {
		if err := c.ccm.make(change); err != nil {
			return err
		}
	}
	for _, p := range change.Ports {
		if s := c.net.Ends[p].Switch; change.Up != nil && s >= 0 {
			if err := c.install(s); err != nil {
				return err
			}
		}
	}
	return c.reroute(change.Tables)
}

// reroute installs new forwarding tables on all switches; nil keeps the present ones.
func (c *carrier) reroute(tables []fabric.SwitchConfig) error {
	for s := range tables {
		if err := c.net.route(s, &tables[s]); err != nil {
			return err
		}
		if err := c.install(s); err != nil {
			return err
		}
	}
	return nil
}

// install configures a switch with its tables, without paths that it knows to be down.
func (c *carrier) install(s int) error {
	sw := &c.net.Switches[s]
	down := func(path int) bool { return len(c.lines) > 0 && c.lines[sw.Ports[path].Port].down }
	groups := make([][]int, len(sw.Groups))
	for g, paths := range sw.Groups {
		groups[g] = slices.DeleteFunc(slices.Clone(paths), down)
	}
	routes := slices.DeleteFunc(slices.Clone(sw.Routes), func(r Route) bool { return len(groups[r.Group]) == 0 })
	if err := c.routes[s].install(groups, routes); err != nil {
		return fmt.Errorf("%s: %w", sw.Name, err)
	}
	if c.choices != nil {
		c.mark(s, groups)
		c.detour(s, down)
	}
	return nil
}

// detour lets a switch's programs take detours, where no port of one is down: what is known of the
// network beyond it may be old otherwise, as in package fabric.
func (c *carrier) detour(s int, down func(path int) bool) {
	sw := &c.net.Switches[s]
	for h, paths := range sw.Detours {
		var ports []uint32
		if !slices.ContainsFunc(paths, down) {
			for _, path := range paths {
				ports = append(ports, uint32(sw.Ports[path].Port))
			}
		}
		c.choices.SetDetours(s, h, ports)
	}
}

// mark lets a switch's programs choose among groups of its ports.
func (c *carrier) mark(s int, groups [][]int) {
	sw := &c.net.Switches[s]
	to := make([][]uint32, len(c.net.Hosts))
	for _, r := range sw.Routes {
		if r.To >= len(to) {
			continue // only this process sends to switches
		}
		for _, path := range groups[r.Group] {
			to[r.To] = append(to[r.To], uint32(sw.Ports[path].Port))
		}
	}
	for _, m := range sw.Rack {
		to[m.Host] = []uint32{uint32(m.Port) | bpf.ToHost}
	}
	for h, ports := range to {
		c.choices.Set(s, h, ports)
	}
}

// halt makes the links to a halted host drop everything, or restores them.
func (c *carrier) halt(h *realtime.Halt) error {
	var towards []int // the host itself sends nothing while it is halted
	for p, end := range c.net.Ends {
		if end.Host == h.Host {
			towards = append(towards, p^1)
		}
	}
	err := c.change(towards, func(l *line) { l.toHalted = h.Halted })
	if err == nil {
		c.halted[h.Host] = h.Halted
	}
	return err
}

// plug takes over the new cable of a restarted host.
func (c *carrier) plug(host int) error {
	home := c.net.Hosts[host].Home
	err := c.nodes.Switch(home).Do(func() error { return c.routes[home].plugAgain(host) })
	if err == nil {
		err = c.openHost(host)
	}
	for p, end := range c.net.Ends {
		if err != nil || end.Host != host {
			continue
		}
		if err = c.shapeLine(p); err == nil {
			err = c.shapeLine(p ^ 1)
		}
	}
	return err
}
