package emulate

import (
	"testing"

	"weft/units"
)

// Queues are sampled as often as the lab says, but the machine is not kept busy with that.
func TestSampleEvery(t *testing.T) {
	for _, c := range []struct {
		asked    units.Time
		dilation float64
		want     units.Time
	}{
		{0, 1, 0},
		{10 * units.Microsecond, 1000, 10 * units.Microsecond},
		{10 * units.Microsecond, 20, 10 * units.Microsecond},
		{10 * units.Microsecond, 10, 20 * units.Microsecond},
		{10 * units.Microsecond, 1, 200 * units.Microsecond},
	} {
		x := Experiment{SampleQueues: c.asked, Dilation: c.dilation}
		if got := x.sampleEvery(); got != c.want {
			t.Errorf("every %d ps at dilation %g: %d, want %d", c.asked, c.dilation, got, c.want)
		}
	}
}
