package lab

import (
	"weft/fabric/queues"
	"weft/params"
	"weft/units"
)

// LinkSpec is what a link is made of, in each direction.
type LinkSpec struct {
	Rate      units.Bandwidth
	Delay     units.Time
	Loss      float64 // share of the packets that are corrupted, drawn for each
	BitErrors float64 // share of the bits that are; a packet is lost by one of them
	Duplicate float64 // share of the packets that come twice
	Reorder   float64 // share of the packets that come late, by at most ReorderBy
	ReorderBy units.Time
	Jitter    units.Time // mean of an exponential delay of every packet besides

	// Queues are those of the link's switch ports where the link or its tier overrides the lab's; nil: they are the lab's.
	// Shared, Routing and Light are always the lab's.
	Queues *queues.Queues
}

// Keys implements params.Section.
func (l *LinkSpec) Keys() []params.Key {
	return []params.Key{
		params.New("rate", params.Bandwidth(&l.Rate), "Per direction.").Default("100Gbps", "PC4 paper, section IV"),
		params.New("delay", params.Time(&l.Delay, 0, maxDelay), "One-way propagation.").Default("1us", "PC4 paper, section IV"),
		params.New("loss", params.Probability(&l.Loss), "Random packet loss, per direction.").Default("0", "ours"),
		params.New("bit_errors", params.Probability(&l.BitErrors), "Bit error rate; one error loses the packet.").Default("0", "ours"),
		params.New("duplicate", params.Probability(&l.Duplicate), "Packets delivered twice; not with PFC.").Default("0", "ours"),
		params.New("reorder", params.Probability(&l.Reorder), "Packets delivered late; not with PFC.").Default("0", "ours"),
		params.New("reorder_by", params.Time(&l.ReorderBy, units.Nanosecond, maxDelay), "Maximum lateness, uniform.").
			Default("10us", "ours: a queue of one round trip in the networks of the papers"),
		params.New("jitter", params.Deviation(&l.Jitter, maxJitter).Like(units.TimePattern(), "10us"),
			"Mean of an extra exponential delay per packet; not with PFC.").OrNone(),
	}
}

// inherit reads what a tier or a link may have of its own, and otherwise has from topology.link; of the rate only where it is rated.
func (s *section) inherit(link LinkSpec, rated bool) LinkSpec {
	own := link
	own.Rate = 0
	keys := own.Keys()
	for i := range keys {
		k := keys[i].Default("", "").OrNone()
		switch {
		case k.Name == "rate" && rated:
			k = k.Default(link.Rate.String(), "topology.link.rate")
		case k.Name == "delay":
			k = k.Default(link.Delay.String(), "topology.link.delay")
		}
		keys[i] = k
	}
	s.read(keysOf(keys))
	return own
}

// keysOf are keys as a section.
type keysOf []params.Key

// Keys implements params.Section.
func (k keysOf) Keys() []params.Key { return k }
