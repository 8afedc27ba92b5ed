package measure

import (
	"math"
	"slices"
	"time"

	"weft/units"
)

// Delay returns a quantile (0 to 1) of the one-way delays of the packets that arrived, or 0 if none
// did.
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

// Rate returns the rate at which packets of size bytes arrived, from packet skip to the last. It is
// the least-squares slope of the arrival times over their index, so that a late timestamp at either
// end has little weight. The result is 0 if fewer than two packets arrived.
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

// Lost returns the number of packets that did not arrive.
func Lost(packets []Packet) int {
	n := 0
	for _, p := range packets {
		if p.Arrived == 0 {
			n++
		}
	}
	return n
}

// Sample is a packet with the queue length that it found.
type Sample struct {
	Queue     units.Bytes // estimated
	Marked    bool
	AfterLoss bool // the packet before it was lost, so its mark is unknown
}

// Queues estimates for each packet that arrived how many bytes were queued when it was sent: those
// of earlier packets whose transmission had not started. A transmission starts idle before the
// packet arrives, where idle is the delay of an empty link. The estimate is exact to a packet if
// the link keeps packets in order, even if its rate varies. size is a packet's size in a queue.
// Lost packets count as never queued.
func Queues(packets []Packet, idle time.Duration, size units.Bytes) []Sample {
	var out []Sample
	after := false
	gone := 0 // index of the first packet whose transmission had not started
	lost := 0 // lost packets from gone to this one
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

// Left estimates for each packet that arrived how many bytes it left behind in the queue when its
// transmission started, idle before it arrived: those of later packets that had been sent by then.
// It is otherwise like Queues.
func Left(packets []Packet, idle time.Duration, size units.Bytes) []Sample {
	var out []Sample
	after := false
	behind := 0 // index behind the last packet that was sent when this one's transmission started
	for i, p := range packets {
		if p.Arrived == 0 || p.Unseen {
			after = true
			continue
		}
		for behind < len(packets) && packets[behind].Sent <= p.Arrived-int64(idle) {
			behind++
		}
		n := 0
		for k := i + 1; k < behind; k++ {
			if packets[k].Arrived != 0 {
				n++
			}
		}
		out = append(out, Sample{Queue: units.Bytes(n) * size, Marked: p.Marked, AfterLoss: after})
		after = false
	}
	return out
}

// waited assigns arrival times to packets that were lost behind a queue, interpolated between the
// neighbours that arrived. Lost packets at the end stay lost.
func waited(packets []Packet) {
	last := -1 // last packet that arrived
	for i := range packets {
		if packets[i].Arrived == 0 {
			continue
		}
		for k := last + 1; k < i; k++ {
			packets[k].Unseen = true
			if packets[k].Arrived = packets[i].Arrived; last >= 0 {
				packets[k].Arrived = packets[last].Arrived +
					(packets[i].Arrived-packets[last].Arrived)*int64(k-last)/int64(i-last)
			}
		}
		last = i
	}
}
