package swift_test

import (
	"math"
	"testing"

	"weft/params"
	"weft/transport/cc/swift"
	"weft/units"
)

// scaled returns what flow scaling adds to the target for a window in packets.
func scaled(t *testing.T, p swift.Params, packets float64) units.Time {
	p.MaxWindow = units.MB
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
