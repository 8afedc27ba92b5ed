package emulate

import (
	"math"

	"weft/host"
	"weft/transport/wire"
	"weft/units"
)

// Capacity is what a machine can carry.
type Capacity struct {
	// PacketsPerSecond is how many data packets in a second of real time, carried end to end and each
	// acknowledged, would take all its processors.
	PacketsPerSecond float64 `json:"packets_per_second"`
	// LatenessNS is the worst p99 lateness at the working load, in real nanoseconds.
	LatenessNS float64 `json:"lateness_p99_ns"`
}

// busy says that the machine was so late that it probably had other things to do.
func (c Capacity) busy() bool { return c.LatenessNS > 1e6 }

// workingLoad is the share of its capacity that a machine is asked to carry. Beyond it queues of processes
// that want to run grow, and lateness with them.
const workingLoad = 0.65

// latenessMargin is how far below the ok bound the expected lateness is kept: it was measured on an otherwise
// idle machine.
const latenessMargin = 0.6

// AutoDilation returns the smallest dilation, to two significant digits, at which a machine of capacity c
// carries load data packets per second of lab time and is late by less than the verdict allows for a network
// with the given base round trip.
func AutoDilation(c Capacity, load float64, baseRTT units.Time) float64 {
	d := 1.0
	if c.PacketsPerSecond > 0 {
		d = max(d, load/(workingLoad*c.PacketsPerSecond))
	}
	if rtt := baseRTT.Nanoseconds(); rtt > 0 {
		d = max(d, c.LatenessNS/(latenessMargin*okLateness*rtt))
	}
	return roundUp(d)
}

// roundUp rounds up to two significant digits.
func roundUp(d float64) float64 {
	if d <= 1 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(d))-1)
	n := math.Ceil(d/unit - 1e-9)
	if unit < 1 {
		return n / math.Round(1/unit) // 1.3, not 1.3000000000000001
	}
	return n * unit
}

// Load returns how many data packets per second of lab time the plans can put on the network at most: every
// host that sends does so at its line rate, as far as the line rates of the hosts that receive allow.
func Load(plans []host.Plan) float64 {
	var sent, received float64
	for i := range plans {
		p := &plans[i]
		var out, in float64
		for k := range p.Items {
			it := &p.Items[k]
			wire := payload(it, p.Endpoint.MTU) + wire.DataSize + wire.Overhead
			rate := float64(p.Endpoint.LineRate) / float64(8*wire)
			if len(it.Conns) > 0 {
				out = max(out, rate)
			}
			if len(it.Expect) > 0 {
				in = max(in, rate)
			}
		}
		sent += out
		received += in
	}
	return min(sent, received)
}

// payload is how much a data packet of an item carries: a full packet, unless its messages are shorter.
func payload(it *host.Item, mtu units.Bytes) units.Bytes {
	message := it.Size
	switch it.Collective {
	case "all-to-all", "all-reduce":
		message /= units.Bytes(max(1, len(it.Ranks)))
	}
	if it.Chunk > 0 {
		message = min(message, it.Chunk)
	}
	return max(1, min(message, mtu))
}
