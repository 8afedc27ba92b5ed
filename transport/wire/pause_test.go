package wire

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"weft/internal/fuzztest"
	"weft/units"
)

func TestPauseGoesThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Pause{
			Host: rapid.Uint32().Draw(t, "host"), Seq: rapid.Uint32().Draw(t, "seq"),
			Class: rapid.Uint8().Draw(t, "class"), Held: rapid.Bool().Draw(t, "held"),
			At: units.Time(rapid.Int64Range(0, 1<<60).Draw(t, "at")),
		}
		want.Clears = want.At + units.Time(rapid.Int64Range(0, 1<<60).Draw(t, "clears"))
		var b [PauseSize]byte
		want.Encode(b[:])
		var got Pause
		if err := got.Decode(b[:]); err != nil || got != want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestPauseRefusesWhatIsNone(t *testing.T) {
	pause := func(p Pause) []byte {
		b := make([]byte, PauseSize)
		p.Encode(b)
		return b
	}
	good := Pause{Host: 1, Seq: 2, Class: 1, Held: true, At: 3, Clears: 4}
	damaged, flagged := pause(good), pause(good)
	damaged[20] ^= 1
	flagged[3] = 2
	flagged[12], flagged[13] = 0, 0
	sum := checkShort(flagged[:PauseSize])
	flagged[12], flagged[13] = byte(sum>>8), byte(sum)
	cnp := make([]byte, CNPSize)
	(&CNP{Conn: 1}).Encode(cnp)
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"empty":            {nil, ErrShort},
		"cut":              {pause(good)[:PauseSize-1], ErrShort},
		"long":             {append(pause(good), 0), ErrRange},
		"damaged":          {damaged, ErrCheck},
		"another flag":     {flagged, ErrFlags},
		"another type":     {cnp, ErrType},
		"clears before":    {pause(Pause{At: 2, Clears: 1}), ErrRange},
		"before the start": {pause(Pause{At: -1}), ErrRange},
	} {
		var p Pause
		if err := p.Decode(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := ShapeOf(pause(good)); !errors.Is(err, ErrType) {
		t.Errorf("a pause is a packet of the transport: %v", err)
	}
}

func FuzzPause(f *testing.F) {
	corpus := fuzztest.New(f)
	b := make([]byte, PauseSize)
	(&Pause{Host: 1, Seq: 2, Class: 1, Held: true, At: 3, Clears: 4}).Encode(b)
	corpus.Add(b)
	corpus.Fuzz(func(t *testing.T, b []byte) {
		var p Pause
		if p.Decode(b) != nil {
			return
		}
		again := make([]byte, PauseSize)
		p.Encode(again)
		if string(again) != string(b) {
			t.Fatalf("% x is read as %+v, which is % x", b, p, again)
		}
	})
}

func TestRestampChangesOneField(t *testing.T) {
	want := Data{Conn: 1, PSN: 2, Payload: 3, Size: 3, Flags: Announce, SentAt: 7, Baseline: 8, Path: 9, Room: 1}
	b := make([]byte, DataSize+TelemetrySize(1))
	want.Encode(b)
	tableOf(b).Stamp(Hop{At: 5 * units.Nanosecond})
	shape, err := ShapeOf(b)
	if err != nil {
		t.Fatal(err)
	}
	shape.Restamp(b, 1234)
	var got Data
	want.SentAt = 1234
	if err := got.Decode(b); err != nil || got != want || len(tableOf(b).AppendHops(nil)) != 1 {
		t.Errorf("got %+v, %v, want %+v and its telemetry", got, err, want)
	}
	b[17] ^= 1
	for _, b := range [][]byte{b, b[:20], nil} {
		if shape, err := ShapeOf(b); err == nil || shape != 0 {
			t.Error("what is no header has a shape")
		}
	}
}
