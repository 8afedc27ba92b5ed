package run

import (
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/transport/wire"
	"weft/units"
)

// checkTransport refuses parameters of the transport that would do nothing on the lines of this network, and paths that it cannot use.
// What is wrong whatever the network is refused when the lab is read.
func (x *Experiment) checkTransport() error {
	if err := x.checkQPs(); err != nil {
		return err
	}
	if err := x.checkTelemetry(); err != nil {
		return err
	}
	path := "transport." + x.Lab.Transport.Kind + "."
	switch p := x.Lab.Transport.Section.(type) {
	case lab.CCM:
		return x.checkRates(path+p.Inner+".", p.Section)
	default:
		return x.checkRates(path, p)
	}
}

// checkTelemetry refuses paths across more switches than packets have room for.
func (x *Experiment) checkTelemetry() error {
	if !transport.AsksTelemetry(x.Lab.Transport.Kind) {
		return nil
	}
	for i := range x.Conns {
		s := &x.Conns[i]
		if n := len(s.Forward.Rates) - 1; n > wire.MaxHops {
			return x.Lab.Errorf("transport.kind", "%s has what switches say of themselves written into packets, which have room for %d of them; from %s to %s there are %d. "+
				"Expected a smaller network, or another transport", x.Lab.Transport.Kind, wire.MaxHops, x.Graph.Nodes[s.Src].Name, x.Graph.Nodes[s.Dst].Name, n)
		}
	}
	return nil
}

// checkRates refuses, of the values that somebody wrote, rates above the line and windows that no connection ever has.
func (x *Experiment) checkRates(path string, section lab.Section) error {
	refuse := func(key, format string, args ...any) error {
		if !x.Lab.Written(path + key) {
			return nil
		}
		return x.Lab.Errorf(path+key, format, args...)
	}
	least := func(r lab.Rate) error {
		for i := range x.Conns {
			host := topology.NodeID(x.Conns[i].Src)
			if line := x.nicRate(host); r.At(line) > line {
				return refuse("min_rate", "%v is above the line of %s, %v, which nothing exceeds; expected at most that", r, x.Graph.Nodes[host].Name, line)
			}
		}
		return nil
	}
	switch p := section.(type) {
	case lab.RoCE:
		return least(p.MinRate)
	case lab.HPCC:
		return least(p.MinRate)
	case lab.Swift:
		if most := x.most(); p.MaxWindow == 0 && len(x.Conns) > 0 && p.InitialWindow > max(most, p.MinWindow) {
			return refuse("initial_window", "%v is above max_window, which is the bandwidth-delay product of the path, at most %v here; expected at most that, or a max_window", p.InitialWindow, most)
		}
	case lab.PC4:
		if most := x.most(); p.Initial == pc4.AtWindow && len(x.Conns) > 0 && p.InitialWindow > most {
			return refuse("initial", "%v is more than the line brings in a base RTT, at most %v here; expected at most that, or line", p.InitialWindow, most)
		}
	}
	return nil
}

// most is the largest bandwidth-delay product of a connection's path, in whole packets.
func (x *Experiment) most() units.Bytes {
	var most units.Bytes
	packet := dataWire(x.Lab.Topology.MTU)
	for i := range x.Conns {
		s := &x.Conns[i]
		rtt := s.Forward.Delay(packet+beside(s)) + s.Reverse.Delay(replyWire(s))
		bdp := x.nicRate(topology.NodeID(s.Src)).BytesIn(rtt)
		most = max(most, (bdp+packet-1)/packet*packet)
	}
	return most
}

// checkThresholds refuses thresholds of switches that nothing can reach: the queues end before.
func (m *memory) checkThresholds(l *lab.Lab) error {
	f, e := l.Queues.PFC, l.Queues.ECN
	apart := make([]units.Bytes, len(m.g.Nodes)) // by switch: reserves and headrooms
	if f != nil {
		for i := range m.g.Links {
			k := &m.g.Links[i]
			for _, from := range []topology.NodeID{k.A, k.B} {
				c := m.port(topology.LinkID(i), from).PFC[dataClass]
				apart[k.Other(from)] += c.Reserve + c.Headroom
			}
		}
	}
	marks := e == nil || f != nil || !l.Written("queues.ecn.kmin") // with PFC a rule of losslessness says so
	for i := range m.g.Links {
		k := &m.g.Links[i]
		for _, sw := range []topology.NodeID{k.A, k.B} {
			if int(sw) < m.g.Hosts {
				continue
			}
			room := m.on(l.Queues.Buffer, k.Rate)
			if l.Queues.Shared != nil {
				room = m.of(sw).Total
			}
			marks = marks || m.on(e.Kmin, k.Rate) < room
			if f == nil || f.Xoff == nil {
				continue
			}
			if left, xoff := room-apart[sw], m.on(*f.Xoff, k.Rate); left > 0 && xoff > left {
				return l.Errorf("queues.pfc.xoff", "%v is more than what %s has to share, %v (%v less %v of reserves and headrooms); expected at most that, or more memory",
					xoff, m.g.Nodes[sw].Name, left, room, apart[sw])
			}
		}
	}
	if !marks {
		return l.Errorf("queues.ecn.kmin", "%v is at least what any queue of this network holds: nothing would be marked; expected less, or ecn: off", e.Kmin)
	}
	return nil
}
