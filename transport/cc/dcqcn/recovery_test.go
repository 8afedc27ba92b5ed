package dcqcn_test

import (
	"math"
	"testing"

	"weft/units"
)

// How long each set takes back to 95 of 100 Gb/s, by time alone; milliseconds.
func TestRecoveryTo95(t *testing.T) {
	for _, c := range []struct {
		set          string
		rate, target units.Bandwidth
		want         float64
	}{
		// After one cut the target is still the line.
		{"nvidia", 50, 100, 1.2}, {"mellanox", 50, 100, 1.2}, {"simai", 50, 100, 3.6}, {"paper", 50, 100, 0.22},
		// After cuts that clamped it the target has to be won back too.
		{"nvidia", 50, 50, 270.9}, {"mellanox", 50, 50, 68.4}, {"conweave", 50, 50, 135.9}, {"simai", 50, 50, 407.7},
		{"paper", 50, 50, 62.2}, {"nvidia", 10, 10, 510.9},
	} {
		s := newScript(t, set(t, c.set))
		s.s.At(0, c.rate*gbps, c.target*gbps)
		for s.s.PacingRate() < 95*gbps && s.now < units.Second {
			at, _ := s.s.Deadline()
			s.wait(at - s.now)
		}
		if got := s.now.Seconds() * 1000; math.Abs(got-c.want) > 0.06 {
			t.Errorf("%s from %d Gb/s, target %d: %.2f ms, want %.2f", c.set, c.rate, c.target, got, c.want)
		}
	}
}
