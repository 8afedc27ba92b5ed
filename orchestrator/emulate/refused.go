package emulate

import (
	"fmt"

	"weft/fabric"
	"weft/realtime"
	"weft/results/record"
	"weft/transport"
)

// Refusals lists what a host refused, by why.
func Refusals(name string, r transport.Refusals) (list []record.Refused) {
	for why, n := range r {
		if n > 0 {
			list = append(list, record.Refused{Host: name, By: record.ByHost, Why: transport.Refusal(why).String(), Packets: n})
		}
	}
	return list
}

// refused lists what the network and the hosts refused, and says what of it makes a verdict worse: packets that crossed the
// network and had no business there took the place of others. Those that the network refused are in nobody's way, but for the
// time that it took to read them, which shows as lateness.
func (r *run) refused() (list []record.Refused, disturbed []string) {
	o := r.outcome
	if o.Report != nil {
		for h, n := range o.Report.Refusals {
			for _, k := range []struct {
				why     string
				packets int64
			}{{"malformed", n.Malformed}, {"without a destination", n.NotRouted}, {"under an address that is not the host's", n.Spoofed}} {
				if k.packets > 0 {
					list = append(list, record.Refused{Host: r.name(h), By: record.ByNetwork, Why: k.why, Packets: k.packets})
				}
			}
		}
	}
	shuffles := disorderly(&r.x.Fabric, r.x.Changes)
	for h, n := range o.Results {
		if n == nil {
			continue
		}
		list = append(list, Refusals(r.name(h), n.Refused)...)
		counts := n.Refused
		if shuffles { // packets that come twice, or long after others, contradict those
			counts[transport.Impossible] = 0
		}
		if all := counts.Total(); all > 0 {
			disturbed = append(disturbed, fmt.Sprintf("%d packets crossed the network that %s refused: they took the place of others", all, r.name(h)))
		}
	}
	if o.Report != nil && r.alone() {
		for h, n := range o.Report.Beside {
			if n > 0 {
				o.Beside += n
				disturbed = append(disturbed, fmt.Sprintf("%d packets of %s crossed the network that are no part of the workload", n, r.name(h)))
			}
		}
		for h, n := range o.Report.Answers {
			if n > 0 {
				o.Beside += n
				disturbed = append(disturbed, fmt.Sprintf("%d ICMP errors crossed the network by which %s answers packets that are no part of the workload", n, r.name(h)))
			}
		}
	}
	return list, disturbed
}

// strange tells whether a host sends what is no part of the workload, by itself: what its send queue loses is then that as well,
// and says nothing about the machine.
func (r *run) strange(h int) bool {
	report := r.outcome.Report
	if report == nil {
		return false
	}
	return h < len(report.Refusals) && report.Refusals[h] != (realtime.Refusals{}) || h < len(report.Beside) && report.Beside[h] > 0 && r.alone()
}

// alone tells whether nothing is to be carried but Weft's own packets.
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

// disorderly tells whether lines of the network deliver packets late or twice, or come to.
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
