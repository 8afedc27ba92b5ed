package realtime

import (
	"bytes"
	"errors"
	"testing"

	"weft/internal/fuzztest"
)

// sealPair returns the two ends of a sealed stream.
func sealPair(t testing.TB) (a, b *seal) {
	one, two := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	a, err := newSeal(Keys{Send: one, Receive: two})
	if err != nil {
		t.Fatal(err)
	}
	if b, err = newSeal(Keys{Send: two, Receive: one}); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// sealed returns the records with b.
func sealed(s *seal, b []byte) []byte {
	s.clear = append(s.clear[:0], b...)
	return s.close(nil)
}

// What is sealed opens at the other end, whatever pieces it comes in, and nothing of it can be read
// on the way.
func TestSeal(t *testing.T) {
	a, b := sealPair(t)
	var want, got, wire []byte
	for _, n := range []int{1, 100, maxSealed, maxSealed + 1, 3 * maxSealed} {
		clear := bytes.Repeat([]byte("crossing"), n/8+1)[:n]
		want = append(want, clear...)
		records := sealed(a, clear)
		if n >= 100 && bytes.Contains(records, clear[:50]) {
			t.Errorf("%d bytes can be read", n)
		}
		wire = append(wire, records...)
	}
	for piece := 1; len(wire) > 0; piece = 2*piece + 1 {
		n := min(piece, len(wire))
		b.raw, wire = append(b.raw, wire[:n]...), wire[n:]
		var err error
		if got, err = b.open(got); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got, want) || len(b.raw) > 0 {
		t.Errorf("%d bytes of %d came, %d are left", len(got), len(want), len(b.raw))
	}
}

// A record that was changed, repeated, left out, or sent back does not open.
func TestForgedRecords(t *testing.T) {
	a, b := sealPair(t)
	first, second := sealed(a, []byte("first")), sealed(a, []byte("second"))
	flipped := bytes.Clone(first)
	flipped[len(flipped)-1] ^= 1
	shorter := bytes.Clone(first)
	shorter[3]--
	for name, wire := range map[string][]byte{
		"changed": flipped, "shorter": shorter, "repeated": append(bytes.Clone(first), first...), "left out": second,
		"sent back": sealed(b, []byte("back")), "garbage": []byte("GET / HTTP/1.1"),
	} {
		_, end := sealPair(t)
		end.raw = wire
		if got, err := end.open(nil); !errors.Is(err, errSeal) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestKeysOfASeal(t *testing.T) {
	if s, err := newSeal(Keys{}); s != nil || err != nil {
		t.Errorf("no keys: %v, %v", s, err)
	}
	if _, err := newSeal(Keys{Send: make([]byte, 32)}); err == nil {
		t.Error("one key was enough")
	}
}

// Whatever comes, a seal opens what the other end sealed, or says that it is not that.
func FuzzOpen(f *testing.F) {
	a, _ := sealPair(f)
	corpus := fuzztest.New(f)
	corpus.Add(sealed(a, []byte("a crossing")))
	corpus.Fuzz(func(t *testing.T, wire []byte) {
		_, end := sealPair(t)
		end.raw = bytes.Clone(wire)
		got, err := end.open(nil)
		if err == nil && len(got) > 0 && string(got) != "a crossing" {
			t.Errorf("%q opened as %q", wire, got)
		}
	})
}
