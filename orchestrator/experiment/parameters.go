package experiment

import (
	"errors"

	"weft/fabric/queues"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/transport/cc"
	"weft/transport/wire"
	"weft/units"
)

// checkTransport rejects parameters of the transport that have no effect at the rates of this
// network, and paths that it cannot use. What is wrong on any network is rejected when the lab is
// read.
func (x *compiler) checkTransport() error {
	path, section := "transport."+x.Lab.Transport.Kind+".", x.Lab.Transport.Section
	if key, inside := transport.InsideOf(section); key != "" {
		path, section = path+key+".", inside
	}
	return errors.Join(x.checkQPs(), x.checkTelemetry(), x.checkTimeout(), x.checkRates(path, section))
}

// checkTimeout rejects a written retransmission timeout that no connection would have: none is
// below four base RTTs.
func (x *compiler) checkTimeout() error {
	own := x.Lab.Transport.Section.Retries()
	path := x.RTOKey
	if own.RTOMin == 0 || own.RTORTTs > 0 || own.RTOMin >= 4*x.BaseRTT || !x.reach.some() || !x.Lab.Written(path) {
		return nil
	}
	return x.Lab.Errorf(path, "%v is below the minimum of four base RTTs of this network, %v; expected at least "+
		"that, or auto", own.RTOMin, 4*x.BaseRTT)
}

// checkTelemetry rejects paths across more switches than packets have room for.
func (x *compiler) checkTelemetry() error {
	if !transport.FactsFor(x.Lab.Transport.Kind, x.Lab.Transport.Section.Control()).Telemetry {
		return nil
	}
	if far := &x.reach; far.switches > wire.MaxHops {
		return x.Lab.Errorf("transport.kind", "%s has switches write telemetry into packets, which "+
			"have room for %d switches; from %s to %s there are %d. "+
			"Expected a smaller network, or another transport", x.Lab.Transport.Kind, wire.MaxHops,
			x.Graph.Nodes[far.src].Name, x.Graph.Nodes[far.dst].Name, far.switches)
	}
	return nil
}

// checkRates rejects written rates above the line rate and written windows that no connection ever
// has.
func (x *compiler) checkRates(path string, section transport.Section) error {
	p, ok := section.Control().(cc.Fitted)
	if !ok || !x.reach.some() {
		return nil
	}
	key, why := p.Exceeds(x.Graph.Nodes[x.reach.slow].Name, x.reach.slowest, x.reach.bdp)
	if key == "" || !x.Lab.Written(path+key) {
		return nil
	}
	return x.Lab.Errorf(path+key, "%s", why)
}

// marking reports for the ECN settings of links without PFC whether some of their queues can be
// long enough to be marked.
func (m *memory) marking() map[*queues.ECN]bool {
	return m.reached(func(kmin, _ units.Bytes) units.Bytes { return kmin })
}

// reached reports for the ECN settings of links without PFC whether some of their queues can exceed
// a threshold. With PFC, a rule of losslessness covers this.
func (m *memory) reached(threshold func(kmin, kmax units.Bytes) units.Bytes) map[*queues.ECN]bool {
	marks := map[*queues.ECN]bool{}
	for i := range m.g.Links {
		k := &m.g.Links[i]
		q := m.at(k)
		if q.ECN == nil || q.PFC != nil {
			continue
		}
		for _, sw := range []topology.NodeID{k.A, k.B} {
			if int(sw) < m.g.Hosts {
				continue
			}
			tooSmall := m.room(k, sw) < m.least(sw) // which is reported
			kmin, kmax, _ := m.marks(k, sw)
			marks[q.ECN] = marks[q.ECN] || threshold(kmin, kmax) < m.longest(k, sw) || tooSmall
		}
	}
	return marks
}

// checkThresholds rejects thresholds of switches that no queue can reach.
func (m *memory) checkThresholds(l *lab.Lab) error {
	apart := make([]units.Bytes, len(m.g.Nodes)) // by switch: reserves and headrooms
	if l.Queues.PFC != nil {
		for i := range m.g.Links {
			k := &m.g.Links[i]
			for _, from := range []topology.NodeID{k.A, k.B} {
				c := m.port(topology.LinkID(i), from).PFC[dataClass]
				apart[k.Other(from)] += c.Reserve + c.Headroom
			}
		}
	}
	found := once{lab: l, told: map[string]bool{}}
	marks := m.marking()
	for i := range m.g.Links {
		k := &m.g.Links[i]
		f := m.at(k).PFC
		for _, sw := range []topology.NodeID{k.A, k.B} {
			if int(sw) < m.g.Hosts {
				continue
			}
			room := m.room(k, sw)
			if f == nil || f.Xoff == nil || room < m.least(sw) {
				continue
			}
			if left, xoff := room-apart[sw], m.on(*f.Xoff, k.Rate); left > 0 && xoff > left {
				found.add(m.path(k, "pfc.xoff"), "%v is more than what %s has to share, %v (%v less %v of reserves "+
					"and headrooms); expected at most that, or more memory",
					xoff, m.g.Nodes[sw].Name, left, room, apart[sw])
			}
		}
	}
	for i := range m.g.Links {
		k := &m.g.Links[i]
		e := m.at(k).ECN
		if long, known := marks[e]; !known || long {
			continue
		}
		if kmin := m.path(k, "ecn.kmin"); l.Written(kmin) {
			found.add(kmin, "%v is not below the capacity of any queue here: no packet would be marked; expected "+
				"less, or ecn: off", e.Kmin)
		}
	}
	return errors.Join(found.errs...)
}
