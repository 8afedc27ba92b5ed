package lab

import (
	"weft/params"
	"weft/units"
)

// Background is traffic besides the workload: bursts to random hosts, without congestion control.
type Background struct {
	Load   float64     // share of each host's line rate; 0: there is no background traffic
	Burst  int         // packets per burst
	Packet units.Bytes // size of each packet on the wire
}

// Keys implements params.Section.
func (b *Background) Keys() []params.Key {
	return []params.Key{
		params.New("load", params.Share(&b.Load, 0, 0.99), "Of each host's line rate."),
		params.New("burst", params.Integer(&b.Burst, 1, 10_000), "Packets per burst, sent at line rate.").
			Default("16", "ours"),
		params.New("packet", params.Bytes(&b.Packet, 64, 9000), "Wire size of each packet.").Default("1000B", "ours"),
	}
}
