package agent

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/vishvananda/netlink"

	"weft/clocksync"
	"weft/clocksync/labtime"
	clocks "weft/clocksync/node"
	"weft/collectives/buffer"
	"weft/host"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/internal/poller"
	"weft/internal/stalls"
	"weft/results/frames"
	"weft/results/stats"
	"weft/transport"
	"weft/units"
)

// Buffers returns the size of a node's buffers at most: three for each item (input, output, early
// arrivals).
func Buffers(p *host.Plan) (all units.Bytes) {
	for i := range p.Items {
		all += 3 * p.Items[i].Size
	}
	return all
}

// MemoryRoom returns the heap size in bytes up to which a node's process collects no garbage: its
// buffers, and room for the rest.
func MemoryRoom(p *host.Plan) int64 { return int64(256*units.MiB + Buffers(p)) }

// reportInterval is the interval of progress reports, in real nanoseconds.
const reportInterval = 200e6

// Run runs the node: it serves the orchestrator at the other end of conn until that sends stop. It
// returns an error if anything fails before, including the orchestrator's disappearance. sockets
// are UDP sockets on the node's address, with room for arrivals while the node does not run: one
// bound to wire.Port and, if messages keep the host's clock, one for each of node.Ports, in order.
// Run takes over the whole process.
//
// If the orchestrator says so, the process instead lends its sockets to another that drives several
// nodes, or is that other process, which has no sockets of its own.
func Run(conn *control.Conn, sockets []int) error {
	return serve(conn, sockets, func(room int64) string { return poller.TakeOver(poller.Prompt, room) })
}

// serve is Run. It calls takeOver once everything has been set up.
func serve(conn *control.Conn, sockets []int, takeOver func(room int64) string) error {
	err := work(conn, sockets, takeOver)
	if err != nil {
		_ = conn.SendError(err) // the connection may be what failed
	}
	return err
}

func work(conn *control.Conn, sockets []int, takeOver func(room int64) string) error {
	m, fds, err := conn.Recv()
	if err != nil {
		return err
	}
	switch m.Kind {
	case KindLend:
		return lend(conn, sockets)
	case KindAdopt:
		return driveAdopted(conn, m, fds, takeOver)
	}
	for {
		var cfg Config
		if err := m.Is(KindConfigure, &cfg); err != nil {
			return err
		}
		bells := bells{}
		nic, err := cfg.open(fds, bells)
		if err != nil {
			return err
		}
		n, err := newNode(cfg, conn, sockets, nic, nil, maxSockets, new(tray), nil)
		if err == nil {
			_, err = driveAll([]*node{n}, bells, takeOver)
		}
		bells.close()
		if err != nil {
			return err
		}
		if !cfg.More {
			awaitHangUp(conn)
			return nil
		}
		if m, fds, err = conn.Recv(); err != nil {
			return err
		}
	}
}

// awaitHangUp returns when the orchestrator hangs up, which it does after the fabric has ended.
// Until then the sockets of a node that has sent its results stay open: the kernel answers a packet
// to a closed one with an ICMP error, which the fabric would carry or refuse.
func awaitHangUp(conn *control.Conn) { _, _, _ = conn.Recv() }

// open loads the module that comes with a configuration and opens its bypass NIC, if it has them.
// It takes ownership of the descriptors beside it.
func (c *Config) open(fds []int, bells bells) (*bypassNIC, error) {
	if c.NIC == nil {
		return nil, c.Module.load(fds)
	}
	err := c.Module.load(fds[:len(fds)-nicFDs])
	nic, opened := bells.open(c.NIC, fds[len(fds)-nicFDs:])
	return nic, errors.Join(err, opened)
}

