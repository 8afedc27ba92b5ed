package emulate

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/fabric"
	"weft/host"
	"weft/internal/testenv"
	"weft/params"
	"weft/transport/cc/dcqcn"
	"weft/transport/cc/hpcc"
	"weft/units"
)

// twoToOne returns a star in which hosts 0 and 1 send to host 2 by a transport, over lossless
// Ethernet.
func twoToOne(kind string, packets int, dilation float64) Experiment {
	x := star(3, dilation)
	x.Fabric.Switches[0].Buffer.Total = 4 * units.MB
	for i := range x.Fabric.Ports {
		if p := &x.Fabric.Ports[i]; int(p.To) == x.Fabric.Hosts {
			p.PFC[1] = fabric.PFCConfig{On: true, Xoff: 100 * units.KB, Xon: 92 * units.KB, Headroom: 250 * units.KB}
		}
	}
	x.work(host.Item{Collective: "incast", Algorithm: "direct", Root: 2, Size: units.Bytes(packets) * benchMTU,
		Repeat: 1},
		func(src, dst int) bool { return src < 2 && dst == 2 }, 2)
	for h := range x.Plans {
		for i := range x.Plans[h].Conns {
			c := &x.Plans[h].Conns[i]
			c.Kind, c.CC = kind, params.Defaults[dcqcn.Params]()
			if kind == "hpcc" {
				c.CC = params.Defaults[hpcc.Params]()
			}
		}
	}
	return x
}

// lastEnd returns the end of the last flow.
func lastEnd(flows []host.Flow) units.Time {
	return slices.MaxFunc(flows, func(a, b host.Flow) int { return int(a.Acked - b.Acked) }).Acked
}

// within reports whether two spans differ by less than a share of the second.
func within(a, b units.Time, share float64) bool {
	return math.Abs(float64(a-b)) <= share*float64(b)
}

// Without congestion control PFC alone holds two senders back: nothing is lost, the flows end when
// they do in the simulator, and paused hosts keep their packets, so that no round trip is longer
// than the queue of the switch.
func TestPrivPFC(t *testing.T) { bothNICs(t, checkPFC) }

func checkPFC(t *testing.T, bypass bool) {
	const packets = 500
	x := twoToOne("roce", packets, 4000)
	x.Processes.Bypass = bypass
	want := lastEnd(simulate(t, x))
	checkOnTime(t, x, func(o *Outcome) error {
		if o.Fabric.Pauses == 0 || o.Fabric.Dropped != 0 || o.Transport.Retransmits != 0 {
			t.Errorf("%d pauses, %d drops, %d retransmits", o.Fabric.Pauses, o.Fabric.Dropped, o.Transport.Retransmits)
		}
		got := lastEnd(o.Flows)
		// What came by each of two lines waits, at most 100 KB and what was under way when the
		// pause was sent.
		limit := x.BaseRTT + benchRate.TransmitTime(2*(100*units.KB+benchRate.BytesIn(2*benchDelay)+2*(benchMTU+102)))
		t.Logf("over at %v, simulated %v; round trip %v, at most %v; NIC held %d bytes", got, want,
			o.RTT.Quantile(0.5), o.RTT.Quantile(1), o.Report.MaxNIC)
		if !within(got, want, 0.02) {
			return fmt.Errorf("over at %v, simulated at %v", got, want)
		}
		if o.RTT.Quantile(0.99) > limit+limit/20 {
			return fmt.Errorf("round trips of up to %v, want at most %v", o.RTT.Quantile(0.99), limit)
		}
		// A pause that arrives a millisecond late lets three packets more into the NIC.
		if o.Report.MaxNIC > 32*units.KB {
			return fmt.Errorf("%d bytes waited in a NIC: its host did not know of the pause", o.Report.MaxNIC)
		}
		return nil
	})
}

// HPCC needs what the switches write: it keeps their queues short, as it does in the simulator.
func TestPrivTelemetry(t *testing.T) { bothNICs(t, checkTelemetry) }

