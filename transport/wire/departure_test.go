package wire

import (
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

func TestDepartureIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body, want := rapid.SliceOf(rapid.Byte()).Draw(t, "body"), units.Time(rapid.Int64().Draw(t, "at"))
		b := AppendDeparture(body, want)
		if len(b) != len(body)+DepartureSize {
			t.Fatalf("%d bytes became %d", len(body), len(b))
		}
		if at, ok := Departure(b); !ok || at != want {
			t.Fatalf("%d, %v; want %d", at, ok, want)
		}
		if _, ok := Departure(b[:len(b)-1]); ok {
			t.Fatal("what is cut short says an instant")
		}
	})
}
