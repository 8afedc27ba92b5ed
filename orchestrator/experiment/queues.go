package experiment

import (
	"weft/fabric"
	"weft/fabric/queues"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// dataClass is the class of data packets, the one that PFC pauses. Acknowledgements and congestion
// notifications are in class 0, ahead of it, and are never paused.
const dataClass = 1

// memory resolves the queue settings of a lab for the ports and switches of a network.
type memory struct {
	lab    *lab.Lab
	queues *queues.Queues          // of the lab; links may override them
	coord  *transport.Coordination // nil: switches take no part
	g      *topology.Graph
	rtt    units.Time        // base RTT of the network
	packet units.Bytes       // the largest on the wire
	nic    units.Bandwidth   // of the slowest host: what alpha is meant for
	ports  []int             // by node
	worst  []worstLink       // by port: the worst case for headroom
	fast   []units.Bandwidth // by node: the fastest of its ports
	all    []units.Bandwidth // by node: its ports together
	own    map[*queues.ECN]*thresholds
}

func newMemory(l *lab.Lab, g *topology.Graph) *memory {
	m := &memory{
		lab: l, queues: &l.Queues, g: g, packet: largest(l),
		rtt: g.BaseRTT(dataWire(l.Topology.MTU), ackWire), own: map[*queues.ECN]*thresholds{},
	}
	m.coord = transport.CoordinationOf(l.Transport.Section)
	m.ports, m.fast = make([]int, len(g.Nodes)), make([]units.Bandwidth, len(g.Nodes))
	m.all = make([]units.Bandwidth, len(g.Nodes))
	for i := range g.Links { // those that are down too: a fault may let them come up
		k := &g.Links[i]
		for _, n := range []topology.NodeID{k.A, k.B} {
			m.ports[n]++
			m.fast[n] = max(m.fast[n], k.Rate)
			m.all[n] += k.Rate
		}
	}
	if l.Queues.PFC != nil {
		m.worst = worstLinks(l, g)
	}
	for h := range g.Hosts {
		if r := g.Links[g.Uplink(topology.NodeID(h))].Rate; h == 0 || r < m.nic {
			m.nic = r
		}
	}
	return m
}

// largest returns the size of the largest packet of a lab on the wire.
func largest(l *lab.Lab) units.Bytes {
	facts := transport.FactsFor(l.Transport.Kind, l.Transport.Section.Control())
	return dataWire(l.Topology.MTU) + facts.Data(wire.MaxHops)
}

// at returns the queues of the switch ports of a link.
func (m *memory) at(k *topology.Link) *queues.Queues {
	return m.lab.QueuesOf(k.Tier, int(k.ID))
}

// path returns where the lab sets a key of the section queues for a link, such as ecn.kmin.
func (m *memory) path(k *topology.Link, key string) string {
	return m.lab.QueuesPath(k.Tier, int(k.ID), key)
}

// on returns a size on a link of the given rate.
func (m *memory) on(s params.Size, rate units.Bandwidth) units.Bytes {
	return s.On(rate, rate.BytesIn(m.rtt))
}

// port returns the configuration of the end of link k at node from, towards the other end. The NIC
// of a host neither drops nor marks, but it can be paused.
func (m *memory) port(id topology.LinkID, from topology.NodeID) fabric.PortConfig {
	k := &m.g.Links[id]
	p := fabric.PortConfig{From: fabric.NodeID(from), To: fabric.NodeID(k.Other(from)), Link: k.Link}
	q := m.at(k)
	if int(from) >= m.g.Hosts {
		if q.Shared == nil {
			p.Buffer = m.on(q.Buffer, k.Rate)
		}
		if t := q.Trim; t != nil {
			p.Trim = fabric.TrimConfig{On: true, Size: t.Size, Fair: t.Fair}
		}
		if e := q.ECN; e != nil {
			p.ECN = fabric.ECNConfig{On: true, Pmax: e.Pmax, Ingress: e.Ingress}
			p.ECN.Kmin, p.ECN.Kmax, _ = m.marks(k, from)
		}
		m.paths(&p)
	}
	if int(k.Other(from)) >= m.g.Hosts && q.PFC != nil {
		p.PFC[dataClass] = m.flowControl(q.PFC, k, m.worst[m.g.Port(id, from)])
	}
	return p
}

// thresholds say which marking thresholds of some ports the lab writes.
type thresholds struct{ kmin, kmax bool }

// marks returns the marking thresholds of a port of switch sw on link k, which marks. Defaults that
// its queue cannot reach are derived from what the queue holds: kmax is half of it, and kmin has
// the proportion to kmax that the defaults have. With PFC, a switch pauses ports before it drops,
// and a rule of losslessness asks that it marks before.
func (m *memory) marks(k *topology.Link, sw topology.NodeID) (kmin, kmax units.Bytes, derived bool) {
	q := m.at(k)
	e := q.ECN
	kmin, kmax = m.on(e.Kmin, k.Rate), m.on(e.Kmax, k.Rate)
	own := m.own[e]
	if own == nil {
		own = &thresholds{m.lab.Written(m.path(k, "ecn.kmin")), m.lab.Written(m.path(k, "ecn.kmax"))}
		m.own[e] = own
	}
	room := m.longest(k, sw)
	if q.PFC != nil || own.kmax || kmax < room {
		return kmin, kmax, false
	}
	half := room / 2
	if !own.kmin {
		kmin = units.Bytes(float64(half) * float64(kmin) / float64(max(kmax, 1)))
	}
	return kmin, max(kmin, half), true
}

// longest returns the most that can wait in the queue of a link at switch sw. Of a shared memory
// without PFC a queue gets alpha times what is free.
func (m *memory) longest(k *topology.Link, sw topology.NodeID) units.Bytes {
	room := m.room(k, sw)
	if b := m.of(sw); b.Total > 0 && b.Alpha > 0 {
		room = units.Bytes(float64(room) * b.Alpha / (1 + b.Alpha))
	}
	return room
}

// paths adds what a port of a switch needs to choose paths per packet.
func (m *memory) paths(p *fabric.PortConfig) {
	switch {
	case m.coord != nil:
		p.Light, p.Congested = m.on(m.coord.Light, p.Rate), m.on(m.coord.Congested, p.Rate)
		if p.ECN.On && p.Congested > p.ECN.Kmin && !m.lab.Written(transport.CongestedPath) {
			p.Congested = p.ECN.Kmin // where queues begin to mark, as by default
			p.Light = min(p.Light, p.Congested/2)
		}
	case m.queues.Balance().ByLight():
		p.Light = m.on(m.queues.Light, p.Rate)
	}
}

// flowControl returns when a switch pauses the far end of link k, by the thresholds f and the worst
// case of the link.
func (m *memory) flowControl(f *queues.PFC, k *topology.Link, worst worstLink) fabric.PFCConfig {
	c := fabric.PFCConfig{On: true, Reserve: f.Reserve, Response: f.Response}
	if f.Headroom != nil {
		c.Headroom = m.on(*f.Headroom, k.Rate)
	} else {
		c.Headroom = max(k.Rate.BytesIn(3*k.Delay), fabric.Headroom(worst.rate, worst.delay, f.Response, m.packet))
	}
	if f.Xoff == nil {
		c.Alpha, c.Offset = fabric.AlphaAt(m.queues.Shared.Alpha, m.nic, k.Rate), f.Offset
		return c
	}
	c.Xoff = m.on(*f.Xoff, k.Rate)
	if f.Xon != nil {
		c.Xon = m.on(*f.Xon, k.Rate)
	} else {
		c.Xon = max(0, c.Xoff-2*m.packet)
	}
	return c
}

// of returns the memory of a switch.
func (m *memory) of(sw topology.NodeID) fabric.BufferConfig {
	s := m.queues.Shared
	if s == nil {
		return fabric.BufferConfig{}
	}
	rate := m.fast[sw]
	if s.Per == queues.PerSwitch {
		rate = m.all[sw]
	}
	b := fabric.BufferConfig{Total: m.on(s.Total, rate)}
	if m.queues.PFC == nil {
		b.Alpha = s.Alpha
	}
	return b
}
