package host

import (
	"math"

	"weft/collectives/schedule"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Demand is the most that a host can ask of a network, in packets per second of lab time.
type Demand struct {
	Sent, Received float64 // data packets
	Messages       float64 // of its clock

	// To is, for each item, the hosts among which the data packets that it sends are divided.
	To [][]transport.HostID
}

// Demand returns what the host of a plan can send and receive: line rate, or less in small
// collectives, since a repetition lasts at least one round trip, in which its packets are
// acknowledged.
func (p *Plan) Demand() (d Demand) {
	if p.Clock != nil {
		d.Messages = p.Clock.Rate()
	}
	trip := roundTrip(p)
	for k := range p.Items {
		it := &p.Items[k]
		rate := PacketRate(p.Endpoint.LineRate, payload(it, p.Endpoint.MTU))
		sends, receives := perRepetition(it, p.Endpoint.MTU)
		if len(it.Conns) > 0 {
			d.Sent = max(d.Sent, min(rate, sends/trip))
			to := make([]transport.HostID, len(it.Conns))
			for i, c := range it.Conns {
				to[i] = it.Ranks[c.Rank]
			}
			d.To = append(d.To, to)
		}
		if len(it.Expect) > 0 {
			d.Received = max(d.Received, min(rate, receives/trip))
		}
	}
	return d
}

// Demands returns what the hosts of plans can send and receive.
func Demands(plans []Plan) []Demand {
	all := make([]Demand, len(plans))
	for i := range plans {
		all[i] = plans[i].Demand()
	}
	return all
}

// PacketRate returns the data packets with some payload that a line carries per second.
func PacketRate(line units.Bandwidth, payload units.Bytes) float64 {
	return float64(line) / float64(8*(payload+wire.DataSize+wire.Overhead))
}

// perRepetition returns the approximate number of data packets that a rank sends and receives in
// each repetition of an item.
func perRepetition(it *Item, mtu units.Bytes) (sends, receives float64) {
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

// roundTrip returns the smallest round trip of a host's connections, in seconds of lab time.
func roundTrip(p *Plan) float64 {
	shortest := units.Never
	for i := range p.Conns {
		shortest = min(shortest, p.Conns[i].Forward.Propagation+p.Conns[i].Reverse.Propagation)
	}
	return float64(shortest) / float64(units.Second)
}

// payload returns the payload of an item's data packets: that of a full packet, unless its messages
// are shorter.
func payload(it *Item, mtu units.Bytes) units.Bytes {
	message := it.Size
	if schedule.Of(it.Collective).Blocks {
		message /= units.Bytes(max(1, len(it.Ranks)))
	}
	if it.Chunk > 0 {
		message = min(message, it.Chunk)
	}
	return max(1, min(message, mtu))
}
