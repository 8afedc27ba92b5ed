package wire

import (
	"testing"

	"weft/units"
)

// value reads a field of a header.
func (f Field) value(b []byte) (v uint64) {
	for _, c := range b[f.At : f.At+f.Size] {
		v = v<<8 | uint64(c)
	}
	return v
}

// The layout agrees with the encoders: every field of a header is where the layout says.
func TestLayoutIsWhatEncodersWrite(t *testing.T) {
	const path, conn, psn = 0x1234, 0xc0ffee01, 0xdecade02
	buf := func(write func([]byte)) []byte {
		b := make([]byte, 256)
		write(b)
		return b
	}
	data := Data{Flags: Announce | AckNow, Conn: conn, PSN: psn, Payload: 77, Message: 3, Tag: 4, Size: 99, SentAt: -5,
		Baseline: 6, Path: path, Room: 2}
	ack := Ack{CE: true, Conn: conn, Expected: psn, SentAt: 7, OneWay: -8, BaseRate: 9, PSN: 10, Path: path, Count: 11}
	nak := ack
	nak.Nak = true
	for _, c := range []struct {
		kind  Type
		b     []byte
		flags Flags
		want  map[string]uint64
	}{
		{TypeData, buf(data.Encode), Announce | AckNow | Telemetry, map[string]uint64{
			"payload": 77, "message": 3, "tag": 4, "offset": 0, "size": 99, "sent": 1<<64 - 5, "baseline": 6, "path": path}},
		{TypeAck, buf(ack.Encode), CE, map[string]uint64{
			"payload": 0, "echo": 7, "oneway": 1<<64 - 8, "baserate": 9, "cause": 10, "path": path, "count": 11}},
		{TypeNak, buf(nak.Encode), CE, map[string]uint64{
			"payload": 0, "echo": 7, "oneway": 1<<64 - 8, "baserate": 9, "cause": 10, "path": path, "count": 11}},
		{TypeCNP, buf((&CNP{Conn: conn, PSN: psn, Path: path}).Encode), 0,
			map[string]uint64{"payload": 0, "path": path}},
		{TypeSack, buf((&Sack{
			CE: true, Probe: true, Conn: conn, Expected: psn, Base: 1, Bitmap: 2, Received: 3, OutOfOrder: 4, PSN: 5, Due: 6, OneWay: -7 * units.Nanosecond, Path: path,
		}).Encode), CE | Probed, map[string]uint64{
			"payload": 0, "due": 6, "received": 3, "bitmap": 2, "base": 1, "cause": 5, "path": path, "disorder": 4, "onewayns": 1<<32 - 7}},
		{TypeProbe, buf((&Probe{Conn: conn, PSN: psn, SentAt: 1, Baseline: 2, Path: path, Request: Request{On: true}}).Encode), Trimmable,
			map[string]uint64{
				"payload": 0, "sent": 1, "baseline": 2, "path": path}},
		{TypeTrimmed, buf((&Data{Flags: Announce, Conn: conn, PSN: psn, Payload: 77, Message: 3, Tag: 4, Size: 99, SentAt: -5,
			Baseline: 6, Path: path, Request: Request{On: true}, Trimmed: true, LastHop: true}).Encode), Announce | LastHop | Trimmable, map[string]uint64{
			"payload": 77, "message": 3, "tag": 4, "offset": 0, "size": 99, "sent": 1<<64 - 5, "baseline": 6, "path": path}},
		{TypeReject, buf((&Reject{CE: true, LastHop: true, Conn: conn, PSN: psn, Due: -5, Path: path}).Encode), CE | LastHop,
			map[string]uint64{"payload": 0, "due": 1<<64 - 5, "path": path}},
		{TypeCredit, buf((&Credit{Conn: conn, Granted: psn}).Encode), 0, map[string]uint64{"payload": 0, "granted": psn}},
		{TypePause, buf((&Pause{Host: conn, Seq: psn, Class: 1, Held: true, At: 2, Clears: 3}).Encode), held,
			map[string]uint64{
				"payload": 1, "at": 2, "clears": 3}},
		{TypeNotice, buf((&Notice{Kind: NeedsCC, Last: true, SrcPort: 1, Src: 2, Dst: 3, Switch: 4, At: 5}).Encode), 0,
			map[string]uint64{
				"payload": 0, "kind": 1, "last": 1, "srcport": 1, "src": 2, "dst": 3, "switch": 4, "at": 5}},
	} {
		var h Header
		for _, l := range Layout() {
			if l.Type == c.kind {
				h = l
			}
		}
		if h.Size == 0 || Type(c.b[2]) != c.kind {
			t.Fatalf("type %d is not in the layout", c.kind)
		}
		if c.want["conn"], c.want["psn"] = conn, psn; c.kind == TypeNotice {
			c.want["conn"], c.want["psn"] = 0, 0 // switches know none
		}
		covered := 4 // magic, version, type, flags
		for _, f := range append(Prefix(), h.Fields...) {
			covered += f.Size
			want, ok := c.want[f.Name]
			if f.Name == "check" {
				continue
			}
			if got := f.value(c.b); !ok || got != want {
				t.Errorf("%s.%s is %#x, want %#x", h.Name, f.Name, got, want)
			}
		}
		if reserved := h.Size - covered; reserved != 0 && reserved != 4 && h.Size != CNPSize { // acknowledgements have four such bytes
			t.Errorf("%s: fields cover %d of %d bytes", h.Name, covered, h.Size)
		}
		var known Flags
		for _, f := range h.Flags {
			known |= f.Bit
		}
		if Flags(c.b[3]) != c.flags || c.flags&^known != 0 {
			t.Errorf("%s: flags %#x, of %#x", h.Name, c.b[3], known)
		}
	}
}

