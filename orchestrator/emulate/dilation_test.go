package emulate

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/results/record"
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
		if err := CheckDilation(c, "m1", d, load, rtt); err != nil {
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
		if err := CheckDilation(c, "m1", d, load, rtt); err != nil {
			t.Errorf("%g: %v", d, err)
		}
	}
	err := CheckDilation(c, "m1", 100, load, rtt)
	for _, want := range []string{"dilation 100 ", "476000", "more than 2 times the 40000 that m1 was measured to carry", "use dilation 2900", "--engine sim"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if err := CheckDilation(Capacity{}, "m1", 1, load, rtt); err != nil {
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