func checkTelemetry(t *testing.T, bypass bool) {
	x := twoToOne("hpcc", 500, 4000)
	x.Processes.Bypass = bypass
	want := lastEnd(simulate(t, x))
	checkOnTime(t, x, func(o *Outcome) error {
		got := lastEnd(o.Flows)
		t.Logf("over at %v, simulated %v; round trip %v, p99 %v", got, want, o.RTT.Quantile(0.5), o.RTT.Quantile(0.99))
		if o.Fabric.Pauses != 0 || o.Fabric.Dropped != 0 {
			t.Errorf("%d pauses, %d drops", o.Fabric.Pauses, o.Fabric.Dropped)
		}
		if !within(got, want, 0.02) {
			return fmt.Errorf("over at %v, simulated at %v", got, want)
		}
		if rtt := o.RTT.Quantile(0.5); rtt > x.BaseRTT+x.BaseRTT/4 {
			return fmt.Errorf("round trips of %v with a base of %v", rtt, x.BaseRTT)
		}
		return nil
	})
}

// The address that pauses come from is no host's.
func TestSwitchesHaveAnAddressOfTheirOwn(t *testing.T) {
	x := star(3, 1)
	if got := x.switchAddr(); got != [4]byte{10, 255, 255, 254} {
		t.Errorf("got %v", got)
	}
	x.Prefix = 30
	x.Addrs[2] = netip.AddrFrom4([4]byte{10, 0, 0, 2})
	if got := x.switchAddr(); got != [4]byte{} {
		t.Errorf("got %v, want none: a host has it", got)
	}
}

// makeRing turns a star of three hosts into a ring of three switches whose routes all go round in
// the same direction.
func makeRing(x *Experiment) {
	line := x.Fabric.Ports[0]
	x.Fabric.Ports, x.Fabric.Switches = nil, nil
	link := func(a, b fabric.NodeID) {
		there, back := line, line
		there.From, there.To, back.From, back.To = a, b, b, a
		for _, p := range []*fabric.PortConfig{&there, &back} {
			if p.To >= 3 {
				p.PFC[1] = fabric.PFCConfig{On: true, Xoff: 20 * units.KB, Xon: 10 * units.KB, Headroom: 250 * units.KB}
			}
		}
		x.Fabric.Ports = append(x.Fabric.Ports, there, back)
	}
	for i := range fabric.NodeID(3) {
		link(i, 3+i)
	}
	for i := range fabric.NodeID(3) {
		link(3+i, 3+(i+1)%3)
	}
	for i, name := range []string{"north", "east", "west"} {
		sw := fabric.SwitchConfig{
			Name: name, Groups: [][]int32{{int32(2*i + 1)}, {int32(6 + 2*i)}}, Route: []int32{1, 1, 1},
			Buffer: fabric.BufferConfig{Total: 4 * units.MB},
		}
		sw.Route[i] = 0
		x.Fabric.Switches = append(x.Fabric.Switches, sw)
	}
}

// Switches that wait for each other: the error names the waiting hosts and ports.
func TestPrivDeadlockSaysWhoWaits(t *testing.T) {
	testenv.NeedNamespaces(t)
	x := star(3, 2000)
	makeRing(&x)
	x.Stall = 2 * time.Second
	x.work(host.Item{Collective: "permute", Algorithm: "direct", Permute: []int{2, 0, 1}, Size: 500 * benchMTU,
		Repeat: 1},
		func(src, dst int) bool { return dst == (src+2)%3 }, 1)
	for h := range x.Plans {
		for i := range x.Plans[h].Conns {
			c := &x.Plans[h].Conns[i]
			c.Kind, c.CC, c.RTOMin = "roce", params.Defaults[dcqcn.Params](), units.Second
		}
	}
	_, err := Run(t.Context(), x)
	if err == nil {
		t.Fatal("there was no deadlock")
	}
	for _, want := range []string{"nothing has moved for ", "host h0: item 0 (permute",
		"\n  north to east (port 6): class 1 paused since ", "h0 to north (port 0)", "; east holds "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "north to east"); n != 1 {
		t.Errorf("a port is named %d times", n)
	}
}
