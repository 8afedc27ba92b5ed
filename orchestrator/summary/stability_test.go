package summary

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"weft/clocksync/node"
	"weft/units"
)

// clocksOff are the reports of clocks that are off by so much, sampled every 10 us: the first is
// the reference.
func clocksOff(n int, off ...func(k int) units.Time) []node.Report {
	reports := make([]node.Report, len(off))
	for h, f := range off {
		for k := range n {
			reports[h].Samples = append(reports[h].Samples, node.Sample{At: units.Time(k) * 10 * units.Microsecond, Error: f(k)})
		}
	}
	return reports
}

const every = 10 * units.Microsecond // of clocksOff

func TestStabilityIsOfTheWorstHostAgainstTheReference(t *testing.T) {
	const ns = units.Nanosecond
	reference := func(k int) units.Time { return units.Time(k*k) * ns } // its own errors are everybody's
	drifts := func(k int) units.Time { return reference(k) + units.Time(k)*ns - 10*ns }
	jumps := func(k int) units.Time { return reference(k) + units.Time(k%2)*8*ns }
	s := stability(clocksOff(101, reference, drifts, jumps), 0, every, 0, never)
	if s == nil || s.Hosts != 2 || s.MaxTE != 90 || s.Constant != 40 || len(s.At) != 2 || len(s.Classes) != 3 {
		t.Fatalf("%+v", s)
	}
	// Second differences of 0, 8, 0 are 16: ADEV is 16/sqrt(2)/tau. A constant drift has none, and
	// the larger MTIE over ten.
	one, ten := s.At[0], s.At[1]
	if want := 16 / math.Sqrt2 / 10_000; one.TauUS != 10 || math.Abs(one.ADEV-want) > 1e-9 || math.Abs(one.MDEV-want) > 1e-9 || one.MTIE != 8 {
		t.Errorf("over 10 us: %+v, want ADEV %g", one, want)
	}
	if want := one.MDEV * 10_000 / math.Sqrt(3); math.Abs(one.TDEV-want) > 1e-9 {
		t.Errorf("TDEV %g, want %g", one.TDEV, want)
	}
	if ten.TauUS != 100 || ten.ADEV != 0 || ten.MTIE != 10 {
		t.Errorf("over 100 us: %+v", ten)
	}
	if s := stability(clocksOff(101, reference, drifts), 0, every, 600*units.Microsecond, never); s.MaxTE != 90 || s.Constant != 70 {
		t.Errorf("from 600 us on: %+v", s)
	}
}

func TestStabilityLeavesOutWhoIsDown(t *testing.T) {
	right := func(int) units.Time { return 0 }
	off := func(int) units.Time { return units.Microsecond }
	reports := clocksOff(50, right, right, off)
	reports[2].Samples[30].Down = true
	if s := stability(reports, 0, every, 0, never); s == nil || s.Hosts != 1 || s.MaxTE != 0 {
		t.Errorf("%+v", s)
	}
	if s := stability(reports, 0, every, 310*units.Microsecond, never); s == nil || s.Hosts != 2 {
		t.Errorf("down before what is counted: %+v", s)
	}
	reports[0].Samples[30].Down = true
	if s := stability(reports, 0, every, 0, never); s != nil {
		t.Errorf("against a reference that is down: %+v", s)
	}
	if s := stability(clocksOff(4, right, off), 0, every, 0, never); s != nil {
		t.Errorf("of four samples: %+v", s)
	}
	if s := stability(clocksOff(50, right), 0, every, 0, never); s != nil {
		t.Errorf("of the reference alone: %+v", s)
	}
}

// never is the end of a summary that nobody interrupts.
func never() bool { return false }

// Samples beside the interval count for the largest error and for nothing else.
func TestStabilityOfSamplesBesideTheInterval(t *testing.T) {
	right := func(int) units.Time { return 0 }
	want := stability(clocksOff(50, right, right), 0, every, 0, never)
	reports := clocksOff(50, right, right)
	for h := range reports {
		beside := node.Sample{At: reports[h].Samples[20].At + 1, Error: units.Time(h) * units.Microsecond}
		reports[h].Samples = slices.Insert(reports[h].Samples, 21, beside)
	}
	got := stability(reports, 0, every, 0, never)
	if got.MaxTE != 1000 || want.MaxTE != 0 {
		t.Errorf("max %g ns, without it %g ns", got.MaxTE, want.MaxTE)
	}
	if got.MaxTE = 0; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
