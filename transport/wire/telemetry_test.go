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

const us = units.Microsecond

func withRoom(room uint8) []byte {
	d := exampleData()
	d.Room = room
	return encodeData(d)
}

// The bytes are a protocol between nodes and switches.
func TestTelemetryBytes(t *testing.T) {
	b := withRoom(2)
	if !tableOf(b).Stamp(Hop{At: 0x0102030405 * units.Nanosecond, Sent: 0x11121314 * 16, Queued: 0x212223 * 64}) {
		t.Fatal("no room")
	}
	const want = "02010000" + "0102030405" + "11121314" + "212223" + "000000000000000000000000"
	if got := hex.EncodeToString(b[DataSize:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	c := CNP{Conn: 0x01020304, PSN: 0x05060708, Path: 9}
	cnp := make([]byte, CNPSize)
	c.Encode(cnp)
	const wantCNP = "570104000102030405060708029000000009" + "0000000000000000000000000000"
	if got := hex.EncodeToString(cnp); got != wantCNP {
		t.Errorf("got %s, want %s", got, wantCNP)
	}
	if CNPSize+Overhead != 78 {
		t.Errorf("%d bytes on the wire, RoCEv2's have 78", CNPSize+Overhead)
	}
}

// Switches append records until there is no room. The packet stays valid, and the acknowledgement
// returns the records.
func TestSwitchesStamp(t *testing.T) {
	b := withRoom(3)
	var want []Hop
	for i := range units.Bytes(3) {
		h := Hop{At: units.Time(i) * us, Sent: i * 1600, Queued: i * 6400}
		want = append(want, h)
		if !tableOf(b).Stamp(h) {
			t.Fatalf("no room for %d", i)
		}
	}
	if tableOf(b).Stamp(Hop{}) {
		t.Error("room for four records in three")
	}
	var d Data
	if err := d.Decode(b); err != nil || d.Room != 3 {
		t.Fatalf("room %d, %v", d.Room, err)
	}
	got := tableOf(b).AppendHops(nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	a := exampleAck()
	a.Room = 3
	back := encodeAck(a)
	for _, h := range got {
		tableOf(back).Stamp(h)
	}
	if err := new(Ack).Decode(back); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, tableOf(back).AppendHops(nil)); diff != "" {
		t.Error(diff)
	}
}

func TestNoTelemetry(t *testing.T) {
	cnp := make([]byte, CNPSize)
	(&CNP{}).Encode(cnp)
	for name, b := range map[string][]byte{
		"nothing": nil, "another protocol": make([]byte,
			100), "data": encodeData(exampleData()), "ack": encodeAck(exampleAck()),
		"cnp": cnp, "cut short": withRoom(2)[:DataSize+10], "cut at the header": withRoom(2)[:DataSize],
		"cnp with the flag": with(cnp, false, func(b []byte) { b[3] = byte(Telemetry) }),
	} {
		if tableOf(b).Stamp(Hop{}) {
			t.Errorf("%s: stamped", name)
		}
		if hops := tableOf(b).AppendHops(nil); len(hops) > 0 {
			t.Errorf("%s: %v", name, hops)
		}
	}
}

// tableOf returns the telemetry of a packet that can be decoded, or none.
func tableOf(b []byte) Records {
	var d Data
	if d.Decode(b) == nil {
		return d.Records(b)
	}
	var a Ack
	if a.Decode(b) == nil {
		return a.Records(b)
	}
	return Records{}
}

// A header is as long as what it says it has.
func TestLenOfHeaders(t *testing.T) {
	tagged := exampleData()
	tagged.Coordination.On = true
	for _, c := range []struct {
		d    Data
		want units.Bytes
	}{{exampleData(), 56}, {Data{Room: 1}, 72}, {Data{Room: 8}, 156}, {tagged, 60}} {
		if got := c.d.Len(); got != c.want {
			t.Errorf("%d, want %d", got, c.want)
		}
	}
	if got := (&Ack{Room: 8}).Len(); got != 152 {
		t.Errorf("%d, want 152", got)
	}
}

func TestTelemetryRefusals(t *testing.T) {
	put := func(at int, v byte) []byte {
		return with(withRoom(2), false, func(b []byte) { b[int(DataSize)+at] = v })
	}
	cnp := make([]byte, CNPSize)
	(&CNP{Conn: 7}).Encode(cnp)
	reseal := func(at int, v byte) []byte {
		b := append([]byte(nil), cnp...)
		b[at], b[12], b[13] = v, 0, 0
		check := checkShort(b[:CNPSize])
		b[12], b[13] = byte(check>>8), byte(check)
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"no room", put(0, 0), ErrRange}, {"too much room", put(0, 9), ErrRange}, {"more written than fits", put(1, 3),
			ErrRange},
		{"reserved", put(3, 1), ErrRange}, {"cut short", withRoom(2)[:DataSize+20], ErrShort}, {"no table",
			withRoom(2)[:DataSize+3], ErrShort},
	} {
		if err := new(Data).Decode(c.b); !errors.Is(err, c.want) {
			t.Errorf("data, %s: %v, want %v", c.name, err, c.want)
		}
	}
	a := exampleAck()
	a.Room = 1
	if err := new(Ack).Decode(encodeAck(a)[:AckSize+9]); !errors.Is(err, ErrShort) {
		t.Errorf("ack cut short: %v", err)
	}
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"nothing", nil, ErrShort}, {"data", withRoom(0), ErrType}, {"cut short", cnp[:CNPSize-1], ErrShort},
		{"wrong check", with(cnp, false, func(b []byte) { b[5] = 9 }), ErrCheck}, {"flags", reseal(3, 1), ErrFlags},
		{"payload", reseal(15, 1), ErrRange}, {"reserved", reseal(31, 1), ErrRange},
	} {
		if err := new(CNP).Decode(c.b); !errors.Is(err, c.want) {
			t.Errorf("cnp, %s: %v, want %v", c.name, err, c.want)
		}
	}
}