// driveAll drives nodes until they are told to stop, and sends their results. bells are those of
// their bypass NICs. On error, failed is the index of the node.
func driveAll(nodes []*node, bells bells, takeOver func(room int64) string) (failed int, err error) {
	d := driver{loops: make([]*loop, len(nodes)), bypasses: true}
	room, watched := int64(0), 0
	for i, n := range nodes {
		d.loops[i] = &n.loop
		d.bypasses = d.bypasses && n.loop.bypass != nil
		n.share(nodes[0])
		watched += len(n.descriptors)
		if n.loop.standing {
			room += standingRoom
		} else {
			room += MemoryRoom(n.plan)
		}
		n.memory.Ahead(touchedAhead)
		n.loop.prepare()
		n.memory.Ahead(0)
	}
	if d.poll, err = poller.New(watched + len(bells)); err != nil {
		return 0, err
	}
	defer d.poll.Close()
	defer func() {
		for _, n := range nodes {
			n.loop.out.close()
		}
	}()
	for i, n := range nodes {
		if err := d.watch(i, n.descriptors); err != nil {
			return i, err
		}
	}
	for _, bell := range bells {
		if err := d.listen(bell); err != nil {
			return 0, err
		}
	}
	scheduling := takeOver(room)
	for i, n := range nodes {
		n.loop.results.Scheduler = scheduling
		if err := n.conn.SendValue(KindReady, nil); err != nil {
			return i, err
		}
		n.conn.Postpone(maxKept)
		defer n.conn.Postpone(0)
	}
	if failed, err = d.run(nodes[0].dilation); err != nil {
		return failed, err
	}
	for i, n := range nodes {
		if n.loop.err != nil { // its end is known
			n.conn.Close()
			continue
		}
		n.conn.Postpone(0)
		if err := n.results().send(n.conn); err != nil {
			return i, err
		}
		n.unshare()
	}
	return 0, nil
}

// share makes a node record times in the distributions of another node of its process, and its
// stalls there: the results of all nodes are merged, and few distributions stay in the cache.
func (n *node) share(with *node) {
	n.observer.rtt, n.observer.oneWay = with.observer.rtt, with.observer.oneWay
	n.loop.results.Timer, n.loop.results.Reaction = with.loop.results.Timer, with.loop.results.Reaction
	n.loop.results.Stalls = with.loop.results.Stalls
}

// unshare empties the distributions and the stalls, which the node has sent.
func (n *node) unshare() {
	r := &n.loop.results
	for _, d := range []*stats.Dist{n.observer.rtt, n.observer.oneWay, r.Timer, r.Reaction} {
		*d = *stats.NewDist()
	}
	*r.Stalls = stalls.Log{Least: r.Stalls.Least}
}

// standingRoom is the MemoryRoom of a node that only keeps its clock, for days. Ours.
const standingRoom = 16 << 20

// maxKept is how much waits for an orchestrator that does not read, in bytes. Ours.
const maxKept = 16 << 20

// touchedAhead is the size of the buffers in bytes whose pages a node touches before lab time 0,
// which takes 10 to 30 ms.
const touchedAhead = 64 << 20

// node is the state of Run.
type node struct {
	loop     loop
	memory   *buffer.Memory
	conn     *control.Conn
	host     *host.Host
	observer *observer
	before   units.Bytes // bytes done at the last report
	plan     *host.Plan
	dilation float64
	more     bool // Config.More
	// connection to the node's process if that is another one; else nil
	keeper *keeper
	// correction of the host's clock at its last report
	corrected clocksync.Correction

	frames  []frames.Frame                   // of connections, not sent yet
	rows    int                              // in frames
	arrived map[transport.ConnID]units.Bytes // by connection that ends here, at the last frame; without 0

	descriptors map[int32]int // descriptors for the poller and their tokens
}

