package run

import (
	"errors"

	"weft/fabric/queues"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/transport"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/swift"
	"weft/transport/wire"
	"weft/units"
)

// checkTransport refuses parameters of the transport that would do nothing on the lines of this network, and paths that it cannot use.
// What is wrong whatever the network is refused when the lab is read.
func (x *Experiment) checkTransport() error {
	path, section := "transport."+x.Lab.Transport.Kind+".", x.Lab.Transport.Section
	if p, ok := section.(*transport.CCM); ok {
		path, section = path+p.Inner+".", p.Inside()
	}
	return errors.Join(x.checkQPs(), x.checkTelemetry(), x.checkTimeout(), x.checkRates(path, section))
}

// checkTimeout refuses a retransmission timeout that somebody wrote and no connection would have: none is below four base RTTs.
func (x *Experiment) checkTimeout() error {
	own := x.Lab.Transport.Section.Retries()
	path := x.timeoutPath()
	if own.RTOMin == 0 || own.RTORTTs > 0 || own.RTOMin >= 4*x.BaseRTT || !x.reach.some() || !x.Lab.Written(path) {
		return nil
	}
	return x.Lab.Errorf(path, "%v is below four base RTTs of this network, %v, and no timeout is; expected at least that, or auto", own.RTOMin, 4*x.BaseRTT)
}

// timeoutPath is the path of the setting that says what the least retransmission timeout is.
func (x *Experiment) timeoutPath() string { return settingsOf(&x.Lab.Transport) + ".rto_min" }

// settingsOf is the path of the section that a transport's congestion control has its parameters from.
func settingsOf(t *lab.Transport) string {
	if p, ok := t.Section.(*transport.CCM); ok {
		return "transport.ccm." + p.Inner
	}
	_, path, _ := transport.Named(t.Kind)
	return "transport." + path
}

// checkTelemetry refuses paths across more switches than packets have room for.
func (x *Experiment) checkTelemetry() error {
	if !transport.FactsOf(x.Lab.Transport.Kind).Telemetry {
		return nil
	}
	if far := &x.reach; far.switches > wire.MaxHops {
		return x.Lab.Errorf("transport.kind", "%s has what switches say of themselves written into packets, which have room for %d of them; from %s to %s there are %d. "+
			"Expected a smaller network, or another transport", x.Lab.Transport.Kind, wire.MaxHops, x.Graph.Nodes[far.src].Name, x.Graph.Nodes[far.dst].Name, far.switches)
	}
	return nil
}

// checkRates refuses, of the values that somebody wrote, rates above the line and windows that no connection ever has.
func (x *Experiment) checkRates(path string, section transport.Section) error {
	refuse := func(key, format string, args ...any) error {
		if !x.Lab.Written(path + key) {
			return nil
		}
		return x.Lab.Errorf(path+key, format, args...)
	}
	least := func(r params.Rate) error {
		if !x.reach.some() {
			return nil
		}
		if line := x.reach.slowest; r.At(line) > line {
			return refuse("min_rate", "%v is above the line of %s, %v, which nothing exceeds; expected at most that", r, x.Graph.Nodes[x.reach.slow].Name, line)
		}
		return nil
	}
	switch p := section.Control().(type) {
	case dcqcn.Params:
		return least(p.MinRate)
	case hpcc.Params:
		return least(p.MinRate)
	case swift.Params:
		if most := x.reach.bdp; p.MaxWindow == 0 && x.reach.some() && p.InitialWindow > max(most, p.MinWindow) {
			return refuse("initial_window", "%v is above max_window, which is the bandwidth-delay product of the path, at most %v here; expected at most that, or a max_window", p.InitialWindow, most)
		}
	case pc4.Params:
		if most := x.reach.bdp; p.Initial == pc4.AtWindow && x.reach.some() && p.InitialWindow > most {
			return refuse("initial", "%v is more than the line brings in a base RTT, at most %v here; expected at most that, or line", p.InitialWindow, most)
		}
	}
	return nil
}

// marking says of the ECN settings of links without PFC whether some queue that they are for can be long enough to be marked.
func (m *memory) marking() map[*queues.ECN]bool {
	return m.reached(func(e *queues.ECN) params.Size { return e.Kmin })
}

// reached says of the ECN settings of links without PFC whether some queue that they are for can be longer than a threshold. With
// PFC a rule of losslessness says so.
func (m *memory) reached(threshold func(*queues.ECN) params.Size) map[*queues.ECN]bool {
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
			room := m.room(k, sw)
			marks[q.ECN] = marks[q.ECN] || m.on(threshold(q.ECN), k.Rate) < room || room < m.least(sw) // which is reported
		}
	}
	return marks
}

// checkThresholds refuses thresholds of switches that nothing can reach: the queues end before.
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
				found.add(m.path(k, "pfc.xoff"), "%v is more than what %s has to share, %v (%v less %v of reserves and headrooms); expected at most that, or more memory",
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
			found.add(kmin, "%v is at least what any queue that it is for holds: nothing would be marked; expected less, or ecn: off", e.Kmin)
		}
	}
	return errors.Join(found.errs...)
}
