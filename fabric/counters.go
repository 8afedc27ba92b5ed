package fabric

import (
	"slices"

	"weft/units"
)

// Counters are totals of a network since it was made.
type Counters struct {
	Injected, Delivered, Dropped                int64 // packets
	InjectedBytes, DeliveredBytes, DroppedBytes units.Bytes
	Marks                                       int64       // packets marked CE, once for each port that did
	MaxQueue                                    units.Bytes // most that ever waited in one port of a switch

	Lost            int64 // packets corrupted on a line
	LostBytes       units.Bytes
	Cut             int64 // packets on or before a line when its link went down, those a host sent while it was, and those a switch had no port for
	CutBytes        units.Bytes
	Duplicated      int64 // copies that lines made: as if injected a second time
	DuplicatedBytes units.Bytes
	Late            int64 // packets that lines delivered late
	CCM             CCMCounters
	PathSwitches    int64 // flows that adaptive switches moved to another port, each time
	Overflows       int64 // of Dropped, those of a lossless class: its headroom was too small
	Pauses          int64 // frames sent to have a class paused
}

// PortCounters are those of one port.
type PortCounters struct {
	Packets   int64       // whose transmission started, up to the port's last look
	Bytes     units.Bytes // of these
	Drops     int64       // that did not fit
	DropBytes units.Bytes
	Marks     int64
	MaxQueue  units.Bytes // most that ever waited

	Lost        int64               // corrupted on its line
	Cut         int64               // see Counters
	CutBy       []int64             `json:",omitempty"` // each time that it was down: on it, and elsewhere for want of it
	Pauses      [Classes]int64      // that took effect
	Paused      [Classes]units.Time // how long they lasted, up to the last event
	MaxHeadroom units.Bytes         // most of its headroom that was ever used at the far end
}

// coldCounters are what a port counts where nothing has to be fast, and whether it is down.
type coldCounters struct {
	from      NodeID
	down      bool // its link
	drops     int64
	dropBytes units.Bytes
	lost, cut int64
	cutBy     []int64 // each time that it was down
	pauses    [Classes]int64
	paused    [Classes]units.Time // of the pauses that are over
	since     [Classes]units.Time // when the present pause began
}

// ledger is the packets of a network and the counters of what became of them.
type ledger struct {
	pool  pool
	total Counters
	cold  []coldCounters // by port
	downs *[]int32       // ports that are down, the last to go down last; of all partitions
}

// Counters returns the totals.
func (n *Network) Counters() Counters {
	c := n.sum()
	for i := range n.ports {
		if o := &n.ports[i]; !o.is(nic) {
			c.MaxQueue = max(c.MaxQueue, o.maxQueue)
		}
	}
	return c
}

// Ports returns the number of ports.
func (n *Network) Ports() int { return len(n.ports) }

// PortCounters returns the counters of a port, by its index in Config.Ports.
func (n *Network) PortCounters(port int) PortCounters {
	o, t := &n.ports[port], &n.cold[port]
	c := PortCounters{
		Packets: o.packets, Bytes: o.bytes, Drops: t.drops, DropBytes: t.dropBytes, Marks: o.marks, MaxQueue: o.maxQueue,
		Lost: t.lost, Cut: t.cut, CutBy: slices.Clone(t.cutBy), Pauses: t.pauses, Paused: t.paused,
	}
	for class := range uint8(Classes) {
		if o.held>>class&1 != 0 {
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
		c.add(&k.total)
	}
	return c
}

func (c *Counters) add(k *Counters) {
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
	c.Overflows += k.Overflows
	c.Pauses += k.Pauses
	c.Late += k.Late
	c.PathSwitches += k.PathSwitches
	c.CCM.add(&k.CCM)
	c.Duplicated += k.Duplicated
	c.DuplicatedBytes += k.DuplicatedBytes
}

// last returns the instant that was fired last.
func (n *Network) last() units.Time {
	var last units.Time
	for _, k := range n.whole() {
		last = max(last, k.events.Last())
	}
	return last
}

// drop counts e as dropped and returns its packet to the pool.
func (l *ledger) drop(e *Packet) {
	l.total.Dropped++
	l.total.DroppedBytes += e.Size
	l.Put(e)
}

// refuse drops e because it may not wait in o.
func (l *ledger) refuse(o *port, e *Packet) {
	t := &l.cold[o.index]
	t.drops++
	t.dropBytes += e.Size
	l.drop(e)
}

// lose counts e as corrupted on the line of a port.
func (l *ledger) lose(port int32, e *Packet) {
	l.cold[port].lost++
	l.total.Lost++
	l.total.LostBytes += e.Size
	l.Put(e)
}

// cut counts e as gone with the link of a port.
func (l *ledger) cut(port int32, e *Packet) {
	t := &l.cold[port]
	t.cut++
	if t.down { // otherwise see unled
		t.cutBy[len(t.cutBy)-1]++
	}
	l.total.Cut++
	l.total.CutBytes += e.Size
	l.Put(e)
}

// unled counts a packet that a switch has no port left for: that one is to blame which went down last.
func (l *ledger) unled(s NodeID) {
	for i := len(*l.downs) - 1; i >= 0; i-- {
		if t := &l.cold[(*l.downs)[i]]; t.from == s {
			t.cutBy[len(t.cutBy)-1]++
			return
		}
	}
}

// Sample calls f for every port in which bytes wait at now, in order. The packet being transmitted does not
// wait. now must not lie before the last instant that was fired, nor after the next.
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

// sample returns what waits at now. An accounted port is only looked at: to have it act here would change the order
// of what happens at this instant.
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