func newNode(cfg Config, conn *control.Conn, sockets []int, b *bypassNIC, k *keeper, maxOpen int, t *tray,
	s *buffer.Shelf) (*node, error) {
	plan := &cfg.Plan
	n := &node{conn: conn, plan: plan, dilation: cfg.Dilation, more: cfg.More, keeper: k,
		descriptors: map[int32]int{}, observer: &observer{rtt: stats.NewDist(), oneWay: stats.NewDist(),
			keep: cfg.Windows}}
	n.memory = buffer.New(plan.Seed, s)
	n.memory.Made(inLargePages)
	var err error
	if n.host, err = host.New(*plan, n.memory, n.observer); err != nil {
		return nil, err
	}
	l := &n.loop
	l.machine, l.report, l.command, l.lost = n.host, n.progress, n.handleMessage, conn.SendError
	l.clock = clock.NewClock()
	if cfg.Steers {
		l.steer = n.correct
	}
	if cfg.Frames.Every > 0 {
		l.frame, l.frames, l.framed = n.frame, cfg.Frames, cfg.Frames.After(cfg.Frames.From)
		n.observer.last, n.arrived = map[transport.ConnID]units.Bytes{}, map[transport.ConnID]units.Bytes{}
	}
	l.interval = reportInterval
	if cfg.Standing { // without progress
		l.interval = math.MaxInt64 / 4
	}
	l.hosts = make(map[uint32]transport.HostID, len(cfg.Peers))
	for h, a := range cfg.Peers {
		l.hosts[binary.BigEndian.Uint32(a[:])] = transport.HostID(h)
	}
	for s, a := range cfg.Switches {
		l.hosts[binary.BigEndian.Uint32(a[:])] = transport.HostID(len(cfg.Peers) + s)
	}
	l.self, l.departs, l.holds, l.standing = plan.Host, cfg.Departs, !cfg.Switched, cfg.Standing
	l.network = binary.BigEndian.Uint32(cfg.Switch[:])
	if cfg.Holds {
		l.hold = &holding{}
		if !cfg.Sprayed {
			l.hold.last = map[path]units.Time{}
		}
	}
	l.nic = nic{line: units.NewLine(plan.Endpoint.LineRate), ahead: cfg.Ahead}
	l.results.Timer, l.results.Reaction = stats.NewDist(), stats.NewDist()
	l.results.Stalls = &stalls.Log{Least: cfg.Stall}
	own, peers := cfg.Peers[plan.Host], slices.Concat(cfg.Peers, cfg.Switches)
	if b != nil {
		b.own, b.peers, b.scale = own, peers, &l.scale.Scale
		l.bypass, l.out = b, b
	} else {
		out := newSenders(own, peers)
		out.loose, out.keeper, out.maxOpen = cfg.Switched, k, maxOpen
		if err := n.openAhead(out); err != nil {
			return nil, err
		}
		l.out = out
	}
	if err := n.listen(sockets, plan, t); err != nil {
		return nil, err
	}
	if n.descriptors[controlToken], err = conn.Descriptor(); err == nil && k != nil {
		n.descriptors[keeperToken], err = k.conn.Descriptor()
	}
	return n, err
}

// openAhead opens the sockets that the node will send from, as many as it may have. It opens the
// others when they are first used.
func (n *node) openAhead(out *senders) error {
	plan, keys := n.plan, map[socketKey]bool{}
	paths := pathsAhead(plan, out.maxOpen)
	for i := range plan.Conns {
		c := &plan.Conns[i]
		peer := c.Dst
		if peer == plan.Host {
			peer = c.Src
		}
		ahead := 1
		if c.Src == plan.Host {
			ahead = min(paths, c.Paths())
		}
		for path := range min(ahead, out.maxOpen-len(keys)) {
			keys[socketKey{dst: peer, port: c.SrcPort + uint16(path)}] = true
		}
	}
	return out.prepare(slices.Collect(maps.Keys(keys)))
}

// listen prepares the receiving sockets.
func (n *node) listen(sockets []int, plan *host.Plan, t *tray) (err error) {
	var ports []uint16
	if plan.Clock != nil {
		ports = clocks.Ports(plan.Clock.Sync)
	}
	// one byte more, so that longer messages look too long
	t.fit(max(int(plan.Endpoint.MTU)+transport.MaxHeader, clocksync.MaxMessage+1))
	l := &n.loop
	if l.in, err = newReceiver(sockets[0], t); err != nil {
		return err
	}
	if err := l.in.drain(); err != nil {
		return err
	}
	n.descriptors[socketToken] = sockets[0]
	for i, port := range ports {
		r, err := newReceiver(sockets[1+i], t)
		if err != nil {
			return err
		}
		r.port = port
		l.sync = append(l.sync, r)
		n.descriptors[syncToken+int32(i)] = sockets[1+i]
	}
	return nil
}

// handleMessage handles a message from the orchestrator.
func (n *node) handleMessage() error {
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
	case labtime.KindScale:
		var s labtime.Scale
		if err := m.Decode(&s); err != nil {
			return err
		}
		return n.loop.scale.Follow(s, n.loop.clock.Now())
	case KindStop:
		n.loop.stop = true
		return nil
	}
	return fmt.Errorf("%q was not expected", m.Kind)
}

// maxFrameRows is the number of connections in a message of frames. Our own choice: few enough that
// sending them delays no packet.
const maxFrameRows = 128

