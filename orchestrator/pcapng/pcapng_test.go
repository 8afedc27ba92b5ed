package pcapng

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"weft/units"
)

// read is a second implementation of the format: it returns blocks whose two lengths agree.
func read(t rapid.TB, b []byte) (blocks [][]byte) {
	for len(b) > 0 {
		n := binary.LittleEndian.Uint32(b[4:])
		if n%4 != 0 || int(n) > len(b) || binary.LittleEndian.Uint32(b[n-4:]) != n {
			t.Fatalf("a block of %d bytes in % x", n, b)
		}
		blocks = append(blocks, b[:n])
		b = b[n:]
	}
	return blocks
}

func TestFramesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		w, err := NewWriter(&out, Interface{Name: rapid.String().Draw(t, "name"), Comment: "dilation 7", Snap: 96})
		if err != nil {
			t.Fatal(err)
		}
		var frames []Frame
		for range rapid.IntRange(0, 5).Draw(t, "frames") {
			f := Frame{
				At: units.Time(rapid.Int64Min(0).Draw(t, "at")), Out: rapid.Bool().Draw(t, "out"),
				Dropped: rapid.Uint32Max(2).Draw(t, "dropped"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
			}
			f.Length = len(f.Data) + rapid.IntRange(0, 9000).Draw(t, "cut")
			frames = append(frames, f)
			if err := w.Write(f); err != nil {
				t.Fatal(err)
			}
		}
		blocks := read(t, out.Bytes())
		if len(blocks) != 2+len(frames) || binary.LittleEndian.Uint32(blocks[0]) != blockSection ||
			binary.LittleEndian.Uint32(blocks[1]) != blockInterface {
			t.Fatalf("%d blocks for %d frames", len(blocks), len(frames))
		}
		for i, f := range frames {
			b := blocks[2+i]
			at := uint64(binary.LittleEndian.Uint32(b[12:]))<<32 | uint64(binary.LittleEndian.Uint32(b[16:]))
			captured, length := int(binary.LittleEndian.Uint32(b[20:])), int(binary.LittleEndian.Uint32(b[24:]))
			if at != uint64(f.At/1000) || length != f.Length || !bytes.Equal(b[28:28+captured], f.Data) {
				t.Errorf("%+v came back at %d, %d of %d bytes", f, at, captured, length)
			}
			flags := b[28+(captured+3)/4*4:]
			if want := map[bool]uint32{true: outbound, false: inbound}[f.Out]; binary.LittleEndian.Uint16(flags) != optFlags || binary.LittleEndian.Uint32(flags[4:]) != want {
				t.Errorf("flags % x", flags)
			}
			if got := binary.LittleEndian.Uint16(flags[8:]) == optDropCount; got != (f.Dropped > 0) {
				t.Errorf("%d dropped, options % x", f.Dropped, flags)
			}
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestErrors(t *testing.T) {
	if _, err := NewWriter(full{}, Interface{}); err == nil {
		t.Error("a full disk went unnoticed")
	}
	w, err := NewWriter(new(bytes.Buffer), Interface{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []Frame{{At: -1}, {Length: 1, Data: make([]byte, 2)}} {
		if err := w.Write(f); err == nil {
			t.Errorf("%+v was written", f)
		}
	}
}
