package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/results/record"
)

// maxRefusing is the maximum number of hosts that the warning about refused packets names.
const maxRefusing = 4

// rejected counts refused packets, by reason.
type rejected struct {
	packets int64
	by      []string // hosts, if hosts refused them
	reasons []string
	reason  map[string]int64
}

func (j *rejected) add(r *record.Refused) {
	if j.packets += r.Packets; r.By != record.ByNetwork && !slices.Contains(j.by, r.Host) {
		j.by = append(j.by, r.Host)
	}
	if _, known := j.reason[r.Why]; !known {
		j.reasons = append(j.reasons, r.Why)
	}
	if j.reason == nil {
		j.reason = map[string]int64{}
	}
	j.reason[r.Why] += r.Packets
}

// why returns the reasons, with their numbers of packets.
func (j *rejected) why() string {
	var list []string
	for _, why := range j.reasons {
		list = append(list, fmt.Sprintf("%d %s", j.reason[why], why))
	}
	return strings.Join(list, ", ")
}

// who returns the hosts that refused.
func (j *rejected) who() string {
	by := j.by
	if more := len(by) - maxRefusing; more > 0 {
		by = append(by[:maxRefusing:maxRefusing], fmt.Sprintf("%d more", more))
	}
	return strings.Join(by, ", ")
}

// refusals returns the warnings about packets that were refused: first one for each known sender,
// the worst first, then one about what hosts refused of unknown senders.
func refusals(all []record.Refused) (lines []string) {
	type sender struct {
		host          string
		edge, crossed rejected // refused by the network, and by hosts
	}
	var senders []*sender
	var strange rejected
	of := func(host string) *sender {
		k := slices.IndexFunc(senders, func(s *sender) bool { return s.host == host })
		if k < 0 {
			k, senders = len(senders), append(senders, &sender{host: host})
		}
		return senders[k]
	}
	for i := range all {
		switch r := &all[i]; {
		case r.By == record.ByNetwork:
			of(r.Host).edge.add(r)
		case r.From != "":
			of(r.From).crossed.add(r)
		default:
			strange.add(r)
		}
	}
	slices.SortStableFunc(senders, func(a, b *sender) int {
		return cmp.Compare(b.edge.packets+b.crossed.packets, a.edge.packets+a.crossed.packets)
	})
	for _, s := range senders {
		var said []string
		if n := s.edge.packets; n > 0 {
			said = append(said, fmt.Sprintf("%d packets that the network refused: %s", n, s.edge.why()))
		}
		if n := s.crossed.packets; n > 0 {
			said = append(said, fmt.Sprintf("%d packets that crossed the network and were refused by %s: %s", n,
				s.crossed.who(), s.crossed.why()))
		}
		lines = append(lines, s.host+" sent "+strings.Join(said, "; and "))
	}
	if strange.packets > 0 {
		lines = append(lines, fmt.Sprintf("%d packets crossed the network and were refused by %s: %s", strange.packets,
			strange.who(), strange.why()))
	}
	return lines
}
