package measure

import (
	"math"
	"slices"
	"time"

	"weft/units"
)

// Delay returns a quantile (0 to 1) of the one-way delays of the packets that came; 0 when none did.
func Delay(packets []Packet, quantile float64) time.Duration {
	var d []int64
	for _, p := range packets {
		if p.Arrived != 0 {
			d = append(d, p.Arrived-p.Sent)
		}
	}
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return time.Duration(d[int(quantile*float64(len(d)-1))])
}

// Rate returns the rate at which packets came that occupy size bytes each, from the arrival of packet skip to the last one: the slope of
// the arrivals over their number, by least squares, so that a late stamp at one end weighs little. 0 when fewer than two came.
func Rate(packets []Packet, skip int, size units.Bytes) units.Bandwidth {
	var at []int64
	for _, p := range packets[min(skip, len(packets)):] {
		if p.Arrived != 0 {
			at = append(at, p.Arrived)
		}
	}
	if len(at) < 2 {
		return 0
	}
	slices.Sort(at)
	var sx, sy float64
	for i, t := range at {
		sx += float64(i)
		sy += float64(t - at[0])
	}
	n := float64(len(at))
	mx, my := sx/n, sy/n
	var xx, xy float64
	for i, t := range at {
		dx := float64(i) - mx
		xx += float64(dx * dx)
		xy += float64(dx * (float64(t-at[0]) - my))
	}
	if xy <= 0 {
		return 0
	}
	perPacket := xy / xx // ns
	return units.Bandwidth(math.Round(float64(8*size) * 1e9 / perPacket))
}

// Lost returns how many packets did not come.
func Lost(packets []Packet) int {
	n := 0
	for _, p := range packets {
		if p.Arrived == 0 {
			n++
		}
	}
	return n
}

// Sample is a packet with the queue that it found.
type Sample struct {
	Queue     units.Bytes // estimated
	Marked    bool
	AfterLoss bool // the packet before it did not come, or was lost behind the queue: whether it had a mark is not known
}

// Queues says for each packet that came how many bytes waited as it was sent: those of the packets before it that had not begun
// to be transmitted. One begins idle before it arrives: the delay of an empty link. It is right to a packet on a link that keeps
// the order, whether or not the link keeps its rate. Packets occupy size bytes in a queue. What was lost is taken to have waited nowhere.
func Queues(packets []Packet, idle time.Duration, size units.Bytes) []Sample {
	var out []Sample
	after := false
	gone := 0 // packets up to it had begun
	lost := 0 // of those from it on up to this one
	for i, p := range packets {
		if p.Arrived == 0 {
			lost++
			after = true
			continue
		}
		for gone < i && packets[gone].Arrived-int64(idle) <= p.Sent {
			if packets[gone].Arrived == 0 {
				lost--
			}
			gone++
		}
		if p.Unseen {
			after = true
			continue
		}
		out = append(out, Sample{Queue: units.Bytes(i-gone-lost) * size, Marked: p.Marked, AfterLoss: after})
		after = false
	}
	return out
}

// waited gives packets that were lost behind a queue the times at which they would have come, between those of their neighbours that did.
// Those at the end that nobody followed stay lost.
func waited(packets []Packet) {
	last := -1 // that came
	for i := range packets {
		if packets[i].Arrived == 0 {
			continue
		}
		for k := last + 1; k < i; k++ {
			packets[k].Unseen = true
			if packets[k].Arrived = packets[i].Arrived; last >= 0 {
				packets[k].Arrived = packets[last].Arrived + (packets[i].Arrived-packets[last].Arrived)*int64(k-last)/int64(i-last)
			}
		}
		last = i
	}
}
