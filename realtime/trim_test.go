package realtime

import (
	"encoding/binary"
	"testing"

	"weft/transport/wire"
)

// A trimmed frame is a valid one of its headers alone, which say that the packet was trimmed.
func TestTrimmedFrame(t *testing.T) {
	want := wire.Data{Flags: wire.Announce, Conn: 1, PSN: 2, Payload: 1000, Size: 5000, SentAt: 3,
		Request: wire.Request{On: true, Target: 4}}
	b := make([]byte, udpLen+int(want.Len())+int(want.Payload))
	want.Encode(b[udpLen:])
	binary.BigEndian.PutUint16(b[2:], wire.Port)
	binary.BigEndian.PutUint16(b[udpLengthAt:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[udpSumAt:], 0xbeef)
	frame := udpFrame(addrOf(0), addrOf(1), 2, b)
	d, ok := parseIPv4(frame)
	if !ok {
		t.Fatal("no IPv4 frame")
	}
	c, ok := read(frame, &d)
	if !ok || c.shape.Keep() == 0 {
		t.Fatalf("read %t, %d bytes remain", ok, c.shape.Keep())
	}
	got := c.trim(frame, true)
	if len(got)+fcsLen != int(c.shape.Keep()) {
		t.Errorf("%d bytes, expected %d", len(got)+fcsLen, c.shape.Keep())
	}
	if sum := onesSum(got[ethLen : ethLen+ipMin]); sum != 0xffff {
		t.Errorf("the sum over the IPv4 header is %#x", sum)
	}
	udp := udpOf(got)
	if n := int(binary.BigEndian.Uint16(udp[udpLengthAt:])); n != len(udp) || binary.BigEndian.Uint16(udp[udpSumAt:]) != 0 {
		t.Errorf("a datagram of %d bytes says %d", len(udp), n)
	}
	var h wire.Data
	if err := h.Decode(udp[udpLen:]); err != nil || !h.Trimmed || !h.LastHop || h.PSN != 2 || h.Payload != 1000 || h.Request != want.Request {
		t.Errorf("%v, %+v", err, h)
	}
}
