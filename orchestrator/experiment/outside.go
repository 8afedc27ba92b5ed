package experiment

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	clocks "weft/clocksync/node"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/units"
)

// Outside returns what a lab lacks and its transport assumes, each as a problem with its position.
// Such a lab runs, and its numbers say little about the transport.
func Outside(l *lab.Lab) lab.Problems { return new(lastNetwork).outside(l) }

// OutsideOf is Outside for the points of a sweep, with the links that stay down unknown to most
// switches. It returns each problem once.
func OutsideOf(labs []*lab.Lab) lab.Problems {
	var all lab.Problems
	seen := map[lab.Problem]bool{}
	var n lastNetwork
	for _, l := range labs {
		for _, p := range slices.Concat(l.Notes(), n.outside(l), n.cut(l)) {
			if !seen[p] {
				seen[p] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// lastNetwork keeps the network of the last lab, which most points of a sweep share.
type lastNetwork struct {
	of *topology.Spec
	g  *topology.Graph // nil: there is none that could be built
}

// graph returns the network of a lab, or nil if it cannot be built. Building the experiment reports
// why.
func (n *lastNetwork) graph(l *lab.Lab) *topology.Graph {
	if n.of == nil || !reflect.DeepEqual(*n.of, l.Topology) {
		n.of = &l.Topology
		n.g, _ = NetworkOf(l)
	}
	return n.g
}

// cut returns the links that stay down although other paths exist and only the switches at their
// ends learn of it. A run that does not survive it says so itself.
func (n *lastNetwork) cut(l *lab.Lab) (all lab.Problems) {
	g := n.graph(l)
	if g == nil || len(l.Workload) == 0 || balance(l).PerPacket() {
		return nil
	}
	for i := range l.Faults {
		f := &l.Faults[i]
		id, ok := g.LinkNamed(f.Link)
		if !ok || !f.Down || f.For > 0 || f.Reroute > 0 {
			continue
		}
		if k := &g.Links[id]; int(k.A) < g.Hosts || int(k.B) < g.Hosts {
			continue // nothing leads around it
		}
		var p lab.Problem
		if errors.As(l.Errorf(FaultPath(f.Index, "down"),
			"%s stays down, and only the switches at its ends route around it: other switches keep sending into it, "+
				"and connections may never finish; expected a delay such as faults.%d.reroute: 100us, or a time "+
				"for down", f.Link,
			f.Index), &p) {
			all = append(all, p)
		}
	}
	return all
}

// Outside is Outside of the experiment's lab, after a run of some time whose switches marked that
// many packets.
func (x *Experiment) Outside(took units.Time, marks int64) lab.Problems {
	if marks == 0 {
		took = 0
	}
	n := &lastNetwork{&x.Lab.Topology, x.Graph}
	return slices.Concat(n.unmetBy(x.Lab), n.idleFaults(x.Lab), x.misfits(took))
}

// outside returns the conditions of a lab's transport that its settings and its paths do not meet.
func (n *lastNetwork) outside(l *lab.Lab) lab.Problems {
	all := append(n.unmetBy(l), n.idleFaults(l)...)
	if g := n.graph(l); g != nil && Runnable(l) == nil {
		if x, err := SketchOn(l, g); err == nil { // otherwise building the experiment says why
			all = append(all, x.misfits(0)...)
		}
	}
	return all
}

// misfits returns the parameters of the transport that do not work on the paths of its connections,
// and the faults that make them so.
func (x *Experiment) misfits(took units.Time) (all lab.Problems) {
	seen := map[string]bool{}
	for i := range x.Extremes {
		s := &x.Extremes[i]
		found, err := transport.Misfits(x.endpoint(s), s, took)
		if err != nil {
			return nil // opening the connection says so
		}
		for _, m := range found {
			if !seen[m.Key] {
				seen[m.Key] = true
				all = append(all, problemAt(x.Lab, m.Key, fmt.Sprintf("%s is outside its conditions: %s",
					x.Lab.Transport.Kind, m.What)))
			}
		}
	}
	return append(all, x.upset()...)
}

// lasting is the number of base RTTs from which on a fault of a link is long. Ours.
const lasting = 10

// upset returns the faults that make links longer or slower than the transport bears, which knows
// its paths as they are at the start.
func (x *Experiment) upset() (all lab.Problems) {
	for i := range x.Lab.Faults {
		f := &x.Lab.Faults[i]
		id, ok := x.Graph.LinkNamed(f.Link)
		if !ok || f.Delay == nil && f.Rate == nil {
			continue
		}
		key, longer, rate := "rate", units.Time(0), units.Bandwidth(0)
		if f.Rate != nil && *f.Rate < x.Graph.Links[id].Rate {
			rate = *f.Rate
		}
		if f.Delay != nil {
			key, longer = "delay", max(*f.Delay-x.Graph.Links[id].Delay, 0)
			if f.Toward == "" {
				longer *= 2
			}
		}
		if f.For > 0 && f.For < lasting*(x.BaseRTT+longer) {
			continue
		}
		for i := range x.Extremes {
			what, err := transport.Upset(x.endpoint(&x.Extremes[i]), &x.Extremes[i], longer, rate)
			if err != nil || what == "" {
				continue // opening the connection says what is wrong
			}
			all = append(all, problemAt(x.Lab, FaultPath(f.Index, key), fmt.Sprintf("%s is outside its conditions on "+
				"paths over %s: %s; expected such a link from the start, to which its settings adapt",
				x.Lab.Transport.Kind, f.Link, what)))
			break
		}
	}
	return all
}

// unmetBy returns what the settings of a lab lack that its transport assumes.
func (n *lastNetwork) unmetBy(l *lab.Lab) lab.Problems {
	if len(l.Workload) == 0 {
		return nil // programs bring transports of their own
	}
	var c transport.Spec
	l.Transport.Section.Set(&c)
	needs, err := transport.NeedsOf(l.Transport.Kind, c.CC, c.Recovery)
	if err != nil {
		return nil // building the experiment says so
	}
	var all lab.Problems
	for _, need := range needs {
		path, what := n.unmet(l, need.Condition)
		if path == "" {
			continue
		}
		if recovery := fmt.Sprintf("transport.%s.recovery", l.Transport.Kind); need.Selective && path != recovery {
			what += fmt.Sprintf(", or %s: selective-repeat", recovery)
		}
		p := problemAt(l, path, fmt.Sprintf("%s is outside its conditions: %s, and %s", l.Transport.Kind, need.Why,
			what))
		all = append(all, p)
	}
	return all
}

// problemAt returns a problem with the value at path. Its position is that of the value or its
// section, or else that of the transport whose condition it is.
func problemAt(l *lab.Lab, path, message string) lab.Problem {
	at := func(path string) (p lab.Problem) {
		errors.As(l.Errorf(path, "%s", message), &p)
		return p
	}
	p, whole := at(path), at("")
	if p.Line == whole.Line && p.Column == whole.Column && p.Flag == whole.Flag {
		p = at("transport.kind")
		p.Path = path
	}
	return p
}

// unmet returns the setting that violates a condition of the transport, with the reason and an
// alternative. path is "" if the lab meets the condition.
func (n *lastNetwork) unmet(l *lab.Lab, c transport.Condition) (path, what string) {
	switch c {
	case transport.Lossless:
		if l.Queues.PFC == nil {
			return "queues.pfc", "queues drop packets without PFC; expected " + PFCOn(l)
		}
	case transport.Marks:
		return n.unmarked(l)
	case transport.SyncedClocks:
		if k := &l.Clocks; !k.Kind().Perfect && !k.Kind().Talks && (k.Offset != 0 || k.Skew != 0 || k.Wander != 0) {
			return "clocks.sync", "the hosts' clocks are not synchronized; expected clocks.sync: " +
				strings.Join(synchronized(), ", ")
		}
	case transport.Trimming:
		if l.Queues.Trim == nil {
			return "queues.trim", "queues drop packets whole; expected queues.trim: on"
		}
	case transport.InOrder:
		return overtaken(l)
	case transport.OnePath:
		if balance(l).PerPacket() {
			return "queues.routing", fmt.Sprintf("with %s these come from different ports; expected "+
				"queues.routing: ecmp", l.Queues.Routing)
		}
	case transport.Announced:
		return unannounced(l)
	}
	return "", ""
}

// few is the number of flows to one host that no controller needs to announce: with up to 4 flows
// of 100 KB to 10 MB at once the last one completes within 10 % of an announced incast, with 6 up
// to 32 % later, and 8 overflow a default queue, which costs timeouts. Ours, measured at 100 Gb/s.
const few = 4

// unannounced returns the item of the workload that has the most flows to one host, of those whose
// flows no controller knows before they come: lists and jobs.
func unannounced(l *lab.Lab) (path, what string) {
	most := few
	for i := range l.Workload {
		it := &l.Workload[i]
		if it.Given == nil {
			continue
		}
		for _, part := range it.Given.Parts {
			flows := 0
			for _, from := range part.Recvs {
				flows += from.Flows
			}
			if flows > most && part.Inflow == 0 {
				most, path = flows, fmt.Sprintf("workload.%d", it.Index)
			}
		}
	}
	key := l.Transport.Kind
	if inside, _ := transport.InsideOf(l.Transport.Section); inside != "" {
		key += "." + inside
	}
	return path, fmt.Sprintf("of collectives only: here up to %d come to one host unannounced, and each starts as if "+
		"alone; expected a collective, or transport.%s.base_rate: off", most, key)
}

// PFCOn returns the advice to turn PFC on, with the written settings that PFC does not allow.
func PFCOn(l *lab.Lab) string {
	var without []string
	for _, s := range l.Sources {
		if !l.Written(s.Path) || !strings.HasPrefix(s.Path, "topology.") && !strings.HasPrefix(s.Path, "queues.") {
			continue
		}
		off := s.Value == "off" || s.Value == "0"
		switch s.Path[strings.LastIndexByte(s.Path, '.')+1:] {
		case "buffer", "trim", "duplicate", "reorder", "jitter":
			if !off {
				without = append(without, s.Path)
			}
		case "shared":
			if off {
				without = append(without, s.Path+": off")
			}
		}
	}
	switch n := len(without); {
	case n == 0:
		return "queues.pfc: on"
	case n > 4:
		without = append(without[:3], fmt.Sprintf("%d more", n-3))
	}
	return "queues.pfc: on without " + strings.Join(without, ", ")
}

// synchronized returns the kinds of synchronization that keep the hosts' clocks together.
func synchronized() []string {
	return slices.DeleteFunc(clocks.Kinds(), func(kind string) bool {
		f := clocks.FactsOf(clocks.Sync(kind))
		return !f.Perfect && !f.Talks
	})
}

// unmarked returns why no packet of a lab's network is ever marked, or not all packets of a long
// queue.
func (n *lastNetwork) unmarked(l *lab.Lab) (path, what string) {
	g := n.graph(l)
	if g == nil {
		return "", ""
	}
	m := newMemory(l, g)
	some := false
	for i := range g.Links {
		q := m.at(&g.Links[i])
		if q.ECN != nil && q.PFC != nil {
			return "", ""
		}
		some = some || q.ECN != nil
	}
	if !some {
		return "queues.ecn", "no switch marks any packet; expected queues.ecn: on"
	}
	if path, most := m.unreached("ecn.kmin", func(kmin, _ units.Bytes) units.Bytes { return kmin }); path != "" {
		return path, fmt.Sprintf("no queue reaches kmin, %v, so that no packet is marked; expected a "+
			"smaller kmin, a larger buffer or %s", most, PFCOn(l))
	}
	if path, most := m.unreached("ecn.kmax", func(_, kmax units.Bytes) units.Bytes { return kmax }); path != "" {
		return path, fmt.Sprintf("no queue reaches kmax, %v: queues drop packets before they mark every "+
			"one; expected a smaller kmax, a larger buffer or %s", most, PFCOn(l))
	}
	return "", ""
}

// unreached returns the path of a marking threshold that no queue reaches, and its largest value;
// no path if some queue reaches it.
func (m *memory) unreached(
	key string, threshold func(kmin, kmax units.Bytes) units.Bytes,
) (path string, most units.Bytes) {
	for _, long := range m.reached(threshold) {
		if long {
			return "", 0
		}
	}
	for i := range m.g.Links {
		k := &m.g.Links[i]
		for _, sw := range []topology.NodeID{k.A, k.B} {
			if m.at(k).ECN != nil && int(sw) >= m.g.Hosts {
				kmin, kmax, _ := m.marks(k, sw)
				path, most = m.path(k, key), max(most, threshold(kmin, kmax))
			}
		}
	}
	return path, most
}

// overtaken returns why packets of a connection overtake each other in a lab's network.
func overtaken(l *lab.Lab) (path, what string) {
	if balance(l).PerPacket() {
		if transport.FactsOf(l.Transport.Kind).Coordinated {
			return "transport." + l.Transport.Kind + ".recovery",
				"its switches move flows to other paths; expected selective-repeat"
		}
		return "queues.routing", fmt.Sprintf("with %s packets overtake each other; expected queues.routing: ecmp",
			l.Queues.Routing)
	}
	late := func(path string, s topology.LinkSpec) (string, string) {
		switch {
		case s.Reorder > 0:
			return path, "links deliver packets late; expected reorder: 0"
		case s.Jitter > 0:
			return path, "links delay each packet independently; expected jitter: off"
		}
		return "", ""
	}
	if path, what = late("topology.link", l.Topology.Link); path != "" {
		return path, what
	}
	for _, name := range slices.Sorted(maps.Keys(l.Topology.Tiers)) {
		if path, what = late("topology.tiers."+name, l.Topology.Tiers[name]); path != "" {
			return path, what
		}
	}
	_, links := l.Topology.Drawn()
	for i, k := range links {
		if path, what = late(fmt.Sprintf("topology.links.%d", i), k.LinkSpec); path != "" {
			return path, what
		}
	}
	return "", ""
}
