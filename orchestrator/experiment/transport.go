package experiment

import (
	"math/rand/v2"

	"weft/collectives/schedule"
	"weft/host"
	"weft/internal/splitmix"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Transport is how hosts carry data to each other.
type Transport struct {
	Conns []transport.Spec // by ConnID

	// BaseRTT is the longest idle round trip among hosts that talk to each other: a full data
	// packet there, its acknowledgement back, store and forward.
	BaseRTT units.Time

	// Extremes are the connections with the longest and the shortest idle round trip, for the
	// conditions of the transport; none without connections.
	Extremes []transport.Spec

	RTOMin units.Time // the longest minimum retransmission timeout of a connection; 0: there is none
	RTOKey string     // the setting that it comes from
}

// dataWire is the size on the wire of a data packet that carries payload bytes and no telemetry.
func dataWire(payload units.Bytes) units.Bytes { return payload + wire.DataSize + wire.Overhead }

// ackWire is the size on the wire of an acknowledgement without telemetry.
const ackWire units.Bytes = wire.AckSize + wire.Overhead

// replyWire returns the size on the wire of the reply to a data packet of a connection.
func replyWire(s *transport.Spec) units.Bytes {
	return transport.FactsFor(s.Kind, s.CC).Reply(s.Selects(), switchesOn(s.Forward)) + wire.Overhead
}

// beside returns the bytes that follow the headers of a connection's data packets: tags and
// telemetry.
func beside(s *transport.Spec) units.Bytes {
	return transport.FactsFor(s.Kind, s.CC).Data(switchesOn(s.Forward))
}

// switchesOn returns the number of switches on a path.
func switchesOn(p transport.Path) int { return len(p.Rates) - 1 }

// tune sets what connections get from the network as a whole, and gives them to their hosts.
func (x *compiler) tune() {
	net := x.Graph.BaseRTT(dataWire(x.Lab.Topology.MTU), ackWire)
	base := x.BaseRTT
	if transport.FactsOf(x.Lab.Transport.Kind).NetRTT {
		base = net
	}
	own := x.Lab.Transport.Section.Retries()
	x.RTOKey = settingsOf(&x.Lab.Transport) + ".rto_min"
	if x.reach.some() {
		x.Extremes = []transport.Spec{x.reach.far, x.reach.near}
		for i := range x.Extremes {
			x.Extremes[i].NetRTT = base
			x.coalesce(&x.Extremes[i])
		}
	}
	for i := range x.Conns {
		s := &x.Conns[i]
		s.NetRTT = base
		x.coalesce(s)
		if s.RTOMin = max(s.RTOMin, units.Time(own.RTORTTs)*s.NetRTT); s.RTOMin == 0 {
			s.RTOMin = max(transport.DefaultRTOMin, 4*net+x.Drain(s))
		}
		if s.Selective.Threshold == 0 && manyPaths(x.Lab) {
			s.Selective.Threshold = min(x.overtaking(s, net), transport.MaxThreshold)
		}
		x.RTOMin = max(x.RTOMin, s.RTOMin)
		x.Plans[s.Src].Conns = append(x.Plans[s.Src].Conns, *s)
		x.Plans[s.Dst].Conns = append(x.Plans[s.Dst].Conns, *s)
	}
}

// coalesce sets how many bytes of a connection are acknowledged together, if its section leaves
// that open.
func (x *compiler) coalesce(s *transport.Spec) {
	if s.Selective.AckEvery == 0 && s.Selects() {
		// An error is one of Open, which reports it.
		s.Selective.AckEvery, _ = transport.AckEvery(x.endpoint(s), s)
	}
}

// endpoint returns the configuration of a connection's sender that its path depends on.
func (x *Experiment) endpoint(s *transport.Spec) transport.Config {
	return transport.Config{
		Host: s.Src, MTU: x.Lab.Topology.MTU, LineRate: x.NICRate(topology.NodeID(s.Src)),
	}
}

// manyPaths reports whether packets of one connection take several paths, because switches choose
// them or the source changes its port (PLB).
func manyPaths(l *lab.Lab) bool {
	return balance(l).PerPacket() || transport.Repaths(l.Transport.Section)
}

// overtaking returns how many packets of a connection may overtake one that takes another path
// before it counts as lost: what is sent in two round trips, and while a queue empties that
// switches move flows away from (docs/adr/0091, 11).
func (x *compiler) overtaking(s *transport.Spec, net units.Time) int {
	line := s.Forward.Rates[0]
	size := line.BytesIn(2 * net)
	if transport.CoordinationOf(x.Lab.Transport.Section) != nil {
		dst := topology.NodeID(s.Dst)
		size += x.Fabric.Ports[x.Graph.Port(x.Graph.Uplink(dst), x.Graph.Home(dst))].Congested
	} else {
		size += x.Lab.Queues.Light.On(line, line.BytesIn(net))
	}
	return int(size / dataWire(x.Lab.Topology.MTU))
}

// checkQPs rejects queue pairs that no message would use: messages take turns, and no connection
// has a second.
func (x *compiler) checkQPs() error {
	qps, whole, key := transport.QueuePairs(x.Lab.Transport.Section)
	if qps <= 1 || whole {
		return nil
	}
	for i := range x.Items {
		if more, err := moreThanOne(&x.Items[i]); more || err != nil {
			return err
		}
	}
	return x.Lab.Errorf("transport."+x.Lab.Transport.Kind+"."+key,
		"round-robin lets messages take turns, but no connection of this workload carries a second one: "+
			"%d queue pairs would not be used; split: messages cuts each message over all, "+
			"and chunk makes more messages",
		qps)
}

// moreThanOne reports whether a rank sends more than one message on some connection.
func moreThanOne(it *host.Item) (bool, error) {
	tags, err := schedule.Tags(it.Spec())
	return int(tags) > max(1, it.Flows), err
}

// sourcePort spreads connections over the dynamic port range (RFC 6335, section 6): the port is the
// entropy that ECMP hashes. Every path has a port; it is the first.
func sourcePort(seed uint64, id transport.ConnID, paths int) uint16 {
	r := rand.New(rand.NewPCG(seed, splitmix.Gamma^uint64(id)))
	return uint16(49152 + r.IntN(16384-(paths-1)))
}

// paths returns the number of paths that a connection of a transport sends on.
func paths(t *lab.Transport) int { return transport.PathsOf(t.Section.Control()) }

// settingsOf returns the path of the section with the parameters of a transport's congestion
// control.
func settingsOf(t *lab.Transport) string {
	_, path, _ := transport.SectionOf(t.Kind)
	if key, _ := transport.InsideOf(t.Section); key != "" {
		path += "." + key
	}
	return "transport." + path
}

// between returns a connection between two hosts, as every item of the workload has it.
func (x *compiler) between(src, dst transport.HostID) transport.Spec {
	s := transport.Spec{Src: src, Dst: dst, Forward: x.path(src, dst), Reverse: x.path(dst, src)}
	s.Kind = x.Lab.Transport.Kind
	x.Lab.Transport.Section.Set(&s)
	return s
}

// Drain returns how long a data packet of a connection can wait in the switches of the network at
// most: the time that the fullest queues on its path take to empty. If PFC holds packets back, what
// waits ahead of a packet may be anywhere in the network, and leaves it at the rate of the slowest
// link of the path.
func (x *Experiment) Drain(s *transport.Spec) units.Time {
	slowest := s.Forward.Rates[0]
	for _, r := range s.Forward.Rates {
		slowest = min(slowest, r)
	}
	if x.Lab.Queues.PFC != nil {
		var all units.Bytes
		for i := range x.Fabric.Switches {
			all += x.Fabric.Switches[i].Buffer.Total
		}
		return slowest.TransmitTime(all)
	}
	var t units.Time
	at := topology.NodeID(s.Src)
	for _, k := range x.Graph.Path(at, topology.NodeID(s.Dst)) {
		p := &x.Fabric.Ports[x.Graph.Port(k, at)]
		if sw := int(at) - x.Graph.Hosts; sw >= 0 {
			room := p.Buffer
			if total := x.Fabric.Switches[sw].Buffer.Total; total > 0 {
				room = total
			}
			t += p.Rate.TransmitTime(room)
		}
		at = x.Graph.Links[k].Other(at)
	}
	return t
}

// Ideal is the completion time of a message of size bytes alone on the idle network: from its first
// bit leaving the sender to the acknowledgement of its last packet, every packet sent back to back.
// It is the denominator of FCT slowdown (PC4, section IV-A, footnote 1). A message that is split
// over queue pairs counts as if it were not: it may have a few more packets that are not full.
//
// Store and forward: the last packet trails the first by the time its predecessors occupy the
// slowest link.
func (x *Experiment) Ideal(c transport.ConnID, size units.Bytes) units.Time {
	s := &x.Conns[c]
	mtu := x.Lab.Topology.MTU
	full := int64((size - 1) / mtu) // packets before the last
	last := size - units.Bytes(full)*mtu
	more := beside(s)
	back := s.Reverse.Delay(replyWire(s))
	if full == 0 {
		return s.Forward.Delay(dataWire(last)+more) + back
	}
	slowest := s.Forward.Rates[0]
	for _, r := range s.Forward.Rates {
		slowest = min(slowest, r)
	}
	return s.Forward.Delay(dataWire(mtu)+more) + units.Time(full-1)*slowest.TransmitTime(dataWire(mtu)+more) +
		slowest.TransmitTime(dataWire(last)+more) + back
}
