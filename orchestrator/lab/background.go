package lab

import "weft/units"

// Background is traffic beside the workload: bursts to random hosts that nothing holds back. Load 0: there is none.
type Background struct {
	Load   float64     // share of each host's line rate
	Burst  int         // packets
	Packet units.Bytes // of each, on the wire
}

// background reads the section.
func (s *section) background() Background {
	defer s.close()
	var b Background
	b.Load, _ = s.field("load").share(0, 0.99)
	b.Burst = s.field("burst").or("16", "ours").integer(1, 10_000)
	b.Packet, _ = quantity(s.field("packet").or("1000B", "ours"), units.ParseBytes, 64, 9000)
	return b
}
