package lab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/orchestrator/topology"
	"weft/transport"
)

// onKernel begins the messages about limits of the kernel datapath.
const onKernel = "datapath " + DatapathKernel + " "

// OfKernel reports whether the problem is that the kernel datapath cannot do something.
func (p Problem) OfKernel() bool { return strings.HasPrefix(p.Message, onKernel) }

// checkKernel reports what a lab that asks for the kernel datapath cannot have on it.
func (d *decoder) checkKernel(l *Lab) {
	if !l.Engine.OnKernel() {
		return
	}
	for _, p := range l.KernelProblems() {
		d.report.again(p)
	}
}

// KernelProblems returns what the lab asks for and the kernel datapath cannot do, at the setting,
// with an alternative. The lab may ask for another datapath.
func (l *Lab) KernelProblems() (all Problems) {
	refuse := func(path, format string, args ...any) {
		var p Problem
		if errors.As(l.Errorf(path, onKernel+format+", or datapath fabric", args...), &p) {
			all = append(all, p)
		}
	}
	if l.Engine.Bypasses() {
		refuse("engine.nic", "carries what leaves the interfaces of hosts, which a bypass NIC does not use; "+
			"expected socket")
	}
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
	if transport.FactsOf(l.Transport.Kind).Coordinated && l.Queues.Balance().Random() {
		refuse("queues.routing", "keeps flows of %s on a port and does not spray them; leave it out", l.Transport.Kind)
	}
	if l.Clocks.Transparent {
		refuse("clocks.transparent", "does not correct PTP messages; expected false")
	}
	if l.Clocks.Control {
		refuse("clocks.priority", "serves all packets in order of arrival; expected data")
	}
	l.kernelLines(refuse)
	return all
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

// kernelLines reports properties of links that the kernel datapath cannot have.
func (l *Lab) kernelLines(refuse func(path, format string, args ...any)) {
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
