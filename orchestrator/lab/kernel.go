package lab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/fabric/queues"
	"weft/orchestrator/topology"
	"weft/transport"
)

// onKernel begins the messages about limits of the kernel datapath.
const onKernel = "datapath " + DatapathKernel + " "

// OfKernel reports whether the problem is that the kernel datapath cannot do something.
func (p Problem) OfKernel() bool { return strings.HasPrefix(p.Message, onKernel) }

// checkKernel reports what a lab asks for and the kernel datapath cannot do, at the setting, with
// an alternative.
func (d *decoder) checkKernel(l *Lab) {
	if !l.Engine.OnKernel() {
		return
	}
	refuse := func(path, format string, args ...any) {
		var p Problem
		if errors.As(l.Errorf(path, onKernel+format+", or datapath fabric", args...), &p) {
			d.report.again(p)
		}
	}
	if l.Engine.Bypasses() {
		refuse("engine.nic", "carries what leaves the interfaces of hosts, which a bypass NIC does not use; "+
			"expected socket")
	}
	d.kernelMarks(l, refuse)
	if l.Queues.PFC != nil {
		refuse("queues.pfc", "drops packets at full queues: Linux has no priority flow control between interfaces; "+
			"expected off")
	}
	if l.Queues.Shared != nil && l.Queues.PFC == nil { // which needs it
		refuse("queues.shared", "has a buffer for each port, not one for all; expected queues.buffer")
	}
	if l.trims() {
		refuse("queues.trim", "drops packets at full queues and cannot cut them to their headers; expected off")
	}
	kind, facts := l.Transport.Kind, transport.FactsOf(l.Transport.Kind)
	if s := l.Transport.Section; s != nil {
		facts = transport.FactsFor(kind, s.Control())
	}
	if l.Queues.PerPacket() && !facts.Coordinated {
		refuse("queues.routing", "hashes addresses and ports and cannot route packet by packet; expected ecmp")
	}
	if facts.Telemetry {
		refuse("transport.kind", "does not write telemetry into packets, which %s needs; expected another transport",
			kind)
	}
	if facts.Coordinated {
		refuse("transport.kind", "has no switches that take part in congestion management, which %s needs; expected "+
			"another transport", kind)
	}
	if l.Clocks.Transparent {
		refuse("clocks.transparent", "does not correct PTP messages; expected false")
	}
	if l.Clocks.Control {
		refuse("clocks.priority", "serves all packets in order of arrival; expected data")
	}
	d.kernelLines(l, refuse)
}

// trims reports whether switch ports of a lab trim packets.
func (l *Lab) trims() bool {
	t := &l.Topology
	for _, spec := range t.Tiers {
		if spec.Queues != nil && spec.Queues.Trim != nil {
			return true
		}
	}
	_, links := t.Drawn()
	return l.Queues.Trim != nil ||
		slices.ContainsFunc(links, func(k topology.CustomLink) bool { return k.Queues != nil && k.Queues.Trim != nil })
}

// kernelMarks reports queues that mark in another place than the kernel's do, of the lab and of
// links with queues of their own.
func (d *decoder) kernelMarks(l *Lab, refuse func(path, format string, args ...any)) {
	marks := func(path string, q *queues.Queues) {
		if q != nil && q.ECN != nil && !q.ECN.Ingress {
			refuse(path, "marks packets when they join a queue (sch_red), not when they leave it; expected ingress")
		}
	}
	marks("queues.ecn.mark", &l.Queues)
	t := &l.Topology
	for _, tier := range slices.Sorted(maps.Keys(t.Tiers)) {
		if q := t.Tiers[tier].Queues; q != nil && q.ECN != l.Queues.ECN {
			marks("topology.tiers."+tier+".queues.ecn.mark", q)
		}
	}
	_, links := t.Drawn()
	for i := range links {
		if q := links[i].Queues; q != nil && q.ECN != l.Queues.ECN {
			marks(fmt.Sprintf("topology.links.%d.queues.ecn.mark", i), q)
		}
	}
}

// kernelLines reports properties of links that the kernel datapath cannot have.
func (d *decoder) kernelLines(l *Lab, refuse func(path, format string, args ...any)) {
	spec := func(path string, s topology.LinkSpec) {
		if s.BitErrors > 0 {
			refuse(path+".bit_errors", "would deliver corrupted packets, which the modelled link drops; "+
				"expected loss")
		}
		if s.Jitter > 0 && s.Reorder > 0 {
			refuse(path+".jitter", "has one delay distribution per link (sch_netem); expected jitter or reorder")
		}
	}
	t := &l.Topology
	spec("topology.link", t.Link)
	for _, tier := range slices.Sorted(maps.Keys(t.Tiers)) {
		if s := t.Tiers[tier]; s.BitErrors != t.Link.BitErrors || s.Jitter != t.Link.Jitter ||
			s.Reorder != t.Link.Reorder {
			spec("topology.tiers."+tier, s)
		}
	}
	_, links := t.Drawn()
	for i := range links {
		if s := links[i].LinkSpec; s.BitErrors != t.Link.BitErrors || s.Jitter != t.Link.Jitter ||
			s.Reorder != t.Link.Reorder {
			spec(fmt.Sprintf("topology.links.%d", i), s)
		}
	}
	for i := range l.Faults {
		if l.Faults[i].Scaled {
			refuse(fmt.Sprintf("faults.%d.queues", i),
				"keeps the queues of a link when its rate changes; expected kept")
		}
		if e := l.Faults[i].BitErrors; e != nil && *e > 0 {
			refuse(fmt.Sprintf("faults.%d.bit_errors", i),
				"would deliver corrupted packets, which the modelled link drops; expected loss")
		}
	}
}
