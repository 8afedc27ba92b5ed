package emulate

import (
	"testing"

	"weft/units"
)

// A machine that takes no time to wake threads is bound by hiccups alone; what other programs make
// it late by stretches a lab twice at most.
func TestKernelDilation(t *testing.T) {
	base := 10 * units.Microsecond
	for _, c := range []struct {
		pace     KernelPace
		load     float64
		switches int
		want     float64
	}{
		{KernelPace{1, 1, true}, 1e6, 1, 4000},          // 2 ms are 5 % of 10 us
		{KernelPace{10_000, 1, true}, 1e8, 1, 33_000},   // 21 turns of 10 us at 65 %
		{KernelPace{10_000, 1, true}, 1e8, 5, 64_000},   // 41 turns
		{KernelPace{10_000, 1, false}, 1e8, 5, 17_000},  // 11 turns
		{KernelPace{10_000, 4e6, true}, 1e8, 1, 33_000}, // 4 ms would do with less
		{KernelPace{10_000, 1e9, true}, 1e8, 1, 66_000}, // twice what it would be
		{KernelPace{0.0001, 0.0001, true}, 1, 1, 4000},
	} {
		if got := c.pace.Dilation(c.load, c.switches, base); got != c.want {
			t.Errorf("%+v, %g packets/s over %d switches: dilation %g, want %g", c.pace, c.load, c.switches, got,
				c.want)
		}
	}
	if got := (KernelPace{1, 1, true}).Dilation(1e9, 1, 0); got != 33 {
		t.Errorf("without a round trip: %g", got)
	}
}

func TestMeasureKernel(t *testing.T) {
	k, err := MeasureKernel()
	if err != nil || !(k.Turn > 0) || !(k.Late > 0) || !(k.Rate(1) > k.Rate(5)) {
		t.Errorf("%+v, %v", k, err)
	}
}
