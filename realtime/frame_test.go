package realtime

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"

	"weft/fabric"
	"weft/internal/fuzztest"
)

// ipFrame returns a frame with an IPv4 header of hl bytes and a correct checksum, then body.
func ipFrame(tos, proto uint8, fragment uint16, src, dst uint32, hl int, body []byte) []byte {
	f := make([]byte, ethLen+hl+len(body))
	binary.BigEndian.PutUint16(f[ethTypeAt:], typeIPv4)
	ip := f[ethLen:]
	ip[0], ip[1], ip[8], ip[9] = 0x40|uint8(hl/4), tos, 64, proto
	binary.BigEndian.PutUint16(ip[2:], uint16(hl+len(body)))
	binary.BigEndian.PutUint16(ip[6:], fragment)
	binary.BigEndian.PutUint32(ip[12:], src)
	binary.BigEndian.PutUint32(ip[16:], dst)
	binary.BigEndian.PutUint16(ip[10:], ^onesSum(ip[:hl]))
	copy(ip[hl:], body)
	return f
}

// onesSum returns the checksum of RFC 1071, computed the slow way. A correct header makes it
// 0xffff.
func onesSum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

func TestParseReadsTheFiveTuple(t *testing.T) {
	udp := []byte{0x30, 0x39, 0x12, 0xb9, 0, 8, 0, 0} // 12345 -> 4793
	for _, c := range []struct {
		name  string
		frame []byte
		want  datagram
	}{
		{"udp", ipFrame(0xc2, protoUDP, 0x4000, 1, 2, 20, udp), datagram{1, 2, protoUDP, 0xc2, 12345, 4793, 34, false}},
		{"options", ipFrame(0, protoTCP, 0, 1, 2, 28, udp), datagram{1, 2, protoTCP, 0, 12345, 4793, 0, false}},
		{"icmp", ipFrame(0, 1, 0, 1, 2, 20, udp), datagram{1, 2, 1, 0, 0, 0, 0, false}},
		{"first fragment", ipFrame(0, protoUDP, 0x2000, 1, 2, 20, udp), datagram{1, 2, protoUDP, 0, 0, 0, 0, true}},
		{"last fragment", ipFrame(0, protoUDP, 0x0007, 1, 2, 20, udp), datagram{1, 2, protoUDP, 0, 0, 0, 0, true}},
	} {
		if got, ok := parseIPv4(c.frame); !ok || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, ok, c.want)
		}
	}
}

// An ICMP error answers another packet; an echo request does not, and nor does what is no whole
// ICMP message.
func TestICMPErrors(t *testing.T) {
	unreachable := []byte{3, 3, 0, 0}
	for _, c := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"port unreachable", ipFrame(0xc0, protoICMP, 0, 1, 2, 20, unreachable), true},
		{"with options", ipFrame(0xc0, protoICMP, 0, 1, 2, 28, unreachable), true},
		{"time exceeded", ipFrame(0, protoICMP, 0, 1, 2, 20, []byte{11}), true},
		{"echo request", ipFrame(0, protoICMP, 0, 1, 2, 20, []byte{8, 0}), false},
		{"empty", append(ipFrame(0, protoICMP, 0, 1, 2, 20, nil), 3), false},
		{"fragment", ipFrame(0, protoICMP, 0x0007, 1, 2, 20, unreachable), false},
		{"udp", ipFrame(0, protoUDP, 0, 1, 2, 20, []byte{3, 3, 0, 0, 0, 8, 0, 0}), false},
	} {
		d, ok := parseIPv4(c.frame)
		if got := icmpError(c.frame, &d); !ok || got != c.want {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, ok, c.want)
		}
	}
}

func TestParseRefusesWhatIsNotIPv4(t *testing.T) {
	good := ipFrame(0, protoUDP, 0, 1, 2, 20, make([]byte, 8))
	broken := map[string]func([]byte) []byte{
		"cut":           func(f []byte) []byte { return f[:ethLen+19] },
		"version 6":     func(f []byte) []byte { f[ethLen] = 0x65; return f },
		"short header":  func(f []byte) []byte { f[ethLen] = 0x44; return f },
		"header > size": func(f []byte) []byte { f[ethLen] = 0x4f; return f },
		"size > frame":  func(f []byte) []byte { f[ethLen+3]++; return f },
	}
	for name, change := range broken {
		if d, ok := parseIPv4(change(bytes.Clone(good))); ok {
			t.Errorf("%s: accepted as %+v", name, d)
		}
	}
	if got := etherType(good[:13]); got != 0 {
		t.Errorf("a frame of 13 bytes has type %#x", got)
	}
}

