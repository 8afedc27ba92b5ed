package emulate

import (
	"fmt"
	"math"
	"slices"

	"weft/collectives/schedule"
	"weft/host"
	"weft/results/record"
	"weft/transport/wire"
	"weft/units"
)

// Capacity is what a machine can carry.
type Capacity struct {
	// PacketsPerSecond is how many data packets in a second of real time, carried end to end and each
	// acknowledged, would take all its processors.
	PacketsPerSecond float64 `json:"packets_per_second"`
	// Lateness is how late the machine is at several loads, in order of the load.
	Lateness []LatenessAt `json:"lateness"`
	// Foreign is the share of the processors that other programs took while this was measured.
	Foreign float64 `json:"foreign_cpu"`
	// Ordinary says that the kernel granted no real-time scheduling: other programs disturb a run more than they
	// disturbed the measurement, if they start later.
	Ordinary bool `json:"ordinary_scheduling,omitempty"`
}

// LatenessAt is how late a machine is at one load.
type LatenessAt struct {
	PacketsPerSecond float64 `json:"packets_per_second"` // data packets offered per second of real time
	P99NS            float64 `json:"p99_ns"`             // the worst of the verdict's p99s, in real nanoseconds
}

// busyForeign is the share of the processors which, taken by others, makes what is measured theirs as much as ours.
const busyForeign = 0.15

// busy says that the machine had other things to do when it was measured.
func (c Capacity) busy() bool { return c.Foreign > busyForeign }

// The share of its capacity that a machine is asked to carry, with real-time scheduling and without. Beyond the first
// queues of processes that want to run grow, and lateness with them. Beyond the second the fabric, through which
// all packets pass, has had its fair share of a processor as soon as another program wants it too, and waits for
// milliseconds.
const (
	workingLoad  = 0.65
	ordinaryLoad = 0.2
)

// working is the share of the capacity that is asked for.
func (c Capacity) working() float64 {
	if c.Ordinary {
		return ordinaryLoad
	}
	return workingLoad
}

// hopelessLoad is the share of its capacity from which on a machine spends its time on retransmissions. The capacity is
// what fills the processors at a load below it; at a higher one a packet costs a little less.
const hopelessLoad = 2

// How far below the ok bound the expected lateness is kept, with real-time scheduling and without: it was measured
// with an even load, and with whatever else the machine did just then.
const (
	latenessMargin = 0.6
	ordinaryMargin = 0.3
)

// margin is the share of the ok bound that the expected lateness may take.
func (c Capacity) margin() float64 {
	if c.Ordinary {
		return ordinaryMargin
	}
	return latenessMargin
}

// lateAt returns the lateness to expect at a load, in real nanoseconds: between two loads that were measured on the
// line between them, outside of all as at the nearest. More load never makes it less late: where a smaller load was
// found later, something else disturbed it.
func (c Capacity) lateAt(packetsPerSecond float64) float64 {
	var above LatenessAt
	for i, l := range slices.Backward(c.Lateness) {
		if i == len(c.Lateness)-1 {
			above = l
		}
		l.P99NS = min(l.P99NS, above.P99NS)
		if l.PacketsPerSecond <= packetsPerSecond {
			part := 1.0
			if above.PacketsPerSecond > l.PacketsPerSecond {
				part = min(1, (packetsPerSecond-l.PacketsPerSecond)/(above.PacketsPerSecond-l.PacketsPerSecond))
			}
			return l.P99NS + part*(above.P99NS-l.P99NS)
		}
		above = l
	}
	return above.P99NS
}

// hiccup is what an ordinary machine is late by every few hundred wake-ups, in real nanoseconds, whatever runs on it: a
// short lab has so few that one in a hundred of them is such a one. It must be ok.
const hiccup = 1e6

// busyStretch is how much longer a lab may take, at most, because other programs made the machine late when it was
// measured: they come and go, and the verdict tells.
const busyStretch = 2