// Differences of records are exact however old a connection is: to a nanosecond, 16 bytes and 64
// bytes, within 9 minutes and 32 GiB of each other. Queues end at 1 GiB.
func TestUnwrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := Hop{
			At:   units.Time(rapid.Int64Range(0, int64(1000*3600)*int64(units.Second)).Draw(t, "at")),
			Sent: units.Bytes(rapid.Int64Range(0, 1<<55).Draw(t, "sent")),
		}
		next := Hop{
			At: last.At + units.Time(rapid.Int64Range(-int64(540*units.Second), int64(540*units.Second)).
				Draw(t, "later")),
			Sent:   last.Sent + units.Bytes(rapid.Int64Range(-1<<34, 1<<34).Draw(t, "more")),
			Queued: units.Bytes(rapid.Int64Range(0, 1<<31).Draw(t, "queued")),
		}
		if next.At < 0 || next.Sent < 0 {
			t.Skip()
		}
		b := withRoom(2)
		tableOf(b).Stamp(last)
		tableOf(b).Stamp(next)
		got := tableOf(b).AppendHops(nil)
		back := got[1].Unwrap(got[0])
		if d := (back.At - got[0].At) - (next.At - last.At); d < -units.Nanosecond || d > units.Nanosecond {
			t.Errorf("%v apart instead of %v", back.At-got[0].At, next.At-last.At)
		}
		if d := (back.Sent - got[0].Sent) - (next.Sent - last.Sent); d < -16 || d > 16 {
			t.Errorf("%d bytes apart instead of %d", back.Sent-got[0].Sent, next.Sent-last.Sent)
		}
		if want := min(next.Queued, 64*queuedMax); back.Queued > want || back.Queued < want-63 {
			t.Errorf("queue of %d instead of %d", back.Queued, want)
		}
	})
}

func TestCNPRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := CNP{Conn: rapid.Uint32().Draw(t, "conn"), PSN: rapid.Uint32().Draw(t, "psn"), Path: rapid.Uint16().
			Draw(t, "path")}
		b := make([]byte, CNPSize)
		c.Encode(b)
		var got CNP
		if err := got.Decode(b); err != nil || got != c {
			t.Fatalf("%+v: %+v, %v", c, got, err)
		}
	})
}

// Whatever counts as a header, switches write only behind it, and receivers still accept the
// packet.
func FuzzTelemetry(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(withRoom(3))
	a := exampleAck()
	a.Room = 2
	corpus.Add(encodeAck(a))
	d := exampleData()
	d.Coordination = Coordination{On: true, AR: AskSource}
	corpus.Add(encodeData(d))
	trimmed := exampleData()
	trimmed.Trimmed, trimmed.Request = true, Request{On: true}
	corpus.Add(encodeData(trimmed))
	corpus.Fuzz(func(t *testing.T, b []byte) {
		checkWriters(t, b)
		for _, n := range []units.Bytes{DataSize, AckSize} {
			if len(b) >= int(n) { // with the check that random bytes hardly have
				c := append([]byte(nil), b...)
				seal(c[:n])
				checkWriters(t, c)
			}
		}
	})
}

// checkWriters writes everything into b that switches write.
func checkWriters(t *testing.T, b []byte) {
	var d Data
	var a Ack
	shape, err := ShapeOf(b)
	if data := d.Decode(b); (err == nil) != (data == nil && !d.Trimmed) {
		t.Fatalf("shape %#x, %v; decoding data says %v, trimmed %t", shape, err, data, d.Trimmed)
	}
	room, end, table := 0, 0, Records{}
	switch {
	case err == nil:
		room, end, table = int(d.Room), int(d.Len()), shape.Records(b)
	case a.Decode(b) == nil:
		room, end, table = int(a.Room), int(a.Len()), a.Records(b)
	}
	if end > len(b) {
		t.Fatalf("a header of %d bytes in %d", end, len(b))
	}
	behind := append([]byte(nil), b[end:]...)
	stamped := len(table.AppendHops(nil))
	for table.Stamp(Hop{At: us, Sent: 1000, Queued: 64}) {
		stamped++
	}
	if got := len(table.AppendHops(nil)); got != room || stamped != room {
		t.Fatalf("%d records in room for %d, %d stamped", got, room, stamped)
	}
	tag := shape.Tag(b)
	tag.CC, tag.AR = true, 7
	shape.SetTag(b, tag)
	shape.Restamp(b, 1234)
	if string(behind) != string(b[end:]) {
		t.Fatalf("what lies behind a header of %d bytes was changed", end)
	}
	if !shape.Data() {
		return
	}
	before := d
	if err := d.Decode(b); err != nil || d.SentAt != 1234 || shape.SentAt(b) != 1234 || before.Coordination.On &&
		d.Coordination != tag {
		t.Fatalf("%+v became %+v, %v", before, d, err)
	}
	d.SentAt, d.Coordination = before.SentAt, before.Coordination
	if d != before {
		t.Fatalf("%+v became %+v", before, d)
	}
}
