package emulate

import (
	"weft/fabric"
	"weft/host"
)

// Load returns the largest number of data packets per second of lab time that hosts can send to
// each other: what all send, limited by what all can receive.
func Load(hosts []host.Demand) float64 {
	all := total(hosts)
	return min(all.Sent, all.Received) + all.Messages/2 // a data packet has its acknowledgement
}

// total returns what all hosts can ask of a network together, without To.
func total(hosts []host.Demand) (all host.Demand) {
	for i := range hosts {
		all.Sent += hosts[i].Sent
		all.Received += hosts[i].Received
		all.Messages += hosts[i].Messages
	}
	return all
}

// CrossingCost is what a packet and its acknowledgement that cross from one part of a network to
// another cost each of the two, as a share of what a data packet with its acknowledgement costs
// that stays in one (docs/notes/2026-11-parts.md).
const CrossingCost = 0.5

// PartLoads returns what each part of a network must do, in data packets per second of lab time: a
// packet is half of its sender's part and half of its receiver's, and CrossingCost is added for
// each time that it leaves or enters a part. parts is the part of each node, below n.
func PartLoads(hosts []host.Demand, cfg *fabric.Config, parts []int32, n int) []float64 {
	// the shares of what hosts can send, and receive, that others can receive, and send
	all, arrives, comes := total(hosts), 1.0, 1.0
	if all.Sent > all.Received {
		arrives = all.Received / all.Sent
	} else if all.Received > 0 {
		comes = all.Sent / all.Received
	}
	loads := make([]float64, n)
	crossings := cfg.Crossings(parts, n)
	worst, mean := make([]float64, n), make([]float64, n)
	for h := range hosts {
		d := &hosts[h]
		loads[parts[h]] += (d.Sent*arrives + d.Received*comes + d.Messages) / 2
		clear(worst)
		for _, to := range d.To {
			clear(mean)
			for _, dst := range to {
				for k, c := range crossings(fabric.HostID(h), fabric.HostID(dst)) {
					mean[k] += c / float64(len(to))
				}
			}
			for k := range worst {
				worst[k] = max(worst[k], mean[k])
			}
		}
		for k := range worst {
			loads[k] += CrossingCost * d.Sent * arrives * worst[k]
		}
	}
	return loads
}
