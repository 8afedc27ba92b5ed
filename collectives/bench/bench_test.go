package bench

import (
	"math"
	"testing"

	"weft/units"
)

// nccl-tests: 8 ranks, 1 GB all_reduce in 10 ms has algbw 100 GB/s and busbw 175; alltoall of the
// same total 100 and 87.5.
func TestVectors(t *testing.T) {
	for _, v := range []struct {
		collective string
		n          int
		size       units.Bytes
		time       units.Time
		alg, bus   float64 // GB/s
	}{
		{"all-reduce", 8, units.GB, 10 * units.Millisecond, 100, 175},
		{"all-to-all", 8, units.GB, 10 * units.Millisecond, 100, 87.5},
		{"reduce-scatter", 8, units.GB, 10 * units.Millisecond, 100, 87.5},
		{"all-gather", 4, units.GB, 10 * units.Millisecond, 100, 75},
		{"broadcast", 8, units.GB, 10 * units.Millisecond, 100, 100},
		{"permute", 1024, 2 * units.MB, 160 * units.Microsecond, 12.5, 12.5},
		// 32 ranks at 400 Gb/s: a ring of 128 MB in 4.96 ms and an all-to-all in 2.48 ms fill the
		// links.
		{"all-reduce", 32, 128 * units.MB, 4960 * units.Microsecond, 25.806, 50},
		{"all-to-all", 32, 128 * units.MB, 2480 * units.Microsecond, 51.613, 50},
		// Double binary trees take 5.12 ms: 2·size/rate, a 32nd more.
		{"all-reduce", 32, 128 * units.MB, 5120 * units.Microsecond, 25, 48.4375},
		// 8, 32 and 128 to 1, 16 MB each, in 2.56, 10.24 and 40.96 ms at 400 Gb/s.
		{"incast", 9, Size("incast", 9, 16*units.MB), 2560 * units.Microsecond, 50, 50},
		{"incast", 129, Size("incast", 129, 16*units.MB), 40960 * units.Microsecond, 50, 50},
		{"incast", 33, Size("incast", 33, 16*units.MB), 10240 * units.Microsecond, 50, 50},
		{"incast", 33, 1, 0, 0, 0},
	} {
		alg, bus, err := Bandwidth(v.collective, v.n, v.size, v.time)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(GBps(alg)-v.alg) > 1e-3 || math.Abs(GBps(bus)-v.bus) > 1e-3 {
			t.Errorf("%s, %d ranks: algbw %.3f busbw %.3f, want %.3f %.3f", v.collective, v.n, GBps(alg), GBps(bus), v.alg, v.bus)
		}
	}
	if got := Size("all-reduce", 8, 5); got != 5 {
		t.Errorf("size %d", got)
	}
}

func TestRefused(t *testing.T) {
	if _, _, err := Bandwidth("gossip", 8, 1, 1); err == nil {
		t.Error("an unknown collective")
	}
	if _, err := Factor("all-reduce", 0); err == nil {
		t.Error("no ranks")
	}
}
