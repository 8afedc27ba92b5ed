package transport_test

import (
	"container/heap"
	"fmt"

	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// A testNet is a minimal network for tests of endpoints: hosts on the ports of one switch, exact in
// time, with a hook that drops, duplicates or delays packets. Package fabric is the real model;
// this one is small enough to be obviously right.
//
// A test makes one with newNet, opens connections with Connect, queues messages with Send or At,
// and calls Run until it returns false. Events and OnData are its hooks. A run is a function of
// netConfig and of the calls.
//
// The switch serves class 0 before class 1, marks with netConfig.Mark when a packet leaves, and
// writes telemetry if netConfig.INT says so. CheckConservation finds every packet again at the end.

// netConfig is a star: every host has one link of rate Line and delay Delay to the switch.
type netConfig struct {
	Hosts    int
	Line     units.Bandwidth
	Delay    units.Time
	MTU      units.Bytes
	Buffer   units.Bytes // per switch port; 0: without limit
	Observer func(host int) transport.Observer
	Fault    func(now units.Time, p *netPacket) netFault // called once per packet at the switch; nil: none
	Mark     func(queued units.Bytes) bool               // whether to mark, by the queue behind a packet; nil: never
	INT      netTelemetry
}

// netTelemetry is how the switch hands over telemetry.
type netTelemetry uint8

// Kinds of netTelemetry.
const (
	telemetryNone     netTelemetry = iota
	telemetryApart                 // handed over beside the header, as the simulator does
	telemetryInHeader              // written into the header, as a switch does
)

// netFault is the fate of a packet in the switch.
type netFault struct {
	Drop   bool
	Trim   bool       // cut to its header, if it may be trimmed
	Last   bool       // Trim: as the last switch on the path
	Copies int        // number of additional copies
	Hold   units.Time // delay before it joins its queue
}

// netPacket is a packet in the network.
type netPacket struct {
	Src, Dst int
	Class    uint8
	Size     units.Bytes
	Payload  units.Bytes
	Header   []byte
	ECT, CE  bool
	INT      []wire.Hop
	joined   units.Time
	Waited   units.Time // in the switch's queue
}

// testNet is the network with its hosts.
type testNet struct {
	cfg    netConfig
	Hosts  []*transport.Endpoint
	Paths  transport.Path // between any two hosts
	Now    units.Time
	Events []func(transport.Event) // by host; nil: dropped
	OnData func(now units.Time, p *netPacket, pl transport.Placement, err error)

	queue   events
	seq     uint64
	nicFree []units.Time
	nicBusy []bool
	ports   []port
	wake    []units.Time // by host: the deadline in the event queue; -1: none

	// Packets that left a host, reached one, were dropped, and were added by netFault.Copies.
	Injected, Delivered, Dropped, Copied int

	Trimmed  int // packets that netFault.Trim cut
	MaxQueue units.Bytes
}

// port is an output of the switch.
type port struct {
	busy   bool
	queued units.Bytes // waiting, without the packet that is being sent
	sent   units.Bytes // since the start, for telemetry
	class  [2][]*netPacket
}

type event struct {
	at  units.Time
	seq uint64
	do  func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

// newNet returns the network; its hosts have no connections yet.
func newNet(cfg netConfig) (*testNet, error) {
	n := &testNet{
		cfg: cfg, nicFree: make([]units.Time, cfg.Hosts), nicBusy: make([]bool, cfg.Hosts),
		ports: make([]port, cfg.Hosts),
		wake:  make([]units.Time, cfg.Hosts), Events: make([]func(transport.Event), cfg.Hosts),
		Paths: transport.Path{Propagation: 2 * cfg.Delay, Rates: []units.Bandwidth{cfg.Line, cfg.Line}},
	}
	for h := range cfg.Hosts {
		c := transport.Config{Host: transport.HostID(h), MTU: cfg.MTU, LineRate: cfg.Line, Seed: uint64(h)}
		if cfg.Observer != nil {
			c.Observer = cfg.Observer(h)
		}
		e, err := transport.New(c)
		if err != nil {
			return nil, err
		}
		n.Hosts = append(n.Hosts, e)
		n.wake[h] = -1
	}
	return n, nil
}

// Connect opens a connection at both ends, filling in the paths.
func (n *testNet) Connect(s transport.Spec) error {
	s.Forward, s.Reverse = n.Paths, n.Paths
	for _, h := range []transport.HostID{s.Src, s.Dst} {
		if err := n.Hosts[h].Open(s); err != nil {
			return err
		}
	}
	return nil
}

// At calls do at an instant in the future.
func (n *testNet) At(at units.Time, do func()) {
	n.seq++
	heap.Push(&n.queue, event{at, n.seq, do})
}

// Send queues a message now.
func (n *testNet) Send(h int, c transport.ConnID, m transport.Message) error {
	err := n.Hosts[h].Send(n.Now, c, m)
	n.kick(h)
	return err
}

// Run processes the events up to the instant until. It returns false if none is left.
func (n *testNet) Run(until units.Time) bool {
	for len(n.queue) > 0 {
		if n.queue[0].at > until {
			n.Now = until
			return true
		}
		e := heap.Pop(&n.queue).(event)
		n.Now = e.at
		e.do()
	}
	return false
}

// kick lets host h send if its NIC is free, delivers its events and schedules its next deadline.
func (n *testNet) kick(h int) {
	e := n.Hosts[h]
	var out transport.Outgoing
	if !n.nicBusy[h] && e.Transmit(n.Now, &out) {
		n.inject(h, &out)
	}
	for {
		ev, ok := e.Poll()
		if !ok {
			break
		}
		if n.Events[h] != nil {
			n.Events[h](ev)
		}
	}
	at, ok := e.Deadline()
	if !ok {
		n.wake[h] = -1
		return
	}
	if at = max(at, n.Now); n.wake[h] != at {
		n.wake[h] = at
		n.At(at, func() {
			if n.wake[h] == at {
				n.wake[h] = -1
				e.Advance(at)
				n.kick(h)
			}
		})
	}
}

// inject sends a packet from host h to the switch.
func (n *testNet) inject(h int, out *transport.Outgoing) {
	n.Injected++
	p := &netPacket{
		Src: h, Dst: int(out.Dst), Class: out.Class, Size: out.Size, Payload: out.Payload, ECT: out.ECT,
		Header: append([]byte(nil), out.Header[:out.N]...),
	}
	end := n.Now + n.cfg.Line.TransmitTime(out.Size)
	n.nicBusy[h] = true
	n.At(end, func() { n.nicBusy[h] = false; n.kick(h) })
	n.At(end+n.cfg.Delay, func() { n.arrive(p) })
}

// Forge sends a packet without payload from host src now, beside what its endpoint sends.
func (n *testNet) Forge(src, dst int, header []byte) {
	n.Injected++
	p := &netPacket{
		Src: src, Dst: dst, Size: units.Bytes(len(header)) + wire.Overhead, Header: append([]byte(nil), header...),
	}
	n.At(n.Now+n.cfg.Delay, func() { n.arrive(p) })
}

// arrive handles a packet at the switch: faults, then its queue.
func (n *testNet) arrive(p *netPacket) {
	var f netFault
	if n.cfg.Fault != nil {
		f = n.cfg.Fault(n.Now, p)
	}
	if f.Drop {
		n.Dropped++
		return
	}
	if keep := wire.PeekKeep(p.Header); f.Trim && keep > 0 {
		n.Trimmed++
		wire.PeekTrim(p.Header, f.Last)
		p.Size, p.Payload, p.Class = units.Bytes(keep), 0, 0
	}
	for range f.Copies {
		q := *p
		n.Copied++
		n.At(n.Now, func() { n.join(&q) })
	}
	if f.Hold > 0 {
		n.At(n.Now+f.Hold, func() { n.join(p) })
		return
	}
	n.join(p)
}

// join puts a packet onto its output link or into the queue, or drops it if the buffer is full.
func (n *testNet) join(p *netPacket) {
	t := &n.ports[p.Dst]
	if n.cfg.Buffer > 0 && t.queued+p.Size > n.cfg.Buffer {
		n.Dropped++
		return
	}
	p.joined = n.Now
	if !t.busy {
		n.transmit(t, p)
		return
	}
	t.queued += p.Size
	n.MaxQueue = max(n.MaxQueue, t.queued)
	t.class[p.Class] = append(t.class[p.Class], p)
}

// transmit sends a packet out of a port that is free.
func (n *testNet) transmit(t *port, p *netPacket) {
	t.busy = true
	p.Waited = n.Now - p.joined
	p.CE = p.ECT && n.cfg.Mark != nil && n.cfg.Mark(t.queued)
	switch h := (wire.Hop{At: n.Now, Sent: t.sent, Queued: t.queued}); n.cfg.INT {
	case telemetryApart:
		p.INT = append(p.INT, h)
	case telemetryInHeader:
		if shape, err := wire.ShapeOf(p.Header); err == nil {
			shape.Records(p.Header).Stamp(h)
		}
	}
	t.sent += p.Size
	end := n.Now + n.cfg.Line.TransmitTime(p.Size)
	n.At(end, func() { n.freed(t) })
	n.At(end+n.cfg.Delay, func() { n.deliver(p) })
}

// freed sends the next packet when a port becomes free.
func (n *testNet) freed(t *port) {
	t.busy = false
	for c := range t.class {
		if q := t.class[c]; len(q) > 0 {
			t.class[c] = q[1:]
			t.queued -= q[0].Size
			n.transmit(t, q[0])
			return
		}
	}
}

// deliver hands a packet to its host.
func (n *testNet) deliver(p *netPacket) {
	n.Delivered++
	pl, err := n.Hosts[p.Dst].Receive(n.Now, &transport.Incoming{
		At: n.Now, Src: transport.HostID(p.Src), Header: p.Header, Payload: p.Payload, CE: p.CE, INT: p.INT,
	})
	if n.OnData != nil {
		n.OnData(n.Now, p, pl, err)
	}
	n.kick(p.Dst)
}

// CheckConservation returns an error unless every packet sent or copied was delivered, dropped, or
// is queued. Call it after Run has returned false: then no packet is on a link.
func (n *testNet) CheckConservation() error {
	queued := 0
	for i := range n.ports {
		queued += len(n.ports[i].class[0]) + len(n.ports[i].class[1])
	}
	if n.Injected+n.Copied != n.Delivered+n.Dropped+queued {
		return fmt.Errorf("%d sent and %d copied, but %d delivered, %d dropped, %d queued",
			n.Injected, n.Copied, n.Delivered, n.Dropped, queued)
	}
	return nil
}
