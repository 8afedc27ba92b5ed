package swift_test

import (
	"math"
	"testing"

	"weft/params"
	"weft/transport/cc"
	"weft/transport/cc/swift"
	"weft/units"
)

// scaled returns what flow scaling adds to the target for a window in packets.
func scaled(t *testing.T, p swift.Params, packets float64) units.Time {
	p.MaxWindow, p.BaseTarget = units.MB, 10*us
	c := newScript(t, p, packets)
	return c.s.Target() - p.BaseTarget - 2*p.PerHop
}

// Section 3.5: "α = fs_range/(1/√fs_min − 1/√fs_max), β = −α/√fs_max", clamped to [0, fs_range].
func TestFlowScaling(t *testing.T) {
	htsim := params.Defaults[swift.Params]() // csg-htsim's range of windows
	htsim.FSMax = 100
	for _, c := range []struct {
		p       swift.Params
		packets float64
		want    units.Time // ns
	}{
		{params.Defaults[swift.Params](), 0.05, 100000}, {params.Defaults[swift.Params](), 0.1, 100000}, {params.Defaults[swift.Params](), 1, 30244},
		{params.Defaults[swift.Params](), 4, 14114}, {params.Defaults[swift.Params](), 10, 8185}, {params.Defaults[swift.Params](), 64, 2016},
		{params.Defaults[swift.Params](), 100, 1210}, {params.Defaults[swift.Params](), 256, 0}, {params.Defaults[swift.Params](), 900, 0},
		{htsim, 1, 29390}, {htsim, 10, 7061}, {htsim, 64, 816},
	} {
		if got := scaled(t, c.p, c.packets); math.Abs(got.Nanoseconds()-float64(c.want)) > 1 {
			t.Errorf("up to %v packets: %v adds %v, want %d ns", c.p.FSMax, c.packets, got, c.want)
		}
	}
}

// Bolt's simulator subtracts a β that is negative already: 2·|β| too much at every window, 4.03 us.
func TestBoltCompatTarget(t *testing.T) {
	p := params.Defaults[swift.Params]()
	p.BoltCompat = true
	for _, packets := range []float64{1, 4, 10, 64, 256} {
		got := scaled(t, p, packets) - scaled(t, params.Defaults[swift.Params](), packets)
		if math.Abs(got.Nanoseconds()-4032) > 1 {
			t.Errorf("%v packets: %v above the paper's target, want 4.032 us", packets, got)
		}
	}
	if got := scaled(t, p, 0.1); got != 100*us {
		t.Errorf("0.1 packets: %v, want the range", got)
	}
}

// csg-htsim takes the root of an integer quotient: windows of 1.9 packets would get the target of
// 1.
func TestFlowScalingSeesFractionsOfAPacket(t *testing.T) {
	if a, b := scaled(t, params.Defaults[swift.Params](), 1), scaled(t, params.Defaults[swift.Params](), 1.9); a-b < 5*us {
		t.Errorf("the target falls by %v from 1 to 1.9 packets", a-b)
	}
}

// Section 3.5: the target grows by ħ with every hop.
func TestTopologyScaling(t *testing.T) {
	p := simple()
	for hops, want := range map[int]units.Time{0: 10 * us, 2: 12 * us, 6: 16 * us} {
		l := path()
		l.Hops = hops
		if got := swift.NewSender(p, l).Target(); got != want {
			t.Errorf("%d hops: target %v, want %v", hops, got, want)
		}
	}
}

// With base_target: auto a window that fills a path has a target above the base RTT, with room for
// some packets, on every path; where Bolt's 10 us suffice it is Bolt's. A written target without
// that room is named.
func TestTargetFitsThePath(t *testing.T) {
	bolt := params.Defaults[swift.Params]()
	bolt.BaseTarget = 10 * us
	same, misfits := 0, 0
	for _, line := range []units.Bandwidth{gbps, 10 * gbps, 100 * gbps, 800 * gbps} {
		for _, delay := range []units.Time{10 * units.Nanosecond, us, 10 * us, units.Millisecond} {
			for _, size := range []units.Bytes{256, 1078, 9078} {
				packet := line.TransmitTime(size)
				l := cc.Link{Line: line, MTU: size - 78, Packet: size, Hops: 2, BaseRTT: 4*delay + 2*packet}
				auto := swift.NewSender(params.Defaults[swift.Params](), l)
				if auto.Target() < l.BaseRTT+4*packet-2 { // ps of rounding
					t.Errorf("%v, %v, %v: target %v, base RTT %v", line, delay, size, auto.Target(), l.BaseRTT)
				}
				fixed := swift.NewSender(bolt, l)
				if fixed.Target() == auto.Target() {
					same++
				}
				found := bolt.Misfits(cc.Network{Link: l})
				named := map[string]bool{}
				for _, m := range found {
					named[m.Key] = true
				}
				if short := fixed.Target() <= l.BaseRTT; short != named["base_target"] {
					t.Errorf("%v, %v, %v: target %v, base RTT %v: %v", line, delay, size, fixed.Target(), l.BaseRTT, found)
				}
				if slow := l.BDP() > 501*size; slow != named["ai"] && l.BDP() > 499*size {
					t.Errorf("%v, %v, %v: a path of %v: %v", line, delay, size, l.BDP(), found)
				}
				misfits += len(found)
			}
		}
	}
	if same == 0 || misfits == 0 {
		t.Errorf("the grid has %d paths that suit Bolt's target, and %d that do not", same, misfits)
	}
	if found := params.Defaults[swift.Params]().Misfits(cc.Network{Link: path()}); found != nil {
		t.Errorf("by default: %v", found)
	}
}

// Windows are regained in few round trips where a slow link, or the largest window, keeps them
// small.
func TestRegainOfSmallWindows(t *testing.T) {
	l := cc.Link{Line: 1000 * gbps, MTU: 1000, Packet: 1078, Hops: 2, BaseRTT: 10 * us}
	p := params.Defaults[swift.Params]()
	small, slow := p, l
	small.MaxWindow, slow.Slowest = 100*l.Packet, 100*gbps
	for _, x := range []struct {
		name string
		p    swift.Params
		n    cc.Network
		want int
	}{
		{"a path of 1160 packets", p, cc.Network{Link: l}, 1},
		{"a slow link", p, cc.Network{Link: slow}, 0},
		{"a small window", small, cc.Network{Link: l}, 0},
	} {
		if found := x.p.Misfits(x.n); len(found) != x.want {
			t.Errorf("%s: %v", x.name, found)
		}
	}
}
