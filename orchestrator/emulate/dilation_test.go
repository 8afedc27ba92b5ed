package emulate

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/host"
	"weft/results/record"
	"weft/transport"
	"weft/units"
)

func TestAutoDilation(t *testing.T) {
	const us = units.Microsecond
	// The same at all loads.
	steady := func(packets, late float64) Capacity {
		return Capacity{PacketsPerSecond: packets, Lateness: []LatenessAt{{packets / 10, late}, {packets / 2, late}}}
	}
	for _, c := range []struct {
		name     string
		capacity Capacity
		load     float64
		rtt      units.Time
		want     float64
	}{
		// 16 hosts at 100 Gb/s receive 47.6 million packets of 4198 bytes in a second of lab time;
		// a machine that carries 100,000 should carry 65,000.
		{"by load", steady(100e3, 50e3), 476e6, 15 * us, 7400},
		// 5 % of 2 us are 100 ns, of which 60 ns are used: 2 ms take 33,333 times as long.
		{"by lateness", steady(100e3, 2e6), 3e6, 2 * us, 34000},
		{"by a hiccup of 2 ms", steady(100e3, 50e3), 3e6, 2 * us, 20000},
		// 5 % of 14 us are 700 ns, of which 420 ns are used: 8 ms would take 19,000 times as long,
		// but at dilation 4,800 the load is 10,000 packets/s, where lateness is 2 ms.
		{"by the lateness at the load", Capacity{PacketsPerSecond: 40e3, Lateness: []LatenessAt{{4e3, 1e6},
			{10e3, 2e6}, {26e3, 8e6}}}, 48e6, 14 * us, 4800},
		// At 7,000 packets/s others made the machine 60 ms late; dilation 290,000 would be for
		// them.
		{"by twice the load on a busy machine", Capacity{PacketsPerSecond: 20e3, Lateness: []LatenessAt{{7e3, 60e6}},
			Foreign: 0.9, Ordinary: true}, 47.6e6, 14 * us, 24000},
		{"nothing to carry", steady(100e3, 0), 10, 40 * units.Millisecond, 1},
		{"not measured", Capacity{}, 1e6, us, 1},
	} {
		if got := AutoDilation(c.capacity, c.load, c.rtt); got != c.want {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

// What auto chooses fits, and the next smaller of two digits does not.
func TestAutoDilationIsTheSmallestThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Capacity{PacketsPerSecond: rapid.Float64Range(1e3, 1e6).Draw(t, "capacity"),
			Ordinary: rapid.Bool().Draw(t, "ordinary")}
		for _, share := range []float64{0.1, 0.3, 0.65} {
			c.Lateness = append(c.Lateness, LatenessAt{share * c.PacketsPerSecond,
				rapid.Float64Range(1e4, 1e8).Draw(t, "lateness")})
		}
		load := rapid.Float64Range(1, 1e9).Draw(t, "load")
		rtt := units.Time(rapid.Int64Range(1e6, 1e9).Draw(t, "rtt"))
		fits := func(d float64) bool {
			return load/d <= c.working()*c.PacketsPerSecond*(1+1e-6) &&
				c.lateAt(load/d) <= c.margin()*record.OKLateness*rtt.Nanoseconds()*d*(1+1e-6)
		}
		d := AutoDilation(c, load, rtt)
		smallest := max(1, roundUp(hiccup/(record.OKLateness*rtt.Nanoseconds())))
		if roundUp(d) != d || !fits(d) || d > smallest && fits(d*0.9) {
			t.Fatalf("%g for %+v; fits %t, nine tenths of it fit %t", d, c, fits(d), fits(d*0.9))
		}
		if err := CheckDilation(c, d, load, rtt); err != nil {
			t.Fatalf("%g: %v", d, err)
		}
	})
}

func TestLatenessAtALoad(t *testing.T) {
	c := Capacity{Lateness: []LatenessAt{{100, 10}, {200, 30}, {300, 20}}}
	for load, want := range map[float64]float64{0: 10, 100: 10, 150: 15, 200: 20, 250: 20, 300: 20, 1000: 20} {
		if got := c.lateAt(load); got != want {
			t.Errorf("%g ns at %g packets/s, want %g", got, load, want)
		}
	}
}

