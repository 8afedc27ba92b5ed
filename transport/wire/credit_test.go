package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/fuzztest"
)

func exampleReject() Reject {
	return Reject{CE: true, LastHop: true, Conn: 0x01020304, PSN: 0x05060708, Due: -9, Path: 0xfedc}
}

func encodeReject(r Reject) []byte {
	b := make([]byte, RejectSize)
	r.Encode(b)
	return b
}

func encodeCredit(c Credit) []byte {
	b := make([]byte, CreditSize)
	c.Encode(b)
	return b
}

func trimmable() Data {
	d := exampleData()
	d.Room, d.Request = 0, Request{On: true, Target: 0xfffffffe}
	return d
}

// A trimmed packet says all that the whole one said, and that it was trimmed.
func TestTrim(t *testing.T) {
	for _, last := range []bool{false, true} {
		want := trimmable()
		b := encodeData(want)
		s, err := ShapeOf(b)
		if err != nil {
			t.Fatal(err)
		}
		if keep := int(s.Keep()); keep != int(DataSize+RequestSize+Overhead) || keep != int(PeekKeep(b)) {
			t.Fatalf("%d bytes remain, PeekKeep says %d", keep, PeekKeep(b))
		}
		n := s.Trim(b, last)
		var got Data
		if err := got.Decode(b[:n]); err != nil {
			t.Fatal(err)
		}
		want.Trimmed, want.LastHop = true, last
		if !cmp.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if _, err := ShapeOf(b); !errors.Is(err, ErrType) {
			t.Errorf("a trimmed packet has a shape: %v", err)
		}
		if PeekKeep(b) != 0 {
			t.Error("a trimmed packet may be trimmed")
		}
	}
	if PeekKeep(encodeData(exampleData())) != 0 || PeekKeep(encodeCredit(Credit{})) != 0 {
		t.Error("a packet without a request may be trimmed")
	}
}

func TestCreditsAndRejectsRoundTrip(t *testing.T) {
	var r Reject
	if err := r.Decode(encodeReject(exampleReject())); err != nil || r != exampleReject() {
		t.Errorf("%v, %+v", err, r)
	}
	var c Credit
	want := Credit{Conn: 7, Granted: 1<<32 - 1}
	if err := c.Decode(encodeCredit(want)); err != nil || c != want {
		t.Errorf("%v, %+v", err, c)
	}
}

func TestCreditRefusals(t *testing.T) {
	change := func(b []byte, at int, v byte) []byte {
		b[at] = v
		b[12], b[13] = 0, 0
		sum := checkShort(b)
		b[12], b[13] = byte(sum>>8), byte(sum)
		return b
	}
	reject, credit := func() []byte { return encodeReject(exampleReject()) }, func() []byte { return encodeCredit(Credit{Conn: 1}) }
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"short", reject()[:31], ErrShort},
		{"flag", change(reject(), 3, byte(Fin)), ErrFlags},
		{"payload", change(reject(), 15, 1), ErrRange},
		{"reserved", change(reject(), 31, 1), ErrRange},
		{"credit with a flag", change(credit(), 3, byte(CE)), ErrFlags},
		{"credit, reserved", change(credit(), 20, 1), ErrRange},
	} {
		err := new(Reject).Decode(c.b)
		if Type(c.b[2]) == TypeCredit {
			err = new(Credit).Decode(c.b)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if err := new(Credit).Decode(reject()); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	damaged := credit()
	damaged[5]++
	if err := new(Credit).Decode(damaged); !errors.Is(err, ErrCheck) {
		t.Error(err)
	}
	whole := trimmable()
	for name, f := range map[string]Flags{"two things follow": Trimmable | Telemetry, "last hop, not trimmed": Trimmable | LastHop} {
		b := encodeData(whole)
		b[3] = byte(f)
		b[12], b[13] = 0, 0
		seal(b[:DataSize])
		if err := new(Data).Decode(b); !errors.Is(err, ErrFlags) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := new(Data).Decode(encodeData(whole)[:DataSize+3]); !errors.Is(err, ErrShort) {
		t.Error(err)
	}
}

// Decoding any bytes neither panics nor accepts what encoding would not write. Each input is
// decoded as it is, and with a right check, which random bytes hardly have.
func FuzzCredits(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(encodeReject(exampleReject()))
	corpus.Add(encodeCredit(Credit{Conn: 1, Granted: 2}))
	whole, cut := trimmable(), trimmable()
	cut.Trimmed, cut.LastHop = true, true
	corpus.Add(encodeData(whole))
	corpus.Add(encodeData(cut))
	asking := exampleProbe()
	asking.Request = Request{On: true, Target: 7}
	corpus.Add(encodeProbe(asking))
	corpus.Add(encodeProbe(exampleProbe()))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		decodeCredits(t, b)
		if len(b) >= int(RejectSize) {
			c := bytes.Clone(b)
			c[12], c[13] = 0, 0
			binary.BigEndian.PutUint16(c[12:], checkShort(c[:RejectSize]))
			decodeCredits(t, c)
		}
		if len(b) >= int(DataSize) {
			decodeCredits(t, append(with(b[:DataSize], true, func([]byte) {}), b[DataSize:]...))
		}
	})
}

// decodeCredits fails the test if a header in b decodes and comes back as other bytes.
func decodeCredits(t *testing.T, b []byte) {
	t.Helper()
	var r Reject
	if r.Decode(b) == nil && !cmp.Equal(encodeReject(r), b[:RejectSize]) {
		t.Errorf("rejection %x came back as %x", b[:RejectSize], encodeReject(r))
	}
	var c Credit
	if c.Decode(b) == nil && !cmp.Equal(encodeCredit(c), b[:CreditSize]) {
		t.Errorf("credit %x came back as %x", b[:CreditSize], encodeCredit(c))
	}
	var p Probe
	if p.Decode(b) == nil && !cmp.Equal(encodeProbe(p), b[:p.Len()]) {
		t.Errorf("probe %x came back as %x", b[:p.Len()], encodeProbe(p))
	}
	var d Data
	if d.Decode(b) == nil && d.Request.On && !cmp.Equal(encodeData(d), b[:d.Len()]) {
		t.Errorf("data %x came back as %x", b[:d.Len()], encodeData(d))
	}
}
