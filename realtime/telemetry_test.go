package realtime

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// udpOf returns the UDP datagram in a frame that holds one.
func udpOf(frame []byte) []byte {
	ip := frame[ethLen:]
	return ip[int(ip[0]&0x0f)*4 : binary.BigEndian.Uint16(ip[2:])]
}

// parseFrame returns what the fabric finds in a frame.
func parseFrame(t testing.TB, frame []byte) (contents, datagram) {
	t.Helper()
	d, ok := parseIPv4(frame)
	if !ok {
		t.Fatalf("% x is no IPv4 packet", frame)
	}
	c, ok := read(frame, &d)
	if !ok {
		t.Fatalf("% x holds no datagram", frame)
	}
	return c, d
}

// hopsIn returns the INT records in the data packet of a frame.
func hopsIn(t testing.TB, frame []byte) []wire.Hop {
	t.Helper()
	c, _ := parseFrame(t, frame)
	return c.shape.Records(c.message(frame)).AppendHops(nil)
}

// tagIn returns the coordination tag of the data packet in a frame.
func tagIn(t testing.TB, frame []byte) wire.Coordination {
	t.Helper()
	c, _ := parseFrame(t, frame)
	return c.shape.Tag(c.message(frame))
}

// sealUDP writes length and checksum of the UDP datagram in frame.
func sealUDP(frame []byte) {
	udp := udpOf(frame)
	binary.BigEndian.PutUint16(udp[udpLengthAt:], uint16(len(udp)))
	binary.BigEndian.PutUint16(udp[udpSumAt:], 0)
	sum := ^checksumOfUDP(frame)
	if sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(udp[udpSumAt:], sum)
}

// checksumOfUDP returns the sum that a UDP checksum covers, computed the slow way: 0xffff if it is
// correct.
func checksumOfUDP(frame []byte) uint16 {
	udp := udpOf(frame)
	pseudo := append([]byte(nil), frame[ethLen+12:ethLen+20]...)
	pseudo = append(pseudo, 0, protoUDP, udp[udpLengthAt], udp[udpLengthAt+1])
	all := append(pseudo, udp...)
	if len(all)%2 != 0 {
		all = append(all, 0)
	}
	return onesSum(all)
}

// intFrame returns a data packet with room for a number of INT records and a payload.
func intFrame(room uint8, payload int) []byte {
	header := make([]byte, udpLen+int(wire.DataSize+wire.TelemetrySize(int(room)))+payload)
	binary.BigEndian.PutUint16(header[2:], wire.Port)
	(&wire.Data{Flags: wire.Announce, Payload: 1, Size: 1, Room: room}).Encode(header[udpLen:])
	for i := range payload {
		header[len(header)-1-i] = byte(i)
	}
	frame := udpFrame(addrOf(0), addrOf(1), 2, header)
	sealUDP(frame)
	return frame
}

func TestNotesKeepTheChecksumRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame := intFrame(uint8(rapid.IntRange(1, wire.MaxHops).Draw(t, "room")), rapid.IntRange(0, 9).Draw(t, "payload"))
		none := rapid.Bool().Draw(t, "without checksum")
		if none {
			clear(udpOf(frame)[udpSumAt:udpLen])
		}
		var hops []fabric.Hop
		for range rapid.IntRange(0, wire.MaxHops).Draw(t, "hops") {
			hops = append(hops, fabric.Hop{
				At:     units.Time(rapid.Int64Range(0, 1<<50).Draw(t, "at")),
				Sent:   units.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "sent")),
				Queued: units.Bytes(rapid.Int64Range(0, 1<<31).Draw(t, "queued")),
			})
		}
		d, _ := parseIPv4(frame)
		c, ok := read(frame, &d)
		if !ok {
			t.Fatal("no datagram")
		}
		c.note(frame, hops)
		udp := udpOf(frame)
		if none {
			if udp[udpSumAt] != 0 || udp[udpSumAt+1] != 0 {
				t.Fatal("a checksum appeared")
			}
		} else if got := checksumOfUDP(frame); got != 0xffff {
			t.Fatalf("sum %#04x under the checksum, want 0xffff", got)
		}
		if got, want := len(c.shape.Records(udp[udpLen:]).AppendHops(nil)), min(len(hops), int(udp[udpLen+int(wire.DataSize)])); got != want {
			t.Fatalf("%d records, want %d", got, want)
		}
	})
}

func TestAsksOnlyWithRoom(t *testing.T) {
	asks := func(frame []byte) bool {
		d, ok := parseIPv4(frame)
		if !ok {
			t.Fatal("malformed")
		}
		c, ok := read(frame, &d)
		return ok && c.shape.Asks()
	}
	if !asks(intFrame(3, 100)) {
		t.Error("room for three does not ask")
	}
	if asks(intFrame(0, 100)) {
		t.Error("no room asks")
	}
	if cut := intFrame(3, 0); asks(udpFrame(addrOf(0), addrOf(1), 2, udpOf(cut)[:len(udpOf(cut))-1])) {
		t.Error("a table that is cut short asks")
	}
	long := intFrame(3, 4)
	udpOf(long)[udpLengthAt+1]--
	if asks(long) {
		t.Error("a datagram that ends before its packet asks")
	}
	other := intFrame(3, 0)
	binary.BigEndian.PutUint16(udpOf(other)[2:], 80)
	if asks(other) {
		t.Error("another program's datagram asks")
	}
}

// The switch of a lab writes what it holds behind the packet and what it sent before.
func TestSwitchesNoteInFrames(t *testing.T) {
	l := startLab(t, Config{Network: twoHosts(), Dilation: 1000, Hosts: []Address{addrOf(0), addrOf(1)}})
	l.begin(1000)
	sent := intFrame(1, 100)
	for range 2 {
		l.write(0, sent)
	}
	var all []wire.Hop
	for range 2 {
		frame := l.read(1)
		if checksumOfUDP(frame) != 0xffff {
			t.Errorf("checksum is wrong: % x", frame)
		}
		all = append(all, hopsIn(t, frame)...)
	}
	if r := l.finish(); r.Broken != "" {
		t.Error(r.Broken)
	}
	size := units.Bytes(len(sent)+fcsLen) &^ 15 // records count in 16 bytes
	if len(all) != 2 || all[0].Sent != 0 || all[1].Sent != size || all[1].At <= all[0].At {
		t.Errorf("records %+v, want two, %d bytes apart", all, size)
	}
}
