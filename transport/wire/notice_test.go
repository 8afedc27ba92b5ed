package wire

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"weft/internal/fuzztest"
	"weft/units"
)

func TestNoticeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Notice{
			Kind: NoticeKind(rapid.IntRange(1, 3).Draw(t, "kind")), SrcPort: rapid.Uint16().Draw(t, "port"),
			Src: rapid.Uint32().Draw(t, "src"), Dst: rapid.Uint32().Draw(t, "dst"),
			Switch: rapid.Uint32().Draw(t, "switch"), At: units.Time(rapid.Int64Min(0).Draw(t, "at")),
		}
		want.Last = want.Kind == NeedsCC && rapid.Bool().Draw(t, "last")
		var b [NoticeSize]byte
		want.Encode(b[:])
		var got Notice
		if err := got.Decode(b[:]); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		b[rapid.IntRange(0, NoticeSize-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if err := got.Decode(b[:]); err == nil {
			t.Fatalf("% x was accepted as %+v", b, got)
		}
	})
}

// Each case changes a valid notice, whose checksum is then corrected, so that only what the case
// names is wrong.
func TestNoticeRefusals(t *testing.T) {
	change := func(f func(b []byte)) []byte {
		var b [NoticeSize]byte
		(&Notice{Kind: NeedsCC}).Encode(b[:])
		f(b[:])
		b[12], b[13] = 0, 0
		c := checkShort(b[:NoticeSize])
		b[12], b[13] = byte(c>>8), byte(c)
		return b[:]
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"kind 0":             {change(func(b []byte) { b[16] = 0 }), ErrRange},
		"kind 4":             {change(func(b []byte) { b[16] = 4 }), ErrRange},
		"last 2":             {change(func(b []byte) { b[17] = 2 }), ErrRange},
		"a release for last": {change(func(b []byte) { b[16], b[17] = 2, 1 }), ErrRange},
		"a connection":       {change(func(b []byte) { b[4] = 1 }), ErrRange},
		"payload":            {change(func(b []byte) { b[15] = 1 }), ErrRange},
		"before lab time":    {change(func(b []byte) { b[32] = 0x80 }), ErrRange},
		"flags":              {change(func(b []byte) { b[3] = 1 }), ErrFlags},
		"another type":       {change(func(b []byte) { b[2] = byte(TypeCNP) }), ErrType},
		"cut short":          {change(func([]byte) {})[:NoticeSize-1], ErrShort},
	} {
		var n Notice
		if err := n.Decode(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzNotice(f *testing.F) {
	corpus := fuzztest.New(f)
	var b [NoticeSize]byte
	(&Notice{Kind: NeedsPath, Src: 1, Dst: 2, SrcPort: 3, Switch: 9, At: 77}).Encode(b[:])
	corpus.Add(b[:])
	corpus.Fuzz(func(t *testing.T, b []byte) {
		var n Notice
		if n.Decode(b) != nil {
			return
		}
		var again [NoticeSize]byte
		n.Encode(again[:])
		if string(again[:]) != string(b[:NoticeSize]) {
			t.Errorf("% x decodes to %+v, which is % x", b[:NoticeSize], n, again)
		}
	})
}

// A switch reads and writes only the tag of a data packet, in place.
func TestCoordinationInPlace(t *testing.T) {
	d := Data{PSN: 5, Payload: 100, Size: 1000, Offset: 300, Coordination: Coordination{On: true, AR: AskSource}}
	b := make([]byte, DataSize+CoordinationSize)
	d.Encode(b)
	if n := d.Len(); int(n) != len(b) {
		t.Errorf("%d bytes", n)
	}
	if got := PeekCoordination(b); got != d.Coordination {
		t.Errorf("%+v", got)
	}
	shape, err := ShapeOf(b)
	if err != nil || shape.Tag(b) != d.Coordination {
		t.Errorf("%+v, %v", shape.Tag(b), err)
	}
	shape.SetTag(b, Coordination{On: true, CC: true, AR: 7})
	var got Data
	if err := got.Decode(b); err != nil || got.Coordination != (Coordination{On: true, CC: true, AR: 7}) ||
		got.PSN != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct {
		change func()
		want   error
	}{
		{func() { b[DataSize] = 2 }, ErrRange},
		{func() { b[DataSize], b[DataSize+1] = 0, 1 }, ErrRange},
		{func() { b = b[:DataSize+3] }, ErrShort},
	} {
		c.change()
		if err := got.Decode(b); !errors.Is(err, c.want) {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
	if got := PeekCoordination(b); got.On {
		t.Errorf("a shim that is cut short: %+v", got)
	}
	plain := Data{Payload: 1, Size: 1, Flags: Announce}
	b = make([]byte, DataSize)
	plain.Encode(b)
	if shape, err = ShapeOf(b); err != nil {
		t.Fatal(err)
	}
	shape.SetTag(b, Coordination{On: true})
	if shape.Tag(b).On || PeekCoordination(b).On || got.Decode(b) != nil || got.Coordination.On {
		t.Errorf("a packet without a tag has one: %+v", got)
	}
}
