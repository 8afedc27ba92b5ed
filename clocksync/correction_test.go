package clocksync

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

func TestCorrectionIsALineWithABound(t *testing.T) {
	c := Correction{From: units.Second, Offset: -3 * units.Microsecond, Rate: 20e-6, Bound: 100, Drift: 1e-6, State: Locked}
	for _, w := range []struct{ hard, want, bound units.Time }{
		{units.Second, units.Second - 3*units.Microsecond, 100},
		{units.Second + units.Millisecond, units.Second + units.Millisecond - 3*units.Microsecond + 20*units.Nanosecond, 100 + units.Nanosecond},
		{units.Second - units.Millisecond, units.Second - units.Millisecond - 3*units.Microsecond - 20*units.Nanosecond, 100 + units.Nanosecond},
	} {
		if got := c.At(w.hard); got != w.want {
			t.Errorf("at %d: %d, want %d", w.hard, got, w.want)
		}
		if got := c.BoundAt(w.hard); got != w.bound {
			t.Errorf("bound at %d: %d, want %d", w.hard, got, w.bound)
		}
	}
	if got := (Correction{}).At(12345); got != 12345 {
		t.Errorf("the zero correction makes %d of 12345", got)
	}
}

func TestRebaseIsTheSameLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := func(name string) units.Time { return units.Time(rapid.Int64Range(-1e15, 1e15).Draw(t, name)) }
		c := Correction{From: ps("from"), Offset: ps("offset"), Rate: rapid.Float64Range(-1e-3, 1e-3).Draw(t, "rate")}
		b, at := c.Rebase(ps("to")), ps("at")
		if d := b.At(at) - c.At(at); d < -2 || d > 2 {
			t.Fatalf("%+v and %+v differ by %d ps at %d", c, b, d, at)
		}
	})
}

func TestCheckRefusesWhatIsNoLine(t *testing.T) {
	for want, c := range map[string]Correction{
		"rate":  {Rate: math.NaN()},
		"0.02":  {Rate: 0.02},
		"drift": {Drift: math.Inf(1)},
		"bound": {Bound: -1},
		"from":  {From: math.MaxInt64},
		"by":    {Offset: math.MinInt64},
	} {
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error about %q", c, err, want)
		}
	}
	if err := (Correction{Rate: -1e-4, Bound: 5, Drift: 1e-6}).Check(); err != nil {
		t.Error(err)
	}
}

func TestStatesAndCountersAddUp(t *testing.T) {
	if Free.String() != "free" || Locked.String() != "locked" || Holdover.String() != "holdover" || State(9).String() != "state 9" {
		t.Error("states have other names")
	}
	one := Counters{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}
	sum := one
	if sum.Add(one); sum != (Counters{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26}) {
		t.Errorf("sum is %+v", sum)
	}
}
