package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/vishvananda/netlink"

	"weft/clocksync"
	clocks "weft/clocksync/node"
	"weft/collectives/buffer"
	"weft/host"
	"weft/internal/clock"
	"weft/internal/poller"
	"weft/nodeimg/control"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// MemoryRoom is how much a node's process may grow before garbage is collected, in bytes: three buffers of every item (input,
// output, what came early), and what else comes up.
func MemoryRoom(p *host.Plan) int64 {
	room := 256 * units.MiB
	for i := range p.Items {
		room += 3 * p.Items[i].Size
	}
	return int64(room)
}

// reportInterval is the default time between two reports of progress, in real nanoseconds.
const reportInterval = 200e6

// Run is the node: it serves the orchestrator at the other end of conn until it says stop, and returns an
// error when anything fails before that, the orchestrator's disappearance included. sockets are UDP sockets
// bound to wire.Port and, where the host's clock is kept by messages, to node.Ports of them, in order, on the node's
// address, with room for what may arrive while the node is not running. It takes over the whole process.
func Run(conn *control.Conn, sockets []int) error {
	return serve(conn, sockets, func(room int64) string { return poller.TakeOver(poller.Prompt, room) })
}

// serve is Run; takeOver is called when everything has been set up.
func serve(conn *control.Conn, sockets []int, takeOver func(room int64) string) error {
	err := work(conn, sockets, takeOver)
	if err != nil {
		_ = conn.SendError(err) // the peer may be what failed
	}
	return err
}

func work(conn *control.Conn, sockets []int, takeOver func(room int64) string) error {
	var cfg Config
	if _, err := conn.Expect(KindConfigure, &cfg); err != nil {
		return err
	}
	n, err := newNode(cfg, conn, sockets)
	if err != nil {
		return err
	}
	n.memory.Ahead(touchedAhead)
	n.loop.prepare()
	n.memory.Ahead(0)
	n.loop.results.Scheduler = takeOver(MemoryRoom(&cfg.Plan))
	if err := conn.SendValue(KindReady, nil); err != nil {
		return err
	}
	if err := n.loop.run(cfg.Dilation); err != nil {
		return err
	}
	return conn.SendValue(KindResults, n.results())
}

// touchedAhead is how much memory for buffers a node gets before lab time 0, in bytes: getting it takes 10 to 30 ms.
const touchedAhead = 64 << 20

// node is what Run puts together.
type node struct {
	loop     loop
	memory   *buffer.Memory
	conn     *control.Conn
	host     *host.Host
	observer *observer
	before   units.Bytes // done at the last report
}

func newNode(cfg Config, conn *control.Conn, sockets []int) (*node, error) {
	if !(cfg.Dilation > 0) || math.IsInf(cfg.Dilation, 0) {
		return nil, fmt.Errorf("dilation %g", cfg.Dilation)
	}
	plan := &cfg.Plan
	if int(plan.Host) >= len(cfg.Peers) || plan.Host < 0 {
		return nil, fmt.Errorf("host %d of %d", plan.Host, len(cfg.Peers))
	}
	n := &node{conn: conn, observer: &observer{rtt: stats.NewDist(), oneWay: stats.NewDist(), keep: cfg.Windows}}
	n.memory = buffer.New(plan.Seed)
	var err error
	if n.host, err = host.New(*plan, n.memory, n.observer); err != nil {
		return nil, err
	}
	l := &n.loop
	l.machine, l.report, l.obey = n.host, n.progress, n.obey
	l.clock = clock.NewClock()
	l.interval = cfg.Report
	if l.interval == 0 {
		l.interval = reportInterval
	}
	l.hosts = make(map[uint32]transport.HostID, len(cfg.Peers))
	for h, a := range cfg.Peers {
		l.hosts[binary.BigEndian.Uint32(a[:])] = transport.HostID(h)
	}
	for s, a := range cfg.Switches {
		ip := binary.BigEndian.Uint32(a[:])
		if h, taken := l.hosts[ip]; taken {
			return nil, fmt.Errorf("switch %d and node %d have the same address %v", s, h, a)
		}
		l.hosts[ip] = transport.HostID(len(cfg.Peers) + s)
	}
	l.self, l.departs, l.holds = plan.Host, cfg.Departs, !cfg.Switched
	if l.network = binary.BigEndian.Uint32(cfg.Switch[:]); l.network != 0 {
		if h, taken := l.hosts[l.network]; taken {
			return nil, fmt.Errorf("the switches and host %d have the same address %v", h, cfg.Switch)
		}
	}
	l.nic = nic{line: units.NewLine(plan.Endpoint.LineRate), ahead: cfg.Ahead}
	l.results.Timer, l.results.Reaction = stats.NewDist(), stats.NewDist()
	l.out = newSenders(cfg.Peers[plan.Host], slices.Concat(cfg.Peers, cfg.Switches))
	l.out.loose = cfg.Switched
	every := allPathsAhead(plan)
	for i := range plan.Conns {
		c := &plan.Conns[i]
		peer := c.Dst
		if peer == plan.Host {
			peer = c.Src
		}
		if int(peer) >= len(cfg.Peers) || peer < 0 {
			return nil, fmt.Errorf("connection %d is with host %d of %d", c.ID, peer, len(cfg.Peers))
		}
		ahead := 1
		if every && c.Src == plan.Host {
			ahead = c.Paths()
		}
		for path := range ahead {
			if err := l.out.prepare(peer, c.SrcPort+uint16(path)); err != nil {
				return nil, err
			}
		}
	}
	if l.poll, err = poller.New(1 + len(sockets)); err != nil {
		return nil, err
	}
	if err := n.listen(sockets, plan); err != nil {
		return nil, err
	}
	fd, err := conn.Descriptor()
	if err != nil {
		return nil, err
	}
	return n, l.poll.Add(fd, controlToken)
}