func TestHopelessDilationIsRefused(t *testing.T) {
	c := Capacity{PacketsPerSecond: 40e3, Lateness: []LatenessAt{{26e3, 2e5}}}
	const load, rtt = 47.6e6, 14 * units.Microsecond
	for _, d := range []float64{596, 1200, 1900} { // 80,000 packets/s, twice the capacity, and less
		if err := CheckDilation(c, d, load, rtt); err != nil {
			t.Errorf("%g: %v", d, err)
		}
	}
	err := CheckDilation(c, 100, load, rtt)
	for _, want := range []string{"dilation 100 ", "476000", "40000", "dilation 2900 or more", "--engine sim"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if err := CheckDilation(Capacity{}, 1, load, rtt); err != nil {
		t.Errorf("not measured: %v", err)
	}
}

func TestRoundUpIsTheNextOfTwoDigits(t *testing.T) {
	for d, want := range map[float64]float64{0.2: 1, 1: 1, 1.21: 1.3, 9.91: 10, 10: 10, 10.1: 11, 99.5: 100, 101: 110,
		1234: 1300} {
		if got := roundUp(d); got != want {
			t.Errorf("%g is rounded up to %g, want %g", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.Float64Range(1, 1e7).Draw(t, "d")
		got := roundUp(d)
		if got < d*(1-1e-9) || got > d*1.1+1e-9 || roundUp(got) != got {
			t.Fatalf("%g is rounded up to %g, and that to %g", d, got, roundUp(got))
		}
	})
}

// onePlan returns the plan of a host at 100 Gb/s with one item.
func onePlan(it host.Item) host.Plan {
	return host.Plan{Endpoint: transport.Config{MTU: 4096, LineRate: 100 * units.Gbps}, Items: []host.Item{it}}
}

func TestLoad(t *testing.T) {
	const line = 100e9 / 8 / (4096 + 56 + 46) // packets per second
	some := []host.Peer{{Rank: 1}}
	send := host.Item{Collective: "incast", Size: units.MB, Conns: some}
	take := host.Item{Collective: "incast", Size: units.MB, Expect: some}
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
		if got := Load(c.plans); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("%s: %.0f packets/s, want %.0f", c.name, got, c.want)
		}
	}
}

// Small messages do not fill a line: a repetition lasts for a round trip at least.
func TestLoadOfSmallMessages(t *testing.T) {
	small, large := allToAll(4, 1, 1, 1), allToAll(4, 1000, 1, 1)
	few, many := Load(small.Plans), Load(large.Plans)
	trip := roundTrip(&small.Plans[0])
	if want := 4 * 3 / trip; few > want*1.001 || few < want*0.999 {
		t.Errorf("a packet from each to each: %.0f packets/s, want %.0f, 12 in a round trip of %g s", few, want, trip)
	}
	if many <= few {
		t.Errorf("1000 packets from each to each: %.0f packets/s, one: %.0f", many, few)
	}
}

// A cut link needs slack for four of the slowest crossings, and for the lateness of a busy machine.
func TestCutDilation(t *testing.T) {
	calm := Capacity{PacketsPerSecond: 1e5, Lateness: []LatenessAt{{0, 50e3}, {1e5, 100e3}}}
	busy := Capacity{PacketsPerSecond: 1e5, Lateness: []LatenessAt{{0, 900e3}, {1e5, 900e3}}}
	for _, c := range []struct {
		of    Capacity
		slack units.Time
		want  float64
	}{{calm, units.Microsecond, 2000}, {calm, 10 * units.Microsecond, 200}, {busy, units.Microsecond, 3600}} {
		if d := CutDilation(c.of, 1e6, c.slack); d != c.want {
			t.Errorf("%v of slack: %g, want %g", c.slack, d, c.want)
		}
	}
}

// What docs/notes/2026-11-parts.md predicts for a lab of 128 hosts on several machines of two
// processors: a crossing costs nothing, or as much as its packet.
func TestPredictedSpeedUp(t *testing.T) {
	const rtt, slack = 14 * units.Microsecond, units.Microsecond
	each := Capacity{PacketsPerSecond: 56e3, Lateness: []LatenessAt{{0, 50e3}}}
	load := 128 * 100e9 / (8 * 4198.0) // data packets per second of lab time
	one := AutoDilation(each, load, rtt)
	for _, c := range []struct{ machines, cross, least, most float64 }{
		{1, 0, 11000, 11000}, {2, 0.5, 5300, 7900}, {4, 0.75, 2900, 4600}, {8, 0.875, 2900, 2900},
	} {
		need := func(load float64) float64 {
			return max(AutoDilation(each, load, rtt), CutDilation(each, load, slack))
		}
		least, most := need(load/c.machines), need(load/c.machines*(1+c.cross))
		t.Logf("%.0f machines: dilation %.0f to %.0f, speed-up %.1f to %.1f", c.machines, least, most, one/least, one/most)
		if least != c.least || most != c.most {
			t.Errorf("%.0f machines: %g to %g, the note says %g to %g", c.machines, least, most, c.least, c.most)
		}
	}
}
