package transport

import (
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/ccm"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/transport/cc/pc4"
	"weft/transport/cc/strack"
	"weft/transport/cc/swift"
	"weft/transport/wire"
	"weft/units"
)

// The verdict on an emulation compares lateness with the delay that a transport aims at.
func TestDelayTarget(t *testing.T) {
	const us = units.Microsecond
	pc, scaled, still := pc4.Defaults(), pc4.Defaults(), pc4.Defaults()
	scaled.TargetQtime, still.AdjustInterval = pc4.Scaled, 0
	sw, tight := params.Defaults[swift.Params](), params.Defaults[swift.Params]()
	sw.BaseTarget, sw.PerHop, sw.BoltCompat = 100*us, 5*us, false
	tight.BaseTarget, tight.PerHop, tight.BoltCompat = us, 0, false
	st := params.Defaults[strack.Params]()
	st.Target = 7 * us
	inside := ccm.Params{PC4: &pc, Timeout: units.Millisecond, Paths: 1, LastResort: "tag"}

	link := Path{Propagation: 2 * us, Rates: []units.Bandwidth{units.Gbps, units.Gbps}}
	cfg := Config{MTU: 1000, LineRate: units.Gbps}
	spec := func(kind string, p cc.Params) *Spec {
		return &Spec{ID: 1, Dst: 1, Kind: kind, CC: p, Forward: link, Reverse: link, NetRTT: 50 * us}
	}
	b, err := Begin(cfg, *spec("swift", sw))
	if err != nil {
		t.Fatal(err)
	}
	planned := spec("pc4", scaled)
	planned.Initial = units.Gbps / 2
	for _, x := range []struct {
		name string
		s    *Spec
		want units.Time
	}{
		{"PC4, a packet of which takes 8.8 us", spec("pc4", pc), units.Gbps.TransmitTime(b.Packet)},
		{"PC4 without adjustment", spec("pc4", still), 0},
		{"PC4 scaled, two flows planned", planned, 2 * link.Delay(b.Packet)},
		{"PC4 inside CCM", spec("ccm", inside), units.Gbps.TransmitTime(b.Packet + wire.CoordinationSize)},
		{"Swift", spec("swift", sw), 110*us - b.BaseRTT},
		{"Swift with a target below the idle round trip", spec("swift", tight), 0},
		{"STrack", spec("strack", st), 7 * us},
		{"spray at its default", spec("spray", params.Defaults[strack.Params]()), 50 * us},
		{"RoCE", spec("roce", params.Defaults[dcqcn.Params]()), 0},
		{"HPCC", spec("hpcc", params.Defaults[hpcc.Params]()), 0},
	} {
		if got, err := DelayTarget(cfg, x.s); got != x.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", x.name, got, err, x.want)
		}
	}
	if _, err := DelayTarget(cfg, spec("gossip", pc)); err == nil {
		t.Error("accepted an unknown transport")
	}
}
