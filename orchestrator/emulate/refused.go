package emulate

import (
	"fmt"
	"maps"
	"slices"

	"weft/fabric"
	"weft/nodeimg/agent"
	"weft/realtime"
	"weft/results/record"
	"weft/transport"
)

// Refusals lists the packets that a host refused, by reason. from is the name of their sender;
// empty: unknown.
func Refusals(name, from string, r transport.Refusals) (list []record.Refused) {
	for why, n := range r {
		if n > 0 {
			list = append(list, record.Refused{Host: name, By: record.ByHost, From: from,
				Why: transport.Refusal(why).String(), Packets: n})
		}
	}
	return list
}

// refusedBy lists the packets that host h refused, by sender and reason, and adds to from, by
// sending host, those that may worsen the verdict. It returns those whose sender is unknown. On
// links that deliver packets twice, or long after others, packets may contradict those.
func (r *run) refusedBy(h int, n *agent.Results, shuffles bool, from []int64) (list []record.Refused, unknown int64) {
	rest := n.Refused
	total := func(c transport.Refusals) int64 {
		if shuffles {
			c[transport.Impossible] = 0
		}
		return c.Total()
	}
	for _, src := range slices.Sorted(maps.Keys(n.RefusedFrom)) {
		of := n.RefusedFrom[src]
		if src < 0 || int(src) >= len(from) {
			continue // no host: the node's own word
		}
		for why := range of {
			of[why] = max(0, min(of[why], rest[why]))
			rest[why] -= of[why]
		}
		list = append(list, Refusals(r.name(h), r.name(int(src)), of)...)
		from[src] += total(of)
	}
	return append(list, Refusals(r.name(h), "", rest)...), total(rest)
}

// refused lists the packets that the network and the hosts refused, and those that worsen the
// verdict: foreign packets that crossed the network took bandwidth from others. Packets that the
// network refused disturb nothing but the fabric, which had to read them, and that shows as
// lateness.
func (r *run) refused() (list []record.Refused, disturbed []string) {
	o := r.outcome
	address := "with an IP address as its source that is not the host's"
	if r.x.Kernel != nil { // which counts both together
		address = "with an IP or MAC address as its source that is not the host's"
	}
	if o.Report != nil {
		for h, n := range o.Report.Refusals {
			for _, k := range []struct {
				why     string
				packets int64
			}{{"malformed", n.Malformed}, {"without a destination", n.NotRouted},
				{address, n.Spoofed}, {"with a MAC address as its source that is not the host's", n.SpoofedMAC}} {
				if k.packets > 0 {
					list = append(list, record.Refused{Host: r.name(h), By: record.ByNetwork, Why: k.why,
						Packets: k.packets})
				}
			}
		}
	}
	// who sends comes before what that did to others
	if o.Report != nil && r.alone() {
		if n, from := r.hosts(o.Report.Beside); n > 0 {
			o.Beside += n
			disturbed = append(disturbed, fmt.Sprintf("%d packets of %s crossed the network that are not part "+
				"of the workload", n, from))
		}
	}
	shuffles := r.x.Fabric.HasLink(r.x.Changes, (*fabric.Link).Disturbs)
	from, unknown := make([]int64, len(o.Results)), make([]int64, len(o.Results))
	for h, n := range o.Results {
		if n == nil {
			continue
		}
		var own []record.Refused
		own, unknown[h] = r.refusedBy(h, n, shuffles, from)
		list = append(list, own...)
	}
	if n, who := r.hosts(from); n > 0 {
		disturbed = append(disturbed, fmt.Sprintf("%s sent %d packets that crossed the network and were refused "+
			"by their receivers: they took bandwidth from others", who, n))
	}
	if n, by := r.hosts(unknown); n > 0 {
		disturbed = append(disturbed, fmt.Sprintf("%d packets that %s refused crossed the network: they took "+
			"bandwidth from others", n, by))
	}
	if o.Report != nil && r.alone() {
		if n, by := r.hosts(o.Report.Answers); n > 0 {
			o.Beside += n
			disturbed = append(disturbed, fmt.Sprintf("%d ICMP errors crossed the network in which %s answered "+
				"packets that are not part of the workload", n, by))
		}
	}
	return list, disturbed
}

// hosts returns the sum of a count by host, and the hosts that have one.
func (r *run) hosts(counts []int64) (sum int64, names string) {
	var have []string
	for h, n := range counts {
		if sum += n; n > 0 {
			have = append(have, r.name(h))
		}
	}
	return sum, firstNames(have)
}

// strange reports whether a host sends traffic of its own outside of the workload. Losses in its
// send queue may then be of that traffic and say nothing about the machine.
func (r *run) strange(h int) bool {
	report := r.outcome.Report
	if report == nil {
		return false
	}
	return h < len(report.Refusals) && report.Refusals[h] != (realtime.Refusals{}) || h < len(report.Beside) &&
		report.Beside[h] > 0 && r.alone()
}

// alone reports whether the network carries nothing but Weft's own packets.
func (r *run) alone() bool {
	if len(r.x.Programs) > 0 || len(r.x.Groups) > 0 {
		return false
	}
	for i := range r.x.Plans {
		if r.x.Plans[i].Background != nil {
			return false
		}
	}
	return true
}