// frame records the connections that have changed since the last frame: of those that end here the
// bytes that have arrived, of those that start here the window.
func (n *node) frame(at units.Time) {
	f := frames.Frame{At: at}
	n.host.Arrived(func(c transport.ConnID, bytes units.Bytes) {
		if bytes != n.arrived[c] {
			n.arrived[c] = bytes
			f.Conns = append(f.Conns, frames.Conn{Conn: uint32(c), Arrived: bytes})
		}
	})
	for c, window := range n.observer.last {
		f.Conns = append(f.Conns, frames.Conn{Conn: uint32(c), Window: window})
	}
	clear(n.observer.last)
	if len(f.Conns) == 0 {
		return
	}
	slices.SortFunc(f.Conns, func(a, b frames.Conn) int { return cmp.Compare(a.Conn, b.Conn) })
	n.frames = append(n.frames, f)
	if n.rows += len(f.Conns); n.rows >= maxFrameRows {
		n.loop.fail(n.sendFrames())
	}
}

// sendFrames sends the frames that were not sent yet.
func (n *node) sendFrames() error {
	if len(n.frames) == 0 {
		return nil
	}
	err := n.conn.SendValue(KindConns, n.frames)
	n.frames, n.rows = n.frames[:0], 0
	return err
}

// progress reports the host's progress to the orchestrator.
func (n *node) progress(done bool) error {
	if err := n.sendFrames(); err != nil {
		return err
	}
	var p Progress
	p.Done, p.Total = n.host.Progress()
	p.Doing = n.host.Doing()
	if p.Done == n.before {
		// these take longer, but a waiting host has time
		p.Waiting, p.Awaits, p.Retries = n.host.Waiting(), n.host.Awaits(), n.host.Retries()
	}
	if at, ok := n.host.Resumes(); ok {
		p.Resumes = at
	}
	n.before = p.Done
	if err := n.host.Failed(); err != nil {
		p.Failed, p.GaveUp = err.Error(), errors.Is(err, transport.ErrFailed)
	}
	if done {
		return n.conn.SendValue(KindDone, p)
	}
	return n.conn.SendValue(KindProgress, p)
}

// correct reports a new correction of the host's clock to the orchestrator.
func (n *node) correct() (sent bool, err error) {
	c := n.host.Correction()
	if c == n.corrected {
		return false, nil
	}
	n.corrected = c
	return true, n.conn.SendValue(KindCorrection, c)
}

// results collects the node's results.
func (n *node) results() *Results {
	r := &n.loop.results
	r.Flows, r.Dones, r.Counters = n.host.Flows(), n.host.Dones(), n.host.Counters()
	r.TimedOut = n.host.TimedOut()
	r.RTT, r.OneWay, r.Windows = n.observer.rtt, n.observer.oneWay, n.observer.windows
	r.Steps = n.observer.steps
	r.Dropped, r.Opened = n.loop.in.drops(), n.loop.out.opened()
	left := MaxPrinted
	n.host.Printed(func(to int, first []string, more int) {
		keep := min(len(first), left)
		left -= keep
		r.Printed = append(r.Printed, Printed{transport.HostID(to), first[:keep], more + len(first) - keep})
	})
	r.Uncorrupted, r.Unreceived = n.host.Uncorrupted(), n.host.Unreceived()
	for _, s := range n.loop.sync {
		r.Dropped += s.drops()
	}
	if c, ok := n.host.Clock(n.loop.monotonic(n.loop.labNow())); ok {
		r.Clock = &c
	}
	if n.keeper != nil {
		r.Unsent += n.keeper.drops()
	} else {
		r.Unsent += interfaceDrops()
	}
	return r
}

// interfaceDrops returns the number of frames that the node's network interfaces dropped on their
// way out because the fabric's queue was full.
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

// pathsAhead returns the number of paths of each connection that get their sockets before the run:
// all paths if they fit into maxOpen sockets, and otherwise an equal share. Replies take the first
// path.
func pathsAhead(plan *host.Plan, maxOpen int) int {
	paths, sends := 1, 0
	for i := range plan.Conns {
		if c := &plan.Conns[i]; c.Src == plan.Host && c.Paths() > 1 {
			paths = max(paths, c.Paths())
			sends++
		}
	}
	if sends == 0 {
		return 1
	}
	return min(paths, max(1, (maxOpen-len(plan.Conns)+sends)/sends))
}
