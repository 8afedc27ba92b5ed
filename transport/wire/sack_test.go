package wire

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weft/internal/fuzztest"
	"weft/units"
)

func exampleSack() Sack {
	return Sack{
		CE: true, Probe: true, Conn: 0x01020304, Expected: 0x05060709, Base: 0x05060749, Bitmap: 0x8000000000000005,
		Received: 123_456, OutOfOrder: 3, PSN: 0x05060750, Due: 123_456_789, OneWay: -80 * units.Nanosecond, Path: 7,
	}
}

func exampleProbe() Probe {
	return Probe{Conn: 0x01020304, PSN: 0x05060709, SentAt: 123_456_789, Baseline: 2_671_680, Path: 7}
}

func encodeSack(a Sack) []byte {
	b := make([]byte, a.Len())
	a.Encode(b)
	return b
}

func encodeProbe(p Probe) []byte {
	b := make([]byte, p.Len())
	p.Encode(b)
	return b
}

// The bytes are a protocol between nodes: a change needs a new Version.
func TestBytesOfSelectiveAcks(t *testing.T) {
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{"sack", "570105240102030405060709d76d0000" + "00000000075bcd15" + "000000000001e240" + "8000000000000005" +
			"05060749" + "05060750" + "0007" + "0003" + "ffffffb0", encodeSack(exampleSack())},
		{"probe", "570106000102030405060709e1eb0000" + "00000000075bcd15" + "00000028c440" + "0007",
			encodeProbe(exampleProbe())},
	} {
		got := append([]byte(nil), c.got...)
		if text := hex.EncodeToString(got); text != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, text, c.want)
		}
		if tableOf(c.got).Stamp(Hop{}) {
			t.Errorf("%s: takes telemetry", c.name)
		}
	}
}

func TestSelectiveAcksRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Sack{
			CE: rapid.Bool().Draw(t, "ce"), Probe: rapid.Bool().Draw(t, "probe"), Conn: rapid.Uint32().Draw(t, "conn"),
			Expected: rapid.Uint32().Draw(t, "expected"), Bitmap: rapid.Uint64().Draw(t, "bitmap"),
			Received:   units.Bytes(rapid.Int64Min(0).Draw(t, "received")),
			OutOfOrder: rapid.Uint16().Draw(t, "ooo"), PSN: rapid.Uint32().Draw(t, "psn"),
			Due:    units.Time(rapid.Int64().Draw(t, "due")),
			OneWay: units.Time(rapid.Int32().Draw(t, "one way")) * units.Nanosecond, Path: rapid.Uint16().
				Draw(t, "path"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "behind") {
		case 1:
			a.Rated, a.BaseRate = true, units.Bandwidth(rapid.Int64Min(0).Draw(t, "rate"))
		case 2:
			a.Room = uint8(rapid.IntRange(1, MaxHops).Draw(t, "room"))
		}
		a.Base = a.Expected + rapid.Uint32Max(1<<31-1).Draw(t, "base")
		var got Sack
		if err := got.Decode(encodeSack(a)); err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		if diff := cmp.Diff(a, got); diff != "" {
			t.Fatal(diff)
		}
		p := Probe{
			Conn: rapid.Uint32().Draw(t, "conn"), PSN: rapid.Uint32().
				Draw(t, "psn"), SentAt: units.Time(rapid.Int64().Draw(t, "sent")),
			Baseline: units.Time(rapid.Int64Range(0, int64(MaxBaseline)).Draw(t, "baseline")), Path: rapid.Uint16().
					Draw(t, "path"),
		}
		var back Probe
		if err := back.Decode(encodeProbe(p)); err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Delays that do not fit are clamped: they are for statistics only.
func TestOneWayDelayIsCut(t *testing.T) {
	for _, d := range []units.Time{-units.Second * 3, units.Second * 3} {
		a := exampleSack()
		a.OneWay = d
		var got Sack
		if err := got.Decode(encodeSack(a)); err != nil || (got.OneWay < 0) != (d < 0) ||
			max(got.OneWay, -got.OneWay) < 2*units.Second {
			t.Errorf("%v came back as %v, %v", d, got.OneWay, err)
		}
	}
}

func TestSelectiveAcksRefused(t *testing.T) {
	sack, probe := encodeSack(exampleSack()), encodeProbe(exampleProbe())
	rated, asks := exampleSack(), exampleSack()
	rated.Rated, rated.BaseRate, asks.Room = true, units.Gbps, 2
	put := func(at int, v ...byte) func([]byte) { return func(b []byte) { copy(b[at:], v) } }
	again := func(b []byte, f func([]byte)) []byte { // a probe changed and sealed
		b = with(b, false, f)
		b[12], b[13] = 0, 0
		sum := checkShort(b[:ProbeSize])
		b[12], b[13] = byte(sum>>8), byte(sum)
		return b
	}
	for _, c := range []struct {
		name  string
		b     []byte
		probe bool
		want  error
	}{
		{"nothing", nil, false, ErrShort},
		{"no probe", nil, true, ErrShort},
		{"cut short", sack[:SackSize-1], false, ErrShort},
		{"probe cut short", probe[:ProbeSize-1], true, ErrShort},
		{"probe read as ack", probe, false, ErrType},
		{"ack read as probe", sack, true, ErrType},
		{"flag of data", with(sack, true, put(3, byte(Fin))), false, ErrFlags},
		{"flag on a probe", again(probe, put(3, 1)), true, ErrFlags},
		{"bitmap before the expected packet", with(sack, true, put(40, 5, 6, 7, 8)), false, ErrRange},
		{"negative sum", with(sack, true, put(24, 0x80)), false, ErrRange},
		{"payload", with(sack, true, put(15, 1)), false, ErrRange},
		{"payload of a probe", again(probe, put(15, 1)), true, ErrRange},
		{"base rate cut short", encodeSack(rated)[:SackSize+RateSize-1], false, ErrShort},
		{"negative base rate", with(encodeSack(rated), true, put(int(SackSize), 0x80)), false, ErrRange},
		{"base rate and telemetry", with(encodeSack(rated), true, put(3, byte(Rated|Telemetry))), false, ErrFlags},
		{"telemetry cut short", encodeSack(asks)[:SackSize+20], false, ErrShort},
		{"too much telemetry", with(encodeSack(asks), true, put(int(SackSize), MaxHops+1)), false, ErrRange},
		{"wrong check", with(sack, false, put(33, 9)), false, ErrCheck},
		{"wrong check on a probe", with(probe, false, put(20, 9)), true, ErrCheck},
	} {
		var err error
		if c.probe {
			err = new(Probe).Decode(c.b)
		} else {
			err = new(Sack).Decode(c.b)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func FuzzSelectiveAcks(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(encodeSack(exampleSack()))
	rated, asks := exampleSack(), exampleSack()
	rated.Rated, rated.BaseRate, asks.Room = true, units.Gbps, 2
	corpus.Add(encodeSack(rated))
	corpus.Add(encodeSack(asks))
	corpus.Add(encodeProbe(exampleProbe()))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		var a Sack
		if a.Decode(b) == nil && a.Room == 0 && !cmp.Equal(encodeSack(a), b[:a.Len()]) {
			t.Errorf("ack %x came back as %x", b[:a.Len()], encodeSack(a))
		}
		var p Probe
		if p.Decode(b) == nil && !cmp.Equal(encodeProbe(p), b[:p.Len()]) {
			t.Errorf("probe %x came back as %x", b[:p.Len()], encodeProbe(p))
		}
		if len(b) >= int(SackSize) { // past the check, which random bytes hardly get
			c := with(b, true, func([]byte) {})
			if a.Decode(c) == nil && a.Room == 0 && !cmp.Equal(encodeSack(a), c[:a.Len()]) {
				t.Errorf("ack %x came back as %x", c, encodeSack(a))
			}
		}
	})
}

func BenchmarkSack(b *testing.B) {
	a, buf := exampleSack(), make([]byte, 96)
	for b.Loop() {
		a.Encode(buf)
		if err := a.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
}
