package stalls

import (
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

// instants marks each instant of some spans, as a dumb set.
func instants(spans []Span, end units.Time) []bool {
	in := make([]bool, end)
	for _, s := range spans {
		for t := max(0, s.From); t < min(s.To, end); t++ {
			in[t] = true
		}
	}
	return in
}

func count(in []bool, from, to units.Time) (n units.Time) {
	for t := from; t < to; t++ {
		if in[t] {
			n++
		}
	}
	return n
}

// A log has each instant in which something was late by enough, in order, each once.
func TestLogHoldsWhatIsLate(t *testing.T) {
	const end = 200
	rapid.Check(t, func(t *rapid.T) {
		l := Log{Least: units.Time(rapid.IntRange(1, 10).Draw(t, "least"))}
		now := units.Time(-20)
		var want []Span
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			now += units.Time(rapid.IntRange(0, 15).Draw(t, "later"))
			due := now - units.Time(rapid.IntRange(-5, 60).Draw(t, "late"))
			if now >= end {
				break
			}
			l.Record(due, now)
			if now-due > l.Least {
				want = append(want, Span{due, now})
			}
		}
		if err := l.Check(); err != nil {
			t.Fatalf("%v: %+v", err, l)
		}
		if !slices.Equal(instants(l.Spans, end), instants(want, end)) {
			t.Errorf("%v of %v", l.Spans, want)
		}
	})
}

// A union covers what its spans cover, whatever their order.
func TestUnionCovers(t *testing.T) {
	const end = 100
	rapid.Check(t, func(t *rapid.T) {
		instant := rapid.IntRange(0, end)
		var spans []Span
		for range rapid.IntRange(0, 12).Draw(t, "spans") {
			a, b := units.Time(instant.Draw(t, "a")), units.Time(instant.Draw(t, "b"))
			spans = append(spans, Span{min(a, b), max(a, b)})
		}
		from, to := units.Time(instant.Draw(t, "from")), units.Time(instant.Draw(t, "to"))
		s := Union(spans...)
		in := instants(spans, end)
		if got, want := s.Cover(from, to), count(in, from, to); got != want {
			t.Errorf("%v cover %d of %d to %d, want %d", spans, got, from, to, want)
		}
		if s.Empty() != !slices.Contains(in, true) {
			t.Errorf("%v are empty: %t", spans, s.Empty())
		}
	})
}

// Nothing is recorded without a least length, and what does not fit is counted.
func TestLogIsBounded(t *testing.T) {
	var off Log
	off.Record(0, units.Second)
	l := Log{Least: 1}
	for i := range units.Time(MaxSpans + 5) {
		l.Record(10*i, 10*i+4)
	}
	if len(off.Spans) > 0 || len(l.Spans) != MaxSpans || l.More != 5 || l.Rest != 20 || l.Check() != nil {
		t.Errorf("%v; %d spans, %d more of %d", off, len(l.Spans), l.More, l.Rest)
	}
}

// A log of another process is read back as it was, and one that no process keeps is refused.
func TestLogsAreChecked(t *testing.T) {
	l := Log{Least: 5, Spans: []Span{{0, 7}, {9, 20}}, More: 1, Rest: 6}
	text, err := json.Marshal(l)
	var got Log
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || !slices.Equal(got.Spans, l.Spans) || got.Rest != 6 || got.Check() != nil {
		t.Errorf("%s: %+v, %v", text, got, err)
	}
	for _, bad := range []Log{
		{Spans: []Span{{-1, 3}}}, {Spans: []Span{{3, 2}}}, {Spans: []Span{{0, 5}, {5, 9}}},
		{Spans: []Span{{0, units.Never}}}, {More: -1}, {Rest: -1}, {Rest: units.Never},
		{Spans: make([]Span, MaxSpans+1)},
	} {
		if bad.Check() == nil {
			t.Errorf("taken: %+v", bad)
		}
	}
}

func BenchmarkRecordInTime(b *testing.B) {
	l := Log{Least: 100}
	for b.Loop() {
		l.Record(5, 50)
	}
}
