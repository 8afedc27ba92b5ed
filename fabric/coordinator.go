package fabric

import (
	"errors"

	"weft/eventqueue"
	"weft/units"
)

// A Coordinator is the control plane of CCM for switches whose data plane is elsewhere, in the
// kernel. That data plane forwards each tagged packet by the rules of this package and reports it
// to the Coordinator, which sends the notifications that follow. One goroutine at a time may use
// it, with times that do not decrease.
type Coordinator struct {
	net    *Network // without packets: its queues are those that it is told
	events *eventqueue.Queue
	queue  func(port int) units.Bytes
	packet Packet // the one that has arrived
}

// NewCoordinator returns that of a network with CCM. send is called for each notification, and
// queue for the bytes that wait in a port at present.
func NewCoordinator(
	cfg Config, queue func(port int) units.Bytes, send func(to NodeID, note Note),
) (*Coordinator, error) {
	c := &Coordinator{events: eventqueue.New(0), queue: queue}
	var err error
	if c.net, err = New(cfg, c.events, nil); err != nil {
		return nil, err
	}
	if c.net.ccm == nil {
		return nil, errors.New("fabric: a network without CCM has nothing to coordinate")
	}
	c.net.ccm.outside = send
	return c, nil
}

// Follow calls f for every step, in order.
func (c *Coordinator) Follow(f func(Step)) { c.net.Observers.Follow(f) }

// Make applies a change of the network.
func (c *Coordinator) Make(now units.Time, change *Change) error {
	c.Advance(now)
	return change.Make(now, c.net)
}

// Counters returns the counters of CCM, and how often flows have moved to another port.
func (c *Coordinator) Counters() (CCMCounters, int64) {
	all := c.net.Counters()
	return all.CCM, all.PathSwitches
}

// Arrival is a tagged data packet that has arrived at a switch, and what became of it there.
type Arrival struct {
	Switch   int
	From     int32 // the port by which it arrived
	Src, Dst HostID
	Flow     uint32 // the part of FlowHash that ECMP hashes
	SrcPort  uint16
	Tag      Tag // as it arrived
	// Queues are those of the ports by which it could leave, as they were.
	Queues []PortQueue
	// Before is the flow's port before it, or -1 if the switch did not know the flow. Port is that
	// by which it left. Avoided is whether the flow avoided a port then (Advice.Away).
	Before, Port int32
	Avoided      bool
}

// PortQueue is how many bytes waited in a port.
type PortQueue struct {
	Port   int32
	Queued units.Bytes
}

// Decision is what a switch does with a packet: the port by which it leaves, or -1, its tag as it
// leaves, and whether it may be marked there.
type Decision struct {
	Port int32
	Tag  Tag
	Mark bool
}

// Advice is what the next packets of a flow need to know at a switch.
type Advice struct {
	Away  int32      // the port that the flow avoids, or -1
	Until units.Time // when it no longer does
	// Resort is from when on packets for which no path is light may be marked although nothing
	// upstream can be asked, or units.Never.
	Resort units.Time
}

// Arrived takes a packet that has arrived and left. It returns what a switch of package fabric
// would have done with it, and the advice for its flow.
func (c *Coordinator) Arrived(now units.Time, a *Arrival) (Decision, Advice) {
	c.Advance(now)
	n := c.net
	for _, q := range a.Queues {
		n.ports[q.Port].classes[dataClass].bytes = q.Queued
	}
	e := &c.packet
	*e = Packet{Src: a.Src, Dst: a.Dst, flow: a.Flow, SrcPort: a.SrcPort, Class: dataClass, Tag: a.Tag}
	group := n.routing.group(a.Switch, a.Dst)
	ports := n.routing.members[group.first : group.first+group.size()]
	if ports[0] == noPort {
		return Decision{Port: noPort}, Advice{Away: noPort, Resort: units.Never}
	}
	f := n.balancing.switches[a.Switch].flows.find(now, flowKey(e))
	f.port = a.Before
	away := f.away
	if !a.Avoided {
		f.away = noPort
	}
	usual := choose(e.flow, n.routing.seeds[a.Switch], int32(len(ports)))
	w := choices{ports: ports, usual: usual}
	if n.balancing.asides != nil {
		w.aside = n.balancing.asides.of(n, a.Switch, a.From, a.Dst)
	}
	port := n.ccm.choose(n, now, a.Switch, a.From, w, e)
	if !a.Avoided && now < f.until { // it was told so after the packet had gone
		f.away = away
	}
	f.port = a.Port
	return Decision{port, Tag{On: true, CC: e.Tag.CC, AR: e.Tag.AR}, e.Tag.mark}, n.ccm.advice(f)
}

// advice returns what the data plane needs to know about a flow.
func (c *coordination) advice(f *flowEntry) Advice {
	d := Advice{Away: f.away, Until: f.until, Resort: units.Never}
	if f.stuck != units.Never {
		d.Resort = f.stuck + c.RTT
	}
	return d
}

// Heard takes a notification that has reached a switch. If it is about a flow that the switch
// knows, it returns the flow's hash (Arrival.Flow) and the advice for it.
func (c *Coordinator) Heard(now units.Time, s int, note Note) (flow uint32, d Advice, ok bool) {
	c.Advance(now)
	f := c.net.ccm.hear(c.net, now, s, note)
	if f == nil {
		return 0, d, false
	}
	return uint32(f.key >> 32), c.net.ccm.advice(f), true
}

// Next returns when Advance has something to do, or units.Never.
func (c *Coordinator) Next() units.Time {
	if _, at, ok := c.events.Next(); ok {
		return at
	}
	return units.Never
}

// Advance does what is due: switches look after the flows that they have reported as incast.
func (c *Coordinator) Advance(now units.Time) {
	for c.Next() <= now {
		for s := range c.net.ccm.switches {
			for _, port := range c.net.ccm.switches[s].ports {
				c.net.ports[port].classes[dataClass].bytes = c.queue(int(port))
			}
		}
		id, _, _ := c.events.Pop()
		c.net.Fire(now, id)
	}
}
