package fabric

import (
	"slices"

	"weft/units"
)

// Counters are totals of a network since it was built.
type Counters struct { // packets; Injected does not include Duplicated
	Injected, Delivered, Dropped                int64 // packets
	InjectedBytes, DeliveredBytes, DroppedBytes units.Bytes
	// packets marked CE, once for each port that marked them
	Marks int64
	// largest number of bytes that waited in one switch port
	MaxQueue units.Bytes

	Lost      int64 // packets lost or corrupted on a link
	LostBytes units.Bytes
	// Cut is the number of packets that a link took with it when it went down (on it or waiting for
	// it), that hosts sent into it while it was down, and that switches had no port for.
	Cut             int64
	CutBytes        units.Bytes
	Duplicated      int64 // copies that links made, which count as injected a second time
	DuplicatedBytes units.Bytes
	Late            int64 // packets that links delivered late
	CCM             CCMCounters
	PathSwitches    int64       // times that a balancing switch moved a flow to another port
	Trimmed         int64       // packets that switches cut to their headers
	TrimmedBytes    units.Bytes // what they cut off
	// packets of a lossless class among Dropped: its headroom was too small
	Overflows int64
	Pauses    int64 // frames sent that pause a class
}

// PortCounters are the counters of one port.
type PortCounters struct { // transmissions started, up to the port's last look
	Packets   int64       // sum of their sizes
	Bytes     units.Bytes // of these
	Drops     int64       // packets that did not fit into the queue
	DropBytes units.Bytes
	Marks     int64       // packets marked CE
	Trims     int64       // packets cut to their headers
	MaxQueue  units.Bytes // largest number of bytes that waited

	Lost int64 // corrupted on its link
	Cut  int64 // as Counters.Cut
	// CutBy has an element for each time that the port was down: the packets cut on it, and those
	// cut at its switch for want of it.
	CutBy       []int64             `json:",omitempty"`
	Pauses      [Classes]int64      // pauses that took effect, by class
	Paused      [Classes]units.Time // total length of these pauses, up to the last event
	MaxHeadroom units.Bytes         // largest number of bytes in its headroom at the far end
}

// Add adds what another part of the network has counted of the same port.
func (c *PortCounters) Add(k *PortCounters) {
	c.Packets += k.Packets
	c.Bytes += k.Bytes
	c.Drops += k.Drops
	c.DropBytes += k.DropBytes
	c.Marks += k.Marks
	c.Trims += k.Trims
	c.MaxQueue = max(c.MaxQueue, k.MaxQueue)
	c.Lost += k.Lost
	c.Cut += k.Cut
	for i := range min(len(c.CutBy), len(k.CutBy)) { // all parts have made the same changes
		c.CutBy[i] += k.CutBy[i]
	}
	for class := range c.Pauses {
		c.Pauses[class] += k.Pauses[class]
		c.Paused[class] += k.Paused[class]
	}
	c.MaxHeadroom = max(c.MaxHeadroom, k.MaxHeadroom)
}

// coldCounters are the counters of a port that are off the fast path, and whether the port is down.
type coldCounters struct {
	from      NodeID // node at the start of the port
	down      bool   // its link is down
	drops     int64
	dropBytes units.Bytes
	trims     int64
	trimSize  units.Bytes // TrimConfig.Size
	lost, cut int64
	cutBy     []int64 // by each time that the port was down, see PortCounters.CutBy
	pauses    [Classes]int64
	paused    [Classes]units.Time // total of the pauses that have ended
	since     [Classes]units.Time // start of the current pause
}

// ledger holds the packets of a network and counts their fates.
type ledger struct {
	pool  pool `state:"-"` // holds nothing that is in the network
	total Counters
	cold  []coldCounters // by port
	// ports that are down, in the order they went down; shared by all partitions
	downs *[]int32
}

// Counters returns the totals of all partitions.
func (n *Network) Counters() Counters {
	c := n.sum()
	for i := range n.ports {
		if o := &n.ports[i]; !o.is(nic) {
			c.MaxQueue = max(c.MaxQueue, n.maxQueue(i))
		}
	}
	return c
}

// maxQueue returns the largest number of bytes that waited in a port.
func (n *Network) maxQueue(port int) units.Bytes {
	most := n.ports[port].maxQueue
	if n.earlier != nil {
		most = max(most, n.earlier[port])
	}
	return most
}

// RestartMaxQueue resets what MaxQueueSince returns to the present queues. now must not lie before
// the last event nor after the next one.
func (n *Network) RestartMaxQueue(now units.Time) {
	earlier := make([]units.Bytes, len(n.ports))
	for i := range n.ports {
		o := &n.ports[i]
		earlier[i] = n.maxQueue(i)
		if o.maxQueue = 0; o.waiting > 0 {
			o.maxQueue = o.sample(n.of(int32(i)), now)
		}
	}
	n.earlier = earlier
}

// MaxQueueSince returns the largest number of bytes that waited in one switch port since the last
// call of RestartMaxQueue, or since the start.
func (n *Network) MaxQueueSince() (most units.Bytes) {
	for i := range n.ports {
		if o := &n.ports[i]; !o.is(nic) {
			most = max(most, o.maxQueue)
		}
	}
	return most
}

// Ports returns the number of ports.
func (n *Network) Ports() int { return len(n.ports) }

