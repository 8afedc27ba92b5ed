package clocksync

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

func TestAddResidenceChangesEventMessagesOnly(t *testing.T) {
	sync := make([]byte, 44)
	sync[1] = 0x12 // version 2.1
	if !AddResidence(sync, 1500) || !AddResidence(sync, units.Microsecond) {
		t.Fatal("a Sync was not changed")
	}
	want := Scaled(1500) + Scaled(units.Microsecond)
	if got := int64(uint64(sync[12])<<24 | uint64(sync[13])<<16 | uint64(sync[14])<<8 | uint64(sync[15])); got != want {
		t.Errorf("correctionField %d, want %d", got, want)
	}
	for name, message := range map[string][]byte{
		"Follow_Up": {0: 8, 1: 2, 43: 0}, "version 1": {0: 0, 1: 1, 43: 0}, "short": {0: 0, 1: 2, 20: 0}, "nothing": nil,
	} {
		if AddResidence(message, 1) {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestScaledSaturates(t *testing.T) {
	if Scaled(units.Never) != math.MaxInt64 || Scaled(-units.Never) != -math.MaxInt64 {
		t.Error("a span of months is an interval")
	}
}

func TestUnscaledOfScaledIsWithinAPicosecond(t *testing.T) {
	if Scaled(units.Nanosecond) != 1<<16 || Scaled(-units.Nanosecond) != -1<<16 || Unscaled(-3<<15) != -1500 {
		t.Error("a nanosecond is 2^16")
	}
	rapid.Check(t, func(t *rapid.T) {
		ps := units.Time(rapid.Int64Range(-1e17, 1e17).Draw(t, "ps"))
		if got := Unscaled(Scaled(ps)); got != ps {
			t.Fatalf("%d ps become %d", ps, got)
		}
	})
}