func TestShimIsWhatEncodersWrite(t *testing.T) {
	b := make([]byte, DataSize+CoordinationSize)
	(&Data{Payload: 1, Size: 1, Flags: Announce, Coordination: Coordination{On: true, CC: true, AR: 7}}).Encode(b)
	if Flags(b[3])&Coordinated == 0 {
		t.Fatalf("flags %#x", b[3])
	}
	for i, want := range []uint64{1, 7} {
		if got := Shim()[i].value(b[DataSize:]); got != want {
			t.Errorf("%s is %d, want %d", Shim()[i].Name, got, want)
		}
	}
}

func TestRequestIsWhatEncodersWrite(t *testing.T) {
	b := make([]byte, DataSize+RequestSize)
	(&Data{Payload: 1, Size: 1, Flags: Announce, Request: Request{On: true, Target: 0x01020304}}).Encode(b)
	if got := RequestLayout()[0].value(b[DataSize:]); Flags(b[3])&Trimmable == 0 || got != 0x01020304 {
		t.Errorf("flags %#x, target %#x", b[3], got)
	}
}

func TestRateIsWhatEncodersWrite(t *testing.T) {
	b := make([]byte, SackSize+RateSize)
	(&Sack{Rated: true, BaseRate: 0x01020304}).Encode(b)
	if got := RateLayout()[0].value(b[SackSize:]); Flags(b[3])&Rated == 0 || got != 0x01020304 {
		t.Errorf("flags %#x, rate %#x", b[3], got)
	}
}

func TestTelemetryTableIsWhatStampWrites(t *testing.T) {
	b := make([]byte, DataSize+TelemetrySize(2))
	(&Data{Payload: 1, Size: 1, Flags: Announce, Room: 2}).Encode(b)
	for i := range units.Time(2) {
		if !tableOf(b).Stamp(Hop{At: (7 + i) * units.Nanosecond, Sent: 32, Queued: 128}) {
			t.Fatal("no room")
		}
	}
	l := TelemetryTable()
	second := b[int(DataSize)+l.Prefix+l.Record:]
	for i, want := range []uint64{8, 2, 2} {
		if got := l.Fields[i].value(second); got != want {
			t.Errorf("%s is %d, want %d", l.Fields[i].Name, got, want)
		}
	}
}
