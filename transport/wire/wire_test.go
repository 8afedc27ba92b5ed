package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weft/internal/fuzztest"
	"weft/units"
)

func exampleData() Data {
	return Data{
		Flags: Fin, Conn: 0x01020304, PSN: 0x05060708, Payload: 4096, Message: 0x11121314, Tag: 0x21222324,
		Offset: 0x3000, Size: 0x4000, SentAt: 123_456_789, Baseline: 2_671_680, Path: 7,
	}
}

func exampleAck() Ack {
	return Ack{
		CE: true, Conn: 0x01020304, Expected: 0x05060709, PSN: 0x05060708, SentAt: 123_456_789, OneWay: -80_000,
		BaseRate: 10 * units.Gbps, Path: 7, Count: 1,
	}
}

func encodeData(d Data) []byte {
	b := make([]byte, d.Len())
	d.Encode(b)
	return b
}

func encodeAck(a Ack) []byte {
	b := make([]byte, AckSize+TelemetrySize(int(a.Room)))
	a.Encode(b)
	return b
}

// The bytes are a protocol between nodes: a change needs a new Version.
func TestBytes(t *testing.T) {
	for _, c := range []struct {
		name, want string
		got        []byte
	}{
		{"data", "570101020102030405060708fd121000" + "1112131421222324" + "0000000000003000" + "0000000000004000" +
			"00000000075bcd15" + "00000028c440" + "0007", encodeData(exampleData())},
		{"ack", "570102040102030405060709e0a00000" + "00000000075bcd15" + "fffffffffffec780" + "00000002540be400" +
			"05060708" + "0007" + "0001" + "00000000", encodeAck(exampleAck())},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestHeadersFitTheirPlace(t *testing.T) {
	if most := max(DataSize, AckSize) + TelemetrySize(MaxHops); most > 160 {
		t.Errorf("headers of up to %d bytes, at most 160", most)
	}
	// UDP 8, IPv4 20, Ethernet 14, frame check sequence 4.
	if Overhead != 8+20+14+4 {
		t.Errorf("overhead %d", Overhead)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawData(t)
		var got Data
		if err := got.Decode(encodeData(d)); err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Fatal(diff)
		}
		a := drawAck(t)
		var back Ack
		if err := back.Decode(encodeAck(a)); err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		if diff := cmp.Diff(a, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

func drawData(t *rapid.T) Data {
	size := units.Bytes(rapid.Int64Min(1).Draw(t, "size"))
	payload := units.Bytes(rapid.Int64Range(1, int64(min(size, MaxPayload))).Draw(t, "payload"))
	d := Data{
		Conn: rapid.Uint32().Draw(t, "conn"), PSN: rapid.Uint32().Draw(t, "psn"), Payload: payload,
		Message: rapid.Uint32().Draw(t, "message"), Tag: rapid.Uint32().Draw(t, "tag"),
		Offset: units.Bytes(rapid.Int64Range(0, int64(size-payload)).Draw(t, "offset")), Size: size,
		SentAt:   units.Time(rapid.Int64().Draw(t, "sent")),
		Baseline: units.Time(rapid.Int64Range(0, int64(MaxBaseline)).Draw(t, "baseline")),
		Path:     rapid.Uint16().Draw(t, "path"),
		Room:     rapid.Uint8Range(0, MaxHops).Draw(t, "room"),
	}
	if d.Offset == 0 {
		d.Flags |= Announce
	}
	if d.Offset+d.Payload == d.Size && rapid.Bool().Draw(t, "fin") {
		d.Flags |= Fin
	}
	return d
}

func drawAck(t *rapid.T) Ack {
	return Ack{
		Nak: rapid.Bool().Draw(t, "nak"), CE: rapid.Bool().Draw(t, "ce"),
		Conn: rapid.Uint32().Draw(t, "conn"), Expected: rapid.Uint32().Draw(t, "expected"), PSN: rapid.Uint32().
			Draw(t, "psn"),
		SentAt: units.Time(rapid.Int64().Draw(t, "sent")), OneWay: units.Time(rapid.Int64().Draw(t, "oneway")),
		BaseRate: units.Bandwidth(rapid.Int64Min(0).Draw(t, "rate")), Path: rapid.Uint16().Draw(t, "path"),
		Count: rapid.Uint16Min(1).Draw(t, "count"), Room: rapid.Uint8Range(0, MaxHops).Draw(t, "room"),
	}
}

// with returns b changed by f and, if asked for, sealed again.
func with(b []byte, reseal bool, f func([]byte)) []byte {
	b = append([]byte(nil), b...)
	f(b)
	if reseal {
		b[12], b[13] = 0, 0
		seal(b)
	}
	return b
}

func TestRefusals(t *testing.T) {
	data, ack := encodeData(exampleData()), encodeAck(exampleAck())
	put := func(at int, v ...byte) func([]byte) { return func(b []byte) { copy(b[at:], v) } }
	for _, c := range []struct {
		name string
		b    []byte
		ack  bool
		want error
	}{
		{"nothing", nil, false, ErrShort},
		{"half a prefix", data[:8], false, ErrShort},
		{"data cut short", data[:DataSize-1], false, ErrShort},
		{"ack cut short", ack[:AckSize-1], true, ErrShort},
		{"another protocol", with(data, true, put(0, 'w')), false, ErrMagic},
		{"another version", with(data, true, put(1, 2)), false, ErrVersion},
		{"unknown type", with(data, true, put(2, 99)), false, ErrType},
		{"ack read as data", ack, false, ErrType},
		{"data read as ack", data, true, ErrType},
		{"unknown data flag", with(data, true, put(3, byte(Probed))), false, ErrFlags},
		{"ack flag on data", with(data, true, put(3, byte(Fin|CE))), false, ErrFlags},
		{"announce in mid-message", with(data, true, put(3, byte(Announce))), false, ErrFlags},
		{"fin in mid-message", with(data, true, put(38, 0x50)), false, ErrFlags},
		{"first packet without announce", with(data, true, put(24, 0, 0, 0, 0, 0, 0, 0, 0)), false, ErrFlags},
		{"data flag on ack", with(ack, true, put(3, byte(Fin))), true, ErrFlags},
		{"no payload", with(data, true, put(14, 0, 0)), false, ErrRange},
		{"empty message", with(data, true, put(32, 0, 0, 0, 0, 0, 0, 0, 0)), false, ErrRange},
		{"negative size", with(data, true, put(32, 0x80)), false, ErrRange},
		{"negative offset", with(data, true, put(24, 0x80)), false, ErrRange},
		{"beyond the end", with(data, true, put(30, 0x30, 1)), false, ErrRange},
		{"payload in an ack", with(ack, true, put(14, 0, 1)), true, ErrRange},
		{"negative base rate", with(ack, true, put(32, 0x80)), true, ErrRange},
		{"for no packet", with(ack, true, put(46, 0, 0)), true, ErrRange},
		{"reserved field in use", with(ack, true, put(51, 1)), true, ErrRange},
		{"wrong check", with(data, false, put(4, 9)), false, ErrCheck},
		{"wrong check on ack", with(ack, false, put(4, 9)), true, ErrCheck},
	} {
		var err error
		if c.ack {
			err = new(Ack).Decode(c.b)
		} else {
			err = new(Data).Decode(c.b)
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

func TestCheckSeesEveryBit(t *testing.T) {
	for _, b := range [][]byte{encodeData(exampleData()), encodeAck(exampleAck())} {
		for bit := range 8 * len(b) {
			c := append([]byte(nil), b...)
			c[bit/8] ^= 1 << (bit % 8)
			if new(Data).Decode(c) == nil || new(Ack).Decode(c) == nil {
				t.Errorf("bit %d of byte %d changed unseen", bit%8, bit/8)
			}
		}
	}
}

func TestDecodeToleratesPayloadBehindTheHeader(t *testing.T) {
	var d Data
	if err := d.Decode(append(encodeData(exampleData()), make([]byte, 4096)...)); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(encodeData(exampleData()))
	corpus.Add(encodeAck(exampleAck()))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		var d Data
		if d.Decode(b) == nil {
			if got := encodeData(d)[:DataSize]; !cmp.Equal(got, b[:DataSize]) {
				t.Errorf("data %x came back as %x", b[:DataSize], got)
			}
		}
		var a Ack
		if a.Decode(b) == nil {
			if got := encodeAck(a)[:AckSize]; !cmp.Equal(got, b[:AckSize]) {
				t.Errorf("ack %x came back as %x", b[:AckSize], got)
			}
		}
	})
}

// FuzzResealed gets past the check, which random bytes hardly do.
func FuzzResealed(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(encodeData(exampleData()))
	corpus.Add(encodeAck(exampleAck()))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		for _, n := range []units.Bytes{DataSize, AckSize} {
			if len(b) < int(n) {
				continue
			}
			c := with(b[:n], true, func([]byte) {})
			var d Data
			if d.Decode(c) == nil && !bytes.HasPrefix(c, encodeData(d)) {
				t.Errorf("data %x came back as %x", c, encodeData(d))
			}
			var a Ack
			if a.Decode(c) == nil && !bytes.HasPrefix(c, encodeAck(a)) { // of the length of a data header it has bytes behind it
				t.Errorf("ack %x came back as %x", c, encodeAck(a))
			}
		}
	})
}

func BenchmarkData(b *testing.B) {
	d, buf := exampleData(), make([]byte, 96)
	for b.Loop() {
		d.Encode(buf)
		if err := d.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAck(b *testing.B) {
	a, buf := exampleAck(), make([]byte, 96)
	for b.Loop() {
		a.Encode(buf)
		if err := a.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
}