// listen prepares the sockets that datagrams come to.
func (n *node) listen(sockets []int, plan *host.Plan) (err error) {
	var ports []uint16
	if plan.Clock != nil {
		ports = clocks.Ports(plan.Clock.Sync)
	}
	if len(sockets) != 1+len(ports) {
		return fmt.Errorf("%d sockets, expected 1 for the transport and %d for synchronization", len(sockets), len(ports))
	}
	l := &n.loop
	if l.in, err = newReceiver(sockets[0], int(plan.Endpoint.MTU)+transport.MaxHeader); err != nil {
		return err
	}
	if err := l.poll.Add(sockets[0], socketToken); err != nil {
		return err
	}
	for i, port := range ports {
		r, err := newReceiver(sockets[1+i], clocksync.MaxMessage+1) // what is longer must look too long
		if err != nil {
			return err
		}
		r.port = port
		l.sync = append(l.sync, r)
		if err := l.poll.Add(sockets[1+i], syncToken+int32(i)); err != nil {
			return err
		}
	}
	return nil
}

// obey takes a message from the orchestrator.
func (n *node) obey() error {
	m, _, err := n.conn.Recv()
	if err != nil {
		return fmt.Errorf("the orchestrator is gone: %w", err)
	}
	switch m.Kind {
	case KindStart:
		var s Start
		if err := m.Decode(&s); err != nil {
			return err
		}
		n.loop.t0 = s.T0
		return nil
	case KindStop:
		n.loop.stop = true
		return nil
	}
	return fmt.Errorf("%q was not expected", m.Kind)
}

// progress tells the orchestrator how far the host is.
func (n *node) progress(done bool) error {
	var p Progress
	p.Done, p.Total = n.host.Progress()
	p.Doing = n.host.Doing()
	if p.Done == n.before {
		p.Waiting, p.Awaits = n.host.Waiting(), n.host.Awaits() // takes longer, but there is time
	}
	if at, ok := n.host.Resumes(); ok {
		p.Resumes = at
	}
	n.before = p.Done
	if err := n.host.Failed(); err != nil {
		p.Failed = err.Error()
	}
	if done {
		return n.conn.SendValue(KindDone, p)
	}
	return n.conn.SendValue(KindProgress, p)
}

// results puts together what the node knows at the end.
func (n *node) results() *Results {
	r := &n.loop.results
	r.Flows, r.Dones, r.Counters = n.host.Flows(), n.host.Dones(), n.host.Counters()
	r.RTT, r.OneWay, r.Windows = n.observer.rtt, n.observer.oneWay, n.observer.windows
	r.Steps = n.observer.steps
	r.Dropped = n.loop.in.drops()
	r.Uncorrupted = n.host.Uncorrupted()
	for _, s := range n.loop.sync {
		r.Dropped += s.drops()
	}
	if c, ok := n.host.Clock(n.loop.tell(n.loop.labNow())); ok {
		r.Clock = &c
	}
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

// allPathsAhead says whether the sockets of all paths of a node's connections are to be opened before the run: unless they are
// more than it keeps.
func allPathsAhead(plan *host.Plan) bool {
	all := 0
	for i := range plan.Conns {
		if c := &plan.Conns[i]; c.Src == plan.Host {
			all += c.Paths()
		} else {
			all++
		}
	}
	return all <= maxSockets
}