// PortCounters returns the counters of a port, by index in Config.Ports.
func (n *Network) PortCounters(port int) PortCounters {
	o, t := &n.ports[port], &n.cold[port]
	c := PortCounters{
		Packets: o.packets, Bytes: o.bytes, Drops: t.drops, DropBytes: t.dropBytes,
		Marks: o.marks, Trims: t.trims, MaxQueue: n.maxQueue(port),
		Lost: t.lost, Cut: t.cut, CutBy: slices.Clone(t.cutBy), Pauses: t.pauses, Paused: t.paused,
	}
	for class := range uint8(Classes) {
		if o.paused(class) {
			c.Paused[class] += n.last() - t.since[class]
		}
		if n.pfc != nil {
			c.MaxHeadroom = max(c.MaxHeadroom, n.pfc.account(int32(port), class).maxOver)
		}
	}
	return c
}

// sum returns the totals of all partitions.
func (n *Network) sum() Counters {
	var c Counters
	for _, k := range n.whole() {
		c.Add(&k.total)
	}
	return c
}

// Add adds the counters of another part of a network.
func (c *Counters) Add(k *Counters) {
	c.MaxQueue = max(c.MaxQueue, k.MaxQueue)
	c.Injected += k.Injected
	c.Delivered += k.Delivered
	c.Dropped += k.Dropped
	c.InjectedBytes += k.InjectedBytes
	c.DeliveredBytes += k.DeliveredBytes
	c.DroppedBytes += k.DroppedBytes
	c.Marks += k.Marks
	c.Lost += k.Lost
	c.LostBytes += k.LostBytes
	c.Cut += k.Cut
	c.CutBytes += k.CutBytes
	c.Trimmed += k.Trimmed
	c.TrimmedBytes += k.TrimmedBytes
	c.Overflows += k.Overflows
	c.Pauses += k.Pauses
	c.Late += k.Late
	c.PathSwitches += k.PathSwitches
	c.CCM.add(&k.CCM)
	c.Duplicated += k.Duplicated
	c.DuplicatedBytes += k.DuplicatedBytes
}

// last returns the instant of the last event.
func (n *Network) last() units.Time {
	var last units.Time
	for _, k := range n.whole() {
		last = max(last, k.events.Last())
	}
	return last
}

// drop counts e as dropped and returns it to the pool.
func (l *ledger) drop(e *Packet) {
	l.total.Dropped++
	l.total.DroppedBytes += e.Size
	l.Put(e)
}

// refuse drops e because it does not fit into o.
func (l *ledger) refuse(o *port, e *Packet) {
	t := &l.cold[o.index]
	t.drops++
	t.dropBytes += e.Size
	l.drop(e)
}

// lose counts e as corrupted on the link of a port.
func (l *ledger) lose(port int32, e *Packet) {
	l.cold[port].lost++
	l.total.Lost++
	l.total.LostBytes += e.Size
	l.Put(e)
}

// cut counts e as cut off with the link of a port.
func (l *ledger) cut(port int32, e *Packet) {
	t := &l.cold[port]
	t.cut++
	if t.down { // otherwise see blameLastDown
		t.cutBy[len(t.cutBy)-1]++
	}
	l.total.Cut++
	l.total.CutBytes += e.Size
	l.Put(e)
}

// blameLastDown attributes a packet for which switch s has no port left to the port of s that went
// down last.
func (l *ledger) blameLastDown(s NodeID) {
	for i := len(*l.downs) - 1; i >= 0; i-- {
		if t := &l.cold[(*l.downs)[i]]; t.from == s {
			t.cutBy[len(t.cutBy)-1]++
			return
		}
	}
}

// Sample calls f for every port in which bytes wait at now, in order of ports. The packet being
// transmitted does not wait. now must not lie before the last event nor after the next one.
func (n *Network) Sample(now units.Time, f func(port int, queued units.Bytes)) {
	for i := range n.ports {
		o := &n.ports[i]
		if o.waiting == 0 {
			continue
		}
		if q := o.sample(n.of(int32(i)), now); q > 0 {
			f(i, q)
		}
	}
}

// PortState is the state of a port at one instant. Counters count from the start.
type PortState struct {
	Queued units.Bytes // bytes that wait, without the packet that is being sent
	Sent   units.Bytes // bytes of packets whose transmission has started
	Marks  int64       // packets marked CE
	Drops  int64       // packets that did not fit
	Paused bool        // at least one class is paused
}

// Survey calls f, in order of ports, for every port in which bytes wait or that is paused at now,
// or that has sent since the last call with the same slice. sent has an element for each port and
// keeps what each had sent, during f as of the last call; it begins with zeros. now must not lie
// before the last event nor after the next one.
func (n *Network) Survey(now units.Time, sent []units.Bytes, f func(port int, s PortState)) {
	for i := range n.ports {
		o := &n.ports[i]
		s := PortState{Paused: o.held != 0}
		if o.waiting != 0 {
			s.Queued = o.sample(n.of(int32(i)), now)
		}
		if s.Sent = o.bytes; s.Queued == 0 && !s.Paused && s.Sent == sent[i] {
			continue
		}
		s.Marks, s.Drops = o.marks, n.cold[i].drops
		f(i, s)
		sent[i] = s.Sent
	}
}

// sample returns the bytes that wait at now. It does not advance an accounted port, which would
// change the order of events at this instant.
func (o *port) sample(n *Network, now units.Time) units.Bytes {
	if !o.is(accounted) {
		o.advance(n, now)
		return o.queued()
	}
	q := o.queued()
	if c := o.pick(); o.freeAt <= now && c != nil {
		q -= c.first.Size // it starts now
	}
	return q
}
