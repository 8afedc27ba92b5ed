package emulate

import (
	"math"
	"slices"
	"testing"

	"weft/fabric"
	"weft/host"
	"weft/transport"
	"weft/units"
)

// onePlan returns the plan of a host at 100 Gb/s with one item.
func onePlan(it host.Item) host.Plan {
	return host.Plan{Endpoint: transport.Config{MTU: 4096, LineRate: 100 * units.Gbps}, Items: []host.Item{it}}
}

func TestLoad(t *testing.T) {
	const line = 100e9 / 8 / (4096 + 56 + 46) // packets per second
	some := []host.Peer{{Rank: 1}}
	two := make([]transport.HostID, 2)
	send := host.Item{Collective: "incast", Size: units.MB, Ranks: two, Conns: some}
	take := host.Item{Collective: "incast", Size: units.MB, Ranks: two, Expect: some}
	both := host.Item{Collective: "all-to-all", Size: units.MB, Ranks: make([]transport.HostID, 8), Conns: some,
		Expect: some}
	small := both
	small.Size = 8 * 100
	chunked := both
	chunked.Chunk = 1000
	for _, c := range []struct {
		name  string
		plans []host.Plan
		want  float64
	}{
		{"incast is bounded by its receiver", []host.Plan{onePlan(send), onePlan(send), onePlan(take)}, line},
		{"broadcast by its sender", []host.Plan{onePlan(send), onePlan(take), onePlan(take)}, line},
		{"all-to-all by the sum of lines", []host.Plan{onePlan(both), onePlan(both), onePlan(both)}, 3 * line},
		{"idle hosts add nothing", []host.Plan{onePlan(both), onePlan(both), {}}, 2 * line},
		{"short messages make short packets", []host.Plan{onePlan(small)}, 100e9 / 8 / (100 + 56 + 46)},
		{"and so do chunks", []host.Plan{onePlan(chunked)}, 100e9 / 8 / (1000 + 56 + 46)},
	} {
		if got := Load(host.Demands(c.plans)); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("%s: %.0f packets/s, want %.0f", c.name, got, c.want)
		}
	}
}

// Small messages do not fill a line: a repetition lasts for a round trip at least.
func TestLoadOfSmallMessages(t *testing.T) {
	small, large := allToAll(4, 1, 1, 1), allToAll(4, 1000, 1, 1)
	few, many := Load(host.Demands(small.Plans)), Load(host.Demands(large.Plans))
	conn := &small.Plans[0].Conns[0] // all are alike
	trip := (conn.Forward.Propagation + conn.Reverse.Propagation).Seconds()
	if want := 4 * 3 / trip; few > want*1.001 || few < want*0.999 {
		t.Errorf("a packet from each to each: %.0f packets/s, want %.0f, 12 in a round trip of %g s", few, want, trip)
	}
	if many <= few {
		t.Errorf("1000 packets from each to each: %.0f packets/s, one: %.0f", many, few)
	}
}

// leafSpine returns a network of leaf switches with as many hosts each, under spines.
func leafSpine(leaves, each, spines int) *fabric.Config {
	cfg := &fabric.Config{Hosts: leaves * each}
	port := func(from, to int) []int32 {
		cfg.Ports = append(cfg.Ports, fabric.PortConfig{From: fabric.NodeID(from), To: fabric.NodeID(to), Link: fabric.Link{Rate: units.Gbps, Delay: units.Microsecond}})
		return []int32{int32(len(cfg.Ports) - 1)}
	}
	leaf, spine := cfg.Hosts, cfg.Hosts+leaves // the first of each
	for h := range cfg.Hosts {
		port(h, leaf+h/each)
	}
	for l := range leaves {
		var s fabric.SwitchConfig
		var up []int32
		for h := range each {
			s.Groups = append(s.Groups, port(leaf+l, l*each+h))
		}
		for k := range spines {
			up = append(up, port(leaf+l, spine+k)...)
		}
		s.Groups = append(s.Groups, up)
		for h := range int32(cfg.Hosts) {
			s.Route = append(s.Route, int32(each))
			if int(h)/each == l {
				s.Route[h] = h % int32(each)
			}
		}
		cfg.Switches = append(cfg.Switches, s)
	}
	for k := range spines {
		var s fabric.SwitchConfig
		for l := range leaves {
			s.Groups = append(s.Groups, port(spine+k, leaf+l))
		}
		for h := range cfg.Hosts {
			s.Route = append(s.Route, int32(h/each))
		}
		cfg.Switches = append(cfg.Switches, s)
	}
	return cfg
}