func TestClassAndECNComeFromTheTOS(t *testing.T) {
	for tos, want := range map[uint8]struct {
		class uint8
		ecn   fabric.ECN
	}{0: {1, fabric.NotECT}, 0x02: {1, fabric.ECT0}, 0xb8: {1, fabric.NotECT}, 0xc0: {0, fabric.NotECT}, 0xe3: {0, fabric.CE}} {
		d := datagram{tos: tos}
		if d.class() != want.class || d.ecn() != want.ecn {
			t.Errorf("TOS %#x: class %d, ECN %d, want %+v", tos, d.class(), d.ecn(), want)
		}
	}
}

// RFC 1624, section 4: the example whose naive update gives 0xffff where 0x0000 is right.
func TestUpdateChecksumOfTheRFC(t *testing.T) {
	if got := updateChecksum(0xdd2f, 0x5555, 0x3285); got != 0x0000 {
		t.Errorf("got %#04x, want 0x0000", got)
	}
}

func TestMarkKeepsTheChecksumRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u32 := rapid.Uint32()
		f := ipFrame(rapid.Uint8().Draw(t, "tos"), protoUDP, rapid.Uint16().Draw(t, "fragment"),
			u32.Draw(t, "src"), u32.Draw(t, "dst"), 20+4*rapid.IntRange(0, 10).Draw(t, "options"), make([]byte, 8))
		before := bytes.Clone(f)
		markCE(f)
		hl := int(f[ethLen]&15) * 4
		if sum := onesSum(f[ethLen : ethLen+hl]); sum != 0xffff {
			t.Fatalf("header sums to %#04x after marking, want 0xffff: %x", sum, f)
		}
		d, ok := parseIPv4(f)
		if !ok || d.ecn() != fabric.CE || d.tos|3 != before[ipTOSAt]|3 {
			t.Fatalf("marked frame reads %+v, %v", d, ok)
		}
	})
}

func TestARPReply(t *testing.T) {
	request, _ := hex.DecodeString("ffffffffffff" + "02000000000a" + "0806" + "0001080006040001" +
		"02000000000a" + "0a000001" + "000000000000" + "0a000002" + "0000") // two bytes of padding
	target, ok := arpQuery(request)
	if !ok || target != 0x0a000002 {
		t.Fatalf("asks for %#x, %v, want 0x0a000002", target, ok)
	}
	want := "02000000000a" + "02000000000b" + "0806" + "0001080006040002" +
		"02000000000b" + "0a000002" + "02000000000a" + "0a000001"
	if got := hex.EncodeToString(answerARP(request, MAC{2, 0, 0, 0, 0, 0x0b})); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	reply, _ := hex.DecodeString(want)
	if _, ok := arpQuery(reply); ok {
		t.Error("a reply is taken for a request")
	}
	request[17] = 5 // protocol address of 5 bytes... of another protocol
	if _, ok := arpQuery(request); ok {
		t.Error("an ARP packet for another protocol is taken for IPv4's")
	}
}

func FuzzFrame(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(ipFrame(0xc2, protoUDP, 0, 1, 2, 24, make([]byte, 12)))
	corpus.Add(make([]byte, ethLen+arpLen))
	corpus.Fuzz(func(t *testing.T, frame []byte) {
		if d, ok := parseIPv4(frame); ok {
			markCE(frame)
			if again, ok := parseIPv4(frame); !ok || again.ecn() != fabric.CE || again.dst != d.dst || again.sport != d.sport {
				t.Fatalf("marking changed %+v to %+v, %v", d, again, ok)
			}
		}
		if _, ok := arpQuery(frame); ok {
			answerARP(frame, MAC{})
		}
		etherType(frame)
	})
}
