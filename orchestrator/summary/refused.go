package summary

import (
	"fmt"
	"slices"
	"strings"

	"weft/results/record"
)

// maxRefusing is the maximum number of hosts that the warning about refused packets names.
const maxRefusing = 4

// refusals returns the warnings about packets that were refused: first one for each host whose
// packets the network refused, the worst first, then one about what hosts refused.
func refusals(all []record.Refused) (lines []string) {
	type sender struct {
		host    string
		packets int64
		why     []string
	}
	var senders []*sender
	var crossed int64
	var by, reasons []string
	reason := map[string]int64{}
	for i := range all {
		r := &all[i]
		if r.By != record.ByNetwork {
			if crossed += r.Packets; !slices.Contains(by, r.Host) {
				by = append(by, r.Host)
			}
			if _, known := reason[r.Why]; !known {
				reasons = append(reasons, r.Why)
			}
			reason[r.Why] += r.Packets
			continue
		}
		k := slices.IndexFunc(senders, func(s *sender) bool { return s.host == r.Host })
		if k < 0 {
			k, senders = len(senders), append(senders, &sender{host: r.Host})
		}
		senders[k].packets += r.Packets
		senders[k].why = append(senders[k].why, fmt.Sprintf("%d %s", r.Packets, r.Why))
	}
	slices.SortStableFunc(senders, func(a, b *sender) int { return cmpSeq(b.packets, a.packets) })
	for _, s := range senders {
		lines = append(lines, fmt.Sprintf("%s sent %d packets that the network refused: %s", s.host, s.packets,
			strings.Join(s.why, ", ")))
	}
	if crossed == 0 {
		return lines
	}
	for i, why := range reasons {
		reasons[i] = fmt.Sprintf("%d %s", reason[why], why)
	}
	if more := len(by) - maxRefusing; more > 0 {
		by = append(by[:maxRefusing:maxRefusing], fmt.Sprintf("%d more", more))
	}
	return append(lines, fmt.Sprintf("%d packets crossed the network and were refused by %s: %s", crossed,
		strings.Join(by, ", "), strings.Join(reasons, ", ")))
}
