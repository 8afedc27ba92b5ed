package transport

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// Beginning is what a connection starts with, and what its parameters came to on its path.
type Beginning struct {
	BaseRTT units.Time
	Packet  units.Bytes     // a full one on the wire
	Window  units.Bytes     // 0: unlimited
	Rate    units.Bandwidth // 0: unpaced
	RTO     units.Time      // least retransmission timeout
	Values  []cc.Value
}

// Begin returns how the connection that a Spec describes begins at its sender.
func Begin(cfg Config, s Spec) (Beginning, error) {
	err := cfg.check()
	if err == nil {
		err = s.check(s.Src)
	}
	if err != nil {
		return Beginning{}, err
	}
	sch, err := newScheme(&s)
	if err != nil {
		return Beginning{}, err
	}
	n := newSender(cfg, &s, sch)
	n.start(0)
	b := Beginning{
		BaseRTT: n.rto.baseRTT, Packet: n.mtu + n.perPacket, Window: n.ctl.Window(), Rate: n.ctl.PacingRate(), RTO: n.rto.floor,
	}
	if b.Window > math.MaxInt64/4 {
		b.Window = 0
	}
	if r, ok := n.ctl.(cc.Resolved); ok {
		b.Values = r.Resolved()
	}
	return b, nil
}
