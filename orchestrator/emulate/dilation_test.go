package emulate

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/host"
	"weft/transport"
	"weft/units"
)

func TestAutoDilation(t *testing.T) {
	const us = units.Microsecond
	for _, c := range []struct {
		name     string
		capacity Capacity
		load     float64
		rtt      units.Time
		want     float64
	}{
		// 16 hosts at 100 Gb/s receive 47.6 million packets of 4198 bytes in a second of lab time; a machine that
		// carries 100,000 is asked for 65,000.
		{"by load", Capacity{100e3, 50e3}, 47.6e6, 15 * us, 740},
		// 5 % of 2 us are 100 ns, of which 60 ns are used: 50 us take 833 times as long.
		{"by lateness", Capacity{100e3, 50e3}, 3e6, 2 * us, 840},
		{"nothing to carry", Capacity{100e3, 0}, 10, us, 1},
		{"not measured", Capacity{}, 1e6, us, 1},
	} {
		if got := AutoDilation(c.capacity, c.load, c.rtt); got != c.want {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

func TestRoundUpIsTheNextOfTwoDigits(t *testing.T) {
	for d, want := range map[float64]float64{0.2: 1, 1: 1, 1.21: 1.3, 9.91: 10, 10: 10, 10.1: 11, 99.5: 100, 101: 110, 1234: 1300} {
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

// plan is a host at 100 Gb/s with one item.
func plan(it host.Item) host.Plan {
	return host.Plan{Endpoint: transport.Config{MTU: 4096, LineRate: 100 * units.Gbps}, Items: []host.Item{it}}
}

func TestLoad(t *testing.T) {
	const line = 100e9 / 8 / (4096 + 56 + 46) // packets per second
	some := []host.Peer{{Rank: 1}}
	send := host.Item{Collective: "incast", Size: units.MB, Conns: some}
	take := host.Item{Collective: "incast", Size: units.MB, Expect: some}
	both := host.Item{Collective: "all-to-all", Size: units.MB, Ranks: make([]transport.HostID, 8), Conns: some, Expect: some}
	small := both
	small.Size = 8 * 100
	chunked := both
	chunked.Chunk = 1000
	for _, c := range []struct {
		name  string
		plans []host.Plan
		want  float64
	}{
		{"incast is bounded by its receiver", []host.Plan{plan(send), plan(send), plan(take)}, line},
		{"broadcast by its sender", []host.Plan{plan(send), plan(take), plan(take)}, line},
		{"all-to-all by the sum of lines", []host.Plan{plan(both), plan(both), plan(both)}, 3 * line},
		{"idle hosts add nothing", []host.Plan{plan(both), plan(both), {}}, 2 * line},
		{"short messages make short packets", []host.Plan{plan(small)}, 100e9 / 8 / (100 + 56 + 46)},
		{"and so do chunks", []host.Plan{plan(chunked)}, 100e9 / 8 / (1000 + 56 + 46)},
	} {
		if got := Load(c.plans); math.Abs(got/c.want-1) > 1e-9 {
			t.Errorf("%s: %.0f packets/s, want %.0f", c.name, got, c.want)
		}
	}
}
