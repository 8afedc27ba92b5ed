package emulate

import (
	"fmt"

	"weft/fabric"
	"weft/realtime"
	"weft/results/record"
	"weft/transport"
)

// Refusals lists the packets that a host refused, by reason.
func Refusals(name string, r transport.Refusals) (list []record.Refused) {
	for why, n := range r {
		if n > 0 {
			list = append(list, record.Refused{Host: name, By: record.ByHost, Why: transport.Refusal(why).String(),
				Packets: n})
		}
	}
	return list
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
	shuffles := disorderly(&r.x.Fabric, r.x.Changes)
	refused := make([]int64, len(o.Results))
	for h, n := range o.Results {
		if n == nil {
			continue
		}
		list = append(list, Refusals(r.name(h), n.Refused)...)
		counts := n.Refused
		// packets that arrive twice, or long after others, may contradict those
		if shuffles {
			counts[transport.Impossible] = 0
		}
		refused[h] = counts.Total()
	}
	if n, by := r.hosts(refused); n > 0 {
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
	if len(r.x.Programs) > 0 {
		return false
	}
	for i := range r.x.Plans {
		if r.x.Plans[i].Background != nil {
			return false
		}
	}
	return true
}

// disorderly reports whether links of the network deliver packets late or twice, now or after a
// change.
func disorderly(n *fabric.Config, changes []fabric.Change) bool {
	for i := range n.Ports {
		if n.Ports[i].Disorder != (fabric.Disorder{}) {
			return true
		}
	}
	for i := range changes {
		if l := changes[i].Line; l != nil && l.Disorder != nil && *l.Disorder != (fabric.Disorder{}) {
			return true
		}
	}
	return false
}