// AutoDilation returns the smallest dilation, to two significant digits, at which a machine of capacity c
// carries load data packets per second of lab time and is, at that load, late by less than the verdict allows for
// a network with the given base round trip: at least by a hiccup.
func AutoDilation(c Capacity, load float64, baseRTT units.Time) float64 {
	d := 1.0
	if c.PacketsPerSecond > 0 {
		d = roundUp(load / (c.working() * c.PacketsPerSecond))
	}
	allowed := c.margin() * record.OKLateness * baseRTT.Nanoseconds()
	if allowed <= 0 {
		return d
	}
	if len(c.Lateness) > 0 {
		d = max(d, roundUp(hiccup/(record.OKLateness*baseRTT.Nanoseconds())))
	}
	most := math.Inf(1)
	if c.busy() {
		most = roundUp(busyStretch * d)
	}
	for d < most && c.lateAt(load/d) > allowed*d*(1+1e-9) {
		d = roundUp(d * 1.001) // the next
	}
	return d
}

// Certain says whether CheckDilation would find no fault with a dilation on any machine of today, so that none needs to be
// measured.
func Certain(d, load float64) bool { return d > 0 && load/d <= certain() }

// CheckDilation returns an error when it is hopeless to carry load data packets per second of lab time at
// dilation d on a machine of capacity c: it names the smallest dilation that AutoDilation would choose. What is
// merely too much, and will be late, is allowed: the verdict says so afterwards.
func CheckDilation(c Capacity, d, load float64, baseRTT units.Time) error {
	if c.PacketsPerSecond <= 0 || d <= 0 || load/d <= hopelessLoad*c.PacketsPerSecond {
		return nil
	}
	return fmt.Errorf("dilation %g asks for %.0f data packets/s and this machine carries %.0f at most: use dilation %g or more, or --engine sim",
		d, load/d, c.PacketsPerSecond, AutoDilation(c, load, baseRTT))
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
// host that sends does so at its line rate, as far as the line rates of the hosts that receive allow. Collectives of little
// data do not fill it: a repetition lasts for a round trip at least, in which its sends are acknowledged.
func Load(plans []host.Plan) float64 {
	var sent, received, messages float64
	for i := range plans {
		p := &plans[i]
		if p.Clock != nil {
			messages += p.Clock.Rate()
		}
		var out, in float64
		for k := range p.Items {
			it := &p.Items[k]
			wire := payload(it, p.Endpoint.MTU) + wire.DataSize + wire.Overhead
			rate := float64(p.Endpoint.LineRate) / float64(8*wire)
			sends, receives := perRepetition(it, p.Endpoint.MTU)
			trip := roundTrip(p)
			if len(it.Conns) > 0 {
				out = max(out, min(rate, sends/trip))
			}
			if len(it.Expect) > 0 {
				in = max(in, min(rate, receives/trip))
			}
		}
		sent += out
		received += in
	}
	return min(sent, received) + messages/2 // a data packet has its acknowledgement
}

// perRepetition is about how many data packets a rank sends and receives in each repetition of an item.
func perRepetition(it *host.Item, mtu units.Bytes) (sends, receives float64) {
	v, err := schedule.Volume(it.Spec(), it.Rank)
	if err != nil {
		return math.Inf(1), math.Inf(1)
	}
	packets := func(messages int, bytes units.Bytes) float64 {
		each := float64(bytes) / float64(max(1, messages))
		return float64(messages) * math.Ceil(each/float64(mtu))
	}
	return packets(v.Sends, v.Sent), packets(v.Receives, v.Received)
}

// roundTrip is the least that a packet and its acknowledgement take on any connection of a host, in seconds of lab time.
func roundTrip(p *host.Plan) float64 {
	least := units.Never
	for i := range p.Conns {
		least = min(least, p.Conns[i].Forward.Propagation+p.Conns[i].Reverse.Propagation)
	}
	return float64(least) / float64(units.Second)
}

// payload is how much a data packet of an item carries: a full packet, unless its messages are shorter.
func payload(it *host.Item, mtu units.Bytes) units.Bytes {
	message := it.Size
	if schedule.Of(it.Collective).Blocks {
		message /= units.Bytes(max(1, len(it.Ranks)))
	}
	if it.Chunk > 0 {
		message = min(message, it.Chunk)
	}
	return max(1, min(message, mtu))
}