func TestPartLoads(t *testing.T) {
	const c = CrossingCost
	racks := []int32{0, 0, 1, 1, 0, 1, 0, 1} // a leaf and a spine each
	to := func(all ...transport.HostID) [][]transport.HostID { return [][]transport.HostID{all} }
	for _, at := range []struct {
		name  string
		hosts []host.Demand
		parts []int32
		want  [2]float64
	}{
		{"to the other rack", []host.Demand{{Sent: 8, To: to(2)}, {}, {Received: 8}, {}}, racks, [2]float64{4 + 8*c, 4 + 8*c}},
		{"within a rack", []host.Demand{{Sent: 8, To: to(1)}, {Received: 8}, {}, {}}, racks, [2]float64{8, 0}},
		{"half to each", []host.Demand{{Sent: 8, To: to(1, 2)}, {Received: 8}, {Received: 8}, {}}, racks,
			[2]float64{4 + 2 + 4*c, 2 + 4*c}},
		{"incast", []host.Demand{{Received: 8}, {Sent: 8, To: to(0)}, {Sent: 8, To: to(0)}, {}}, racks,
			[2]float64{4 + 2 + 4*c, 2 + 4*c}},
		{"the item that crosses more", []host.Demand{{Sent: 8, To: [][]transport.HostID{{1}, {2}}}, {Received: 8}, {Received: 8}, {}},
			racks, [2]float64{4 + 2 + 8*c, 2 + 8*c}},
		{"by spines of the other part, half of the time", []host.Demand{{Sent: 8, To: to(2)}, {}, {Received: 8}, {}},
			[]int32{0, 0, 0, 0, 0, 0, 0, 1}, [2]float64{8 + 8*c, 8 * c}},
		{"clocks", []host.Demand{{Messages: 4}, {}, {Messages: 2}, {}}, racks, [2]float64{2, 1}},
	} {
		got := PartLoads(at.hosts, leafSpine(2, 2, 2), at.parts, 2)
		if math.Abs(got[0]-at.want[0]) > 1e-9 || math.Abs(got[1]-at.want[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", at.name, got, at.want)
		}
	}
}

// A network that is one part does what all of it does.
func TestLoadOfOnePart(t *testing.T) {
	x := allToAll(4, 3, 2, 1)
	got := PartLoads(host.Demands(x.Plans), &x.Fabric, make([]int32, len(x.Plans)+len(x.Fabric.Switches)), 1)
	if want := Load(host.Demands(x.Plans)); math.Abs(got[0]/want-1) > 1e-9 {
		t.Errorf("%g, want %g", got[0], want)
	}
}

// What docs/notes/2026-11-parts.md predicts for 128 hosts that all send to all others at 100 Gb/s,
// on several machines of two processors.
func TestPredictedSpeedUp(t *testing.T) {
	const rtt, slack = 14 * units.Microsecond, units.Microsecond
	each := Capacity{PacketsPerSecond: 56e3, Lateness: []LatenessAt{{0, 50e3}}}
	cfg := leafSpine(8, 16, 4)
	hosts := make([]host.Demand, cfg.Hosts)
	var all []transport.HostID
	for h := range hosts {
		all = append(all, transport.HostID(h))
		line := host.PacketRate(100*units.Gbps, 4096)
		hosts[h] = host.Demand{Sent: line, Received: line, To: [][]transport.HostID{all}}
	}
	one := AutoDilation(each, Load(hosts), rtt)
	for _, c := range []struct {
		machines int
		want     float64
	}{{1, 11000}, {2, 9200}, {4, 6000}, {8, 4000}} {
		parts, err := cfg.Cut(c.machines)
		if err != nil {
			t.Fatal(err)
		}
		got := one
		if c.machines > 1 {
			busiest := slices.Max(PartLoads(hosts, cfg, parts, c.machines))
			got = max(AutoDilation(each, busiest, rtt), CutDilation(each, busiest, slack))
		}
		t.Logf("%d machines: dilation %.0f, speed-up %.1f", c.machines, got, one/got)
		if got != c.want {
			t.Errorf("%d machines: dilation %g, the note says %g", c.machines, got, c.want)
		}
	}
}
