package node

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"weft/clocksync"
	"weft/internal/fuzztest"
	"weft/units"
)

func TestSamplesSurviveTheirEncoding(t *testing.T) {
	want := []Sample{
		{},
		{At: 10 * units.Microsecond, Error: -3, Bound: 100, State: clocksync.Locked},
		{At: 20 * units.Microsecond, Error: math.MinInt64, Bound: math.MaxInt64, State: clocksync.Holdover, Down: true},
		{At: 30 * units.Microsecond, Error: math.MaxInt64, State: clocksync.Free},
	}
	b := AppendSamples(nil, want)
	got, err := DecodeSamples(b)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("decoded %v, %v; encoded %v", got, err, want)
	}
	for n := 1; n < len(b); n++ {
		if part, err := DecodeSamples(b[:n]); err == nil && !slices.Equal(part, want[:len(part)]) {
			t.Errorf("the first %d bytes are %v", n, part)
		}
	}
	if _, err := DecodeSamples([]byte{0, 0, 0, byte(clocksync.Holdover) + 1}); err == nil {
		t.Error("accepted an unknown state")
	}
}

// Samples come from processes in nodes.
func FuzzSamples(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(AppendSamples(nil, []Sample{{At: 1, Error: -1}, {At: 300, Bound: 70000, State: clocksync.Locked, Down: true}}))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSamples(b)
		if len(s) > len(b)/minSample {
			t.Fatalf("%d samples in %d bytes", len(s), len(b))
		}
		if err != nil {
			return
		}
		again, err := DecodeSamples(AppendSamples(nil, s))
		if err != nil || !slices.Equal(again, s) {
			t.Fatalf("% x: %v became %v, %v", bytes.Clone(b), s, again, err)
		}
	})
}
