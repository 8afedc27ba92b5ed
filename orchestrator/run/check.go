package run

import (
	"errors"
	"reflect"
	"strings"

	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport/wire"
	"weft/units"
)

// Check reports what is wrong with labs that only building them shows: hosts that cannot reach each other, links
// that do not exist, queues that hold no packet, parameters that no connection would use, what the engine asked for cannot do. All that
// running a lab would refuse on any machine is refused here. The points of a sweep share most of what they are, so
// a network is built once for the points that have it in common, and a problem is reported once.
func Check(labs []*lab.Lab) lab.Problems {
	var out lab.Problems
	seen := map[lab.Problem]bool{}
	var last *lab.Topology
	var g *topology.Graph
	for _, l := range labs {
		var err error
		if last == nil || !reflect.DeepEqual(*last, l.Topology) {
			last = &l.Topology
			g, err = graph(l)
		}
		if err == nil && g != nil {
			err = check(l, g)
		}
		for _, p := range problems(l, err) {
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// check is Check of one lab on its network. Without anything to run, a lab is one to be deployed.
func check(l *lab.Lab, g *topology.Graph) error {
	if Runnable(l) != nil {
		return checkNetwork(l, g)
	}
	x, err := buildOn(l, g)
	if err != nil {
		return err
	}
	kind := l.Engine.Kind
	if kind == "sim" || kind == "both" {
		err = x.simulable()
	}
	if err == nil && (kind == "emu" || kind == "both") {
		err = x.fits()
	}
	if err == nil && (kind == "emu" || kind == "both" || chosen(l)) {
		err = x.emulable()
	}
	return err
}

// problems are those that an error about a lab consists of.
func problems(l *lab.Lab, err error) lab.Problems {
	var many lab.Problems
	var one lab.Problem
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case ok:
		for _, e := range joined.Unwrap() {
			many = append(many, problems(l, e)...)
		}
	case errors.As(err, &many):
	case errors.As(err, &one):
		many = lab.Problems{one}
	default:
		many = lab.Problems{{File: l.File, Message: err.Error()}}
	}
	return many
}

// Runnable reports, as a lab.Problem, a lab that is sound but has nothing to run.
func Runnable(l *lab.Lab) error {
	if len(l.Workload) == 0 && l.Clocks.For == 0 {
		return l.Errorf("workload", "nothing to run; add a collective, such as {collective: all-to-all, size: 4MB}, or clocks.for to watch the clocks for a time")
	}
	return nil
}

// graph builds the network of a lab.
func graph(l *lab.Lab) (*topology.Graph, error) {
	g, err := topology.Build(l.Topology)
	if err != nil {
		return nil, l.Errorf("topology", "%s", strings.TrimPrefix(err.Error(), "topology: "))
	}
	return g, nil
}

// checkNetwork refuses networks that nothing can be run on.
func checkNetwork(l *lab.Lab, g *topology.Graph) error {
	const longest = wire.MaxPayload + wire.DataSize + wire.Overhead // whatever the MTU: headers have one range
	if rtt := g.BaseRTT(longest, ackWire); rtt > wire.MaxBaseline/2 {
		return l.Errorf("topology.link", "a packet of %d bytes and its acknowledgement take %s on an idle path, more than the %s that packets can carry; make links faster or shorter",
			longest, rtt, wire.MaxBaseline/2)
	}
	if err := checkQueues(l, g); err != nil || l.Queues.PFC == nil {
		return err
	}
	for i := range g.Links {
		if k := &g.Links[i]; k.Duplicate > 0 || k.Reorder > 0 || k.Jitter > 0 {
			return l.Errorf("queues.pfc", "link %s delivers packets late or twice, and a switch cannot keep memory for those; leave one of them out: pfc, or duplicate, reorder and jitter", k.Name)
		}
	}
	cfg := fabricConfig(l, g)
	return checkLossless(l, g, &cfg)
}

// checkQueues refuses a buffer that cannot hold a packet: every packet that has to wait would be dropped.
func checkQueues(l *lab.Lab, g *topology.Graph) error {
	m := newMemory(l, g)
	if err := m.checkThresholds(l); err != nil {
		return err
	}
	packet := m.packet
	if l.Queues.Shared != nil {
		return checkShared(l, m)
	}
	for i := range g.Links {
		k := &g.Links[i]
		if room := m.on(l.Queues.Buffer, k.Rate); room < packet {
			return l.Errorf("queues.buffer", "%s is %d bytes on link %s, less than one packet of %d bytes on the wire; make it larger",
				l.Queues.Buffer, room, k.Name, packet)
		}
	}
	return nil
}

// checkShared refuses a switch that cannot hold a packet for each of its ports.
func checkShared(l *lab.Lab, m *memory) error {
	for s := range m.g.Switches() {
		id := topology.NodeID(m.g.Hosts + s)
		ports := m.ports[id]
		if total := m.of(id).Total; total < units.Bytes(ports)*m.packet {
			return l.Errorf("queues.shared.total", "%s is %d bytes in switch %s, less than one packet of %d bytes on the wire for each of its %d ports; make it larger",
				l.Queues.Shared.Total, total, m.g.Nodes[id].Name, m.packet, ports)
		}
	}
	return nil
}
