package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/vishvananda/netlink"

	"weft/clocksync/labtime"
	"weft/collectives/buffer"
	"weft/host"
	"weft/internal/poller"
	"weft/nodeimg/control"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// memoryRoom is how much the process may grow before garbage is collected.
const memoryRoom = 256 << 20

// reportInterval is the default time between two reports of progress, in real nanoseconds.
const reportInterval = 200e6

// Run is the node: it serves the orchestrator at the other end of conn until it says stop, and returns an
// error when anything fails before that, the orchestrator's disappearance included. socket is a UDP socket
// bound to wire.Port on the node's address, with room for what may arrive while the node is not running. It
// takes the calling goroutine's thread for good.
func Run(conn *control.Conn, socket int) error {
	if err := serve(conn, socket); err != nil {
		_ = conn.SendError(err) // the peer may be what failed
		return err
	}
	return nil
}

func serve(conn *control.Conn, socket int) error {
	var cfg Config
	if _, err := conn.Expect(KindConfigure, &cfg); err != nil {
		return err
	}
	n, err := newNode(cfg, socket)
	if err != nil {
		return fmt.Errorf("%s: %w", cfg.Plan.Name, err)
	}
	runtime.GOMAXPROCS(2) // the loop, and whatever talks to the orchestrator
	sent := make(chan error, 1)
	go func() { sent <- n.forward(conn) }()
	n.loop.results.Scheduler = poller.Thread(poller.Prompt)
	poller.QuietMemory(memoryRoom)
	if err := conn.SendValue(KindReady, nil); err != nil {
		return err
	}
	commands := make(chan error, 1)
	go func() { commands <- n.listen(conn) }()

	if err := n.loop.run(cfg.Dilation); err != nil {
		return err
	}
	if err := <-commands; err != nil {
		return err
	}
	close(n.outbox)
	if err := <-sent; err != nil {
		return err
	}
	return conn.SendValue(KindResults, n.results())
}

// node is what Run puts together.
type node struct {
	loop     loop
	host     *host.Host
	observer *observer
	outbox   chan report
	before   units.Bytes // done at the last report
}

// report is a message on its way to the orchestrator.
type report struct {
	kind string
	body Progress
}

func newNode(cfg Config, socket int) (*node, error) {
	if !(cfg.Dilation > 0) || math.IsInf(cfg.Dilation, 0) {
		return nil, fmt.Errorf("dilation %g", cfg.Dilation)
	}
	plan := &cfg.Plan
	if int(plan.Host) >= len(cfg.Peers) || plan.Host < 0 {
		return nil, fmt.Errorf("host %d of %d", plan.Host, len(cfg.Peers))
	}
	n := &node{
		observer: &observer{rtt: stats.NewDist(), keep: cfg.Windows},
		outbox:   make(chan report, 64),
	}
	var err error
	if n.host, err = host.New(*plan, buffer.New(plan.Seed), n.observer); err != nil {
		return nil, err
	}
	l := &n.loop
	l.machine, l.report = n.host, n.progress
	l.clock = labtime.NewClock()
	l.interval = cfg.Report
	if l.interval == 0 {
		l.interval = reportInterval
	}
	l.hosts = make(map[uint32]transport.HostID, len(cfg.Peers))
	for h, a := range cfg.Peers {
		l.hosts[binary.BigEndian.Uint32(a[:])] = transport.HostID(h)
	}
	l.nic = nic{line: units.NewLine(plan.Endpoint.LineRate), ahead: cfg.Ahead}
	l.results.Timer, l.results.Reaction = stats.NewDist(), stats.NewDist()
	l.out = newSenders(cfg.Peers[plan.Host], cfg.Peers)
	if l.in, err = newReceiver(socket, int(plan.Endpoint.MTU)+transport.MaxHeader); err != nil {
		return nil, err
	}
	if l.poll, err = poller.New(1); err != nil {
		return nil, err
	}
	return n, l.poll.Add(socket, 0)
}

// listen takes start and stop from the orchestrator and stops the loop when it is gone.
func (n *node) listen(conn *control.Conn) error {
	defer n.loop.poll.Wake()
	defer n.loop.stop.Store(true)
	for {
		m, _, err := conn.Recv()
		if err != nil {
			return fmt.Errorf("the orchestrator is gone: %w", err)
		}
		switch m.Kind {
		case KindStart:
			var s Start
			if err := m.Decode(&s); err != nil {
				return err
			}
			n.loop.start.Store(s.T0)
			n.loop.poll.Wake()
		case KindStop:
			return nil
		default:
			return fmt.Errorf("%q was not expected", m.Kind)
		}
	}
}

// forward sends the loop's reports until the outbox is closed.
func (n *node) forward(conn *control.Conn) error {
	for r := range n.outbox {
		if err := conn.SendValue(r.kind, r.body); err != nil {
			return err
		}
	}
	return nil
}

// progress hands over how far the host is. A report that finds no room is left out, unless it is the last.
func (n *node) progress(done bool) {
	r := report{kind: KindProgress}
	r.body.Done, r.body.Total = n.host.Progress()
	if r.body.Done == n.before {
		r.body.Waiting = n.host.Waiting() // takes longer, but there is time
	}
	n.before = r.body.Done
	if err := n.host.Failed(); err != nil {
		r.body.Failed = err.Error()
	}
	if done {
		r.kind = KindDone
		n.outbox <- r
		return
	}
	select {
	case n.outbox <- r:
	default:
	}
}

// results puts together what the node knows at the end.
func (n *node) results() *Results {
	r := &n.loop.results
	r.Flows, r.Dones, r.Counters = n.host.Flows(), n.host.Dones(), n.host.Counters()
	r.RTT, r.Windows = n.observer.rtt, n.observer.windows
	r.Dropped = n.loop.in.drops()
	r.Unsent += interfaceDrops()
	return r
}

// interfaceDrops returns how many frames the node's network interfaces dropped on their way out: what the
// fabric's queue had no room for.
func interfaceDrops() (n int64) {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return 0
	}
	for _, l := range links {
		if s := l.Attrs().Statistics; s != nil && l.Type() != "loopback" {
			n += int64(s.TxDropped)
		}
	}
	return n
}
