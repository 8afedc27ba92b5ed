package experiment

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"weft/fabric"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport/wire"
	"weft/units"
)

// Check reports what is wrong with labs that only building them shows: hosts that cannot reach each
// other, links that do not exist, queues that hold no packet, parameters that no connection would
// use, and what the requested engine cannot do. Everything for which any machine would reject a run
// is reported here. The points of a sweep share most of their values, so a network is built once
// for the points that share it, and a problem is reported once.
func Check(labs []*lab.Lab) lab.Problems {
	var out lab.Problems
	seen := map[lab.Problem]bool{}
	var last *topology.Spec
	var g *topology.Graph
	for _, l := range labs {
		var err error
		if last == nil || !reflect.DeepEqual(*last, l.Topology) {
			last = &l.Topology
			g, err = NetworkOf(l)
		}
		if err == nil && g != nil {
			err = check(l, g)
		}
		for _, p := range Problems(l, err) {
			if !seen[p] {
				seen[p] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// check is Check for one lab on its network. A lab without anything to run is one to deploy.
func check(l *lab.Lab, g *topology.Graph) error {
	if Runnable(l) != nil {
		_, _, err := checkNetwork(l, g)
		return err
	}
	x, err := SketchOn(l, g)
	errs := []error{err}
	if l.Engine.Simulates() {
		errs = append(errs, Simulable(l))
	}
	var large error
	if l.Engine.Emulates() {
		large = Fits(l, g)
	}
	if l.Engine.Emulates() || AsksForEmulation(l) {
		errs = append(errs, large, onlySimulated(l))
		if err == nil && large == nil { // otherwise the number of ranks is unknown
			errs = append(errs, x.summable())
		}
	}
	return errors.Join(errs...)
}

// causes returns the errors that were joined into one.
func causes(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, causes(e)...)
	}
	return all
}

// Problems returns the problems in an error about a lab.
func Problems(l *lab.Lab, err error) (all lab.Problems) {
	for _, err := range causes(err) {
		var many lab.Problems
		var one lab.Problem
		switch {
		case errors.As(err, &many):
			all = append(all, many...)
		case errors.As(err, &one):
			all = append(all, one)
		default:
			all = append(all, lab.Problem{File: l.File, Message: err.Error()})
		}
	}
	return all
}

// Runnable returns a lab.Problem if a lab is sound but has nothing to run.
func Runnable(l *lab.Lab) error {
	if len(l.Workload) == 0 && len(l.Programs) == 0 && l.Clocks.For == 0 {
		return l.Errorf("workload", "nothing to run; add a collective, such as {collective: all-to-all, size: 4MB}, "+
			"or clocks.for to watch the clocks for a time. weft deploy brings the network up as it is")
	}
	return nil
}

// NetworkOf builds the network of a lab.
func NetworkOf(l *lab.Lab) (*topology.Graph, error) {
	g, err := topology.Build(l.Topology)
	if err != nil {
		return nil, l.Errorf("topology", "%s", strings.TrimPrefix(err.Error(), "topology: "))
	}
	return g, nil
}

// checkNetwork rejects networks that cannot run anything, with every reason that does not follow
// from another. It returns the configuration of the fabric, without routes. slow reports that
// packets take longer than they can carry, so that other problems may follow.
func checkNetwork(l *lab.Lab, g *topology.Graph) (cfg fabric.Config, slow bool, err error) {
	m := newMemory(l, g)
	cfg = m.fabric(l)
	small := m.checkRoom(l)
	const longest = wire.MaxPayload + wire.DataSize + wire.Overhead // whatever the MTU: headers have one range
	if rtt := g.BaseRTT(longest, ackWire); rtt > wire.MaxBaseline/2 {
		return cfg, true, errors.Join(small, l.Errorf("topology.link", "a packet of %d bytes and its "+
			"acknowledgement take %s on an idle path, more than the %s that packets can carry; make links faster or "+
			"shorter",
			longest, rtt, wire.MaxBaseline/2))
	}
	errs := []error{small, m.checkThresholds(l)}
	if l.Queues.PFC != nil {
		errs = append(errs, checkOrder(l, g), m.checkLossless(l, &cfg, small == nil))
	}
	return cfg, false, errors.Join(errs...)
}

// checkOrder refuses PFC on links that deliver packets late or twice.
func checkOrder(l *lab.Lab, g *topology.Graph) error {
	var names []string
	for i := range g.Links {
		if k := &g.Links[i]; k.Duplicate > 0 || k.Reorder > 0 || k.Jitter > 0 {
			names = append(names, k.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	more := ""
	if n := len(names) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d similar)", n)
	}
	return l.Errorf("queues.pfc", "link %s%s delivers packets late or twice, and a switch cannot keep memory for "+
		"those; leave one of them out: pfc, or duplicate, reorder and jitter",
		names[0], more)
}

// room returns the capacity of the queue of a link at switch sw.
func (m *memory) room(k *topology.Link, sw topology.NodeID) units.Bytes {
	if q := m.at(k); q.Shared == nil {
		return m.on(q.Buffer, k.Rate)
	}
	return m.of(sw).Total
}

// least returns the minimum capacity: a packet, or, if ports share memory, a packet for each of
// them.
func (m *memory) least(sw topology.NodeID) units.Bytes {
	if m.queues.Shared == nil {
		return m.packet
	}
	return units.Bytes(m.ports[sw]) * m.packet
}

// once keeps the first problem of each value of the lab, because links and switches that share it
// are alike.
type once struct {
	lab  *lab.Lab
	told map[string]bool // by path
	errs []error
}

func (o *once) add(path, format string, args ...any) {
	if !o.told[path] {
		o.told[path] = true
		o.errs = append(o.errs, o.lab.Errorf(path, format, args...))
	}
}

// checkRoom rejects a buffer that holds no packet, and a switch that cannot hold one for each of
// its ports: every packet that has to wait would be dropped.
func (m *memory) checkRoom(l *lab.Lab) error {
	found := once{lab: l, told: map[string]bool{}}
	for i := range m.g.Links {
		k := &m.g.Links[i]
		for _, sw := range []topology.NodeID{k.A, k.B} {
			room, least := m.room(k, sw), m.least(sw)
			switch q := m.at(k); {
			case int(sw) < m.g.Hosts || room >= least:
			case q.Shared == nil:
				found.add(m.path(k, "buffer"),
					"%s is %d bytes on link %s, less than one packet of %d bytes on the wire; make it larger",
					q.Buffer, room, k.Name, m.packet)
			default:
				found.add("queues.shared.total", "%s is %d bytes in switch %s, less than one packet of %d bytes on "+
					"the wire for each of its %d ports; make it larger",
					q.Shared.Total, room, m.g.Nodes[sw].Name, m.packet, m.ports[sw])
			}
		}
	}
	return errors.Join(found.errs...)
}
