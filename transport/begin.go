package transport

import (
	"math"

	"weft/transport/cc"
	"weft/units"
)

// Beginning is the state of a sender at the start, with its parameters resolved for its path.
type Beginning struct {
	BaseRTT units.Time
	Packet  units.Bytes     // a full packet on the wire
	Window  units.Bytes     // 0: unlimited
	Rate    units.Bandwidth // 0: unpaced
	RTO     units.Time      // minimum retransmission timeout
	Values  []cc.Value      // further resolved parameters, see cc.Resolved
}

// Begin returns the state in which the sender of a connection starts. It returns an error if cfg or
// s is invalid.
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
	if n.failing != nil && n.failing.Err() != nil {
		return Beginning{}, n.failing.Err()
	}
	n.start(0)
	b := Beginning{
		BaseRTT: n.rto.baseRTT, Packet: n.mtu + n.perPacket, Window: limited(n.ctl.Window()), Rate: n.ctl.PacingRate(),
		RTO: n.rto.floor,
	}
	if r, ok := n.ctl.(cc.Resolved); ok {
		b.Values = r.Resolved()
	}
	return b, nil
}

// limited returns the window of a controller, or 0 if it does not limit anything.
func limited(window units.Bytes) units.Bytes {
	if window > math.MaxInt64/4 {
		return 0
	}
	return window
}
