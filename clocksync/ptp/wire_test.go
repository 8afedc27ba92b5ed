package ptp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/facebook/time/ptp/protocol"
	"pgregory.net/rapid"

	"weft/clocksync"
	"weft/clocksync/internal/testnet"
	"weft/internal/fuzztest"
	"weft/internal/testenv"
	"weft/units"
)

var types = []Type{Sync, DelayReq, PDelayReq, PDelayResp, FollowUp, DelayResp, PDelayRespFollowUp, Announce}

// drawMessage returns a random message of a type.
func drawMessage(t *rapid.T, typ Type) Message {
	id := func(name string) PortIdentity {
		return PortIdentity{ClockIdentity(rapid.Uint64().Draw(t, name)), rapid.Uint16().Draw(t, name+" port")}
	}
	m := Message{
		Type: typ, Domain: rapid.Uint8().Draw(t, "domain"), Flags: rapid.Uint16().Draw(t, "flags"),
		Correction: rapid.Int64().Draw(t, "correction"), Source: id("source"), Sequence: rapid.Uint16().Draw(t, "sequence"),
		LogInterval: rapid.Int8().Draw(t, "interval"),
		Timestamp:   Timestamp{rapid.Uint64Range(0, 1<<48-1).Draw(t, "s"), rapid.Uint32Range(0, 999999999).Draw(t, "ns")},
	}
	switch typ {
	case PDelayResp, DelayResp, PDelayRespFollowUp:
		m.Requesting = id("requesting")
	case Announce:
		m.Announce = DataSet{Priority1: rapid.Uint8().Draw(t, "p1"), Class: rapid.Uint8().Draw(t, "class"), Accuracy: rapid.Uint8().Draw(t, "acc"),
			Variance: rapid.Uint16().Draw(t, "var"), Priority2: rapid.Uint8().Draw(t, "p2"),
			Grandmaster: ClockIdentity(rapid.Uint64().Draw(t, "gm")), Steps: rapid.Uint16().Draw(t, "steps")}
	}
	return m
}

// facebookPacket returns m as facebook/time encodes it.
func facebookPacket(m *Message) protocol.Packet {
	var stamp protocol.Timestamp
	for i := range stamp.Seconds {
		stamp.Seconds[i] = byte(m.Timestamp.Seconds >> (40 - 8*i))
	}
	stamp.Nanoseconds = m.Timestamp.Nanoseconds
	port := func(p PortIdentity) protocol.PortIdentity {
		return protocol.PortIdentity{ClockIdentity: protocol.ClockIdentity(p.Clock), PortNumber: p.Port}
	}
	h := protocol.Header{
		SdoIDAndMsgType: protocol.NewSdoIDAndMsgType(protocol.MessageType(m.Type), 0), Version: protocol.Version,
		MessageLength: uint16(m.Type.size()), DomainNumber: m.Domain, FlagField: m.Flags,
		CorrectionField: protocol.Correction(m.Correction), SourcePortIdentity: port(m.Source), SequenceID: m.Sequence,
		ControlField: m.Type.control(), LogMessageInterval: protocol.LogInterval(m.LogInterval),
	}
	switch m.Type {
	case Sync, DelayReq:
		return &protocol.SyncDelayReq{Header: h, SyncDelayReqBody: protocol.SyncDelayReqBody{OriginTimestamp: stamp}}
	case FollowUp:
		return &protocol.FollowUp{Header: h, FollowUpBody: protocol.FollowUpBody{PreciseOriginTimestamp: stamp}}
	case DelayResp:
		return &protocol.DelayResp{Header: h, DelayRespBody: protocol.DelayRespBody{ReceiveTimestamp: stamp, RequestingPortIdentity: port(m.Requesting)}}
	case PDelayReq:
		return &protocol.PDelayReq{Header: h, PDelayReqBody: protocol.PDelayReqBody{OriginTimestamp: stamp}}
	case PDelayResp:
		return &protocol.PDelayResp{Header: h, PDelayRespBody: protocol.PDelayRespBody{RequestReceiptTimestamp: stamp, RequestingPortIdentity: port(m.Requesting)}}
	case PDelayRespFollowUp:
		return &protocol.PDelayRespFollowUp{Header: h, PDelayRespFollowUpBody: protocol.PDelayRespFollowUpBody{ResponseOriginTimestamp: stamp, RequestingPortIdentity: port(m.Requesting)}}
	}
	d := m.Announce
	return &protocol.Announce{Header: h, AnnounceBody: protocol.AnnounceBody{
		OriginTimestamp: stamp, CurrentUTCOffset: taiOffset, GrandmasterPriority1: d.Priority1,
		GrandmasterClockQuality: protocol.ClockQuality{ClockClass: protocol.ClockClass(d.Class), ClockAccuracy: protocol.ClockAccuracy(d.Accuracy), OffsetScaledLogVariance: d.Variance},
		GrandmasterPriority2:    d.Priority2, GrandmasterIdentity: protocol.ClockIdentity(d.Grandmaster), StepsRemoved: d.Steps, TimeSource: oscillator}}
}

// Every message has the same bytes as in another implementation of IEEE 1588-2019, and decodes to
// itself.
func TestBytesAreThoseOfFacebookTime(t *testing.T) {
	for _, typ := range types {
		rapid.Check(t, func(t *rapid.T) {
			m := drawMessage(t, typ)
			var b [MaxSize]byte
			n := m.Encode(b[:])
			want, err := protocol.Bytes(facebookPacket(&m))
			if err != nil {
				t.Fatal(err)
			}
			want = want[:len(want)-protocol.TrailingBytes]
			if !bytes.Equal(b[:n], want) {
				t.Fatalf("type %x:\n got %x\nwant %x", typ, b[:n], want)
			}
			var back Message
			if err := back.Decode(b[:n]); err != nil || back != m {
				t.Fatalf("read back: %+v, %v; want %+v", back, err, m)
			}
		})
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	m := Message{Type: DelayResp}
	var good [MaxSize]byte
	n := m.Encode(good[:])
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		want   error
	}{
		"empty":            {func([]byte) []byte { return nil }, ErrShort},
		"short":            {func(b []byte) []byte { return b[:n-1] }, ErrShort},
		"version 1":        {func(b []byte) []byte { b[1] = 1; return b }, ErrVersion},
		"another profile":  {func(b []byte) []byte { b[0] |= 0x10; return b }, ErrVersion},
		"management":       {func(b []byte) []byte { b[0] = 0xd; return b }, ErrType},
		"length too small": {func(b []byte) []byte { b[3] = 40; return b }, ErrLength},
		"length too large": {func(b []byte) []byte { b[2] = 1; return b }, ErrLength},
		"10^9 nanoseconds": {func(b []byte) []byte { binary.BigEndian.PutUint32(b[40:], 1e9); return b }, ErrTimestamp},
	} {
		if err := new(Message).Decode(c.change(bytes.Clone(good[:n]))); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	corpus := fuzztest.New(f)
	for _, typ := range types {
		m := Message{Type: typ, Sequence: 7, Source: PortIdentity{1, 2}}
		var b [MaxSize]byte
		corpus.Add(b[:m.Encode(b[:])])
	}
	corpus.Fuzz(func(t *testing.T, b []byte) {
		var m, again Message
		if m.Decode(b) != nil {
			return
		}
		var out [MaxSize]byte
		n := m.Encode(out[:])
		if err := again.Decode(out[:n]); err != nil || again != m {
			t.Fatalf("%x is read as %+v, written and read as %+v, %v", b, m, again, err)
		}
	})
}

// A timestamp with its correction is exact to a picosecond, even before 0.
func TestStampsKeepPicoseconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := units.Time(rapid.Int64Range(-1e18, 1e18).Draw(t, "at"))
		s, rest := stampOf(at)
		back, ok := s.instant()
		if back += clocksync.Unscaled(rest); !ok || back != at {
			t.Fatalf("%d becomes %d, %v", at, back, ok)
		}
	})
	if _, ok := (Timestamp{Seconds: 1 << 47}).instant(); ok {
		t.Error("a timestamp of four million years is taken")
	}
}

func TestIntervalsInMessages(t *testing.T) {
	for interval, want := range map[units.Time]int8{units.Second: 0, units.Millisecond: -10, 2 * units.Second: 1, units.Picosecond: -40} {
		if got := logInterval(interval); got != want {
			t.Errorf("%v: %d, want %d", interval, got, want)
		}
	}
	if validInterval(-31) || validInterval(23) || !validInterval(0) || !validInterval(0x7f) {
		t.Error("intervals that can be meant are others")
	}
}

// checksum returns the UDP checksum, computed from scratch.
func checksum(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return ^uint16(s)
}

// Wireshark decodes a capture of both mechanisms as PTP, without errors.
func TestWiresharkReadsIt(t *testing.T) {
	tshark := testenv.NeedProgram(t, "tshark")[0]
	var pcap bytes.Buffer
	for _, v := range []uint32{0xa1b2c3d4, 2 | 4<<16, 0, 0, 65535, 228} { // 228: LINKTYPE_IPV4
		_ = binary.Write(&pcap, binary.LittleEndian, v)
	}
	b := pcap.Bytes()
	copy(b[4:], []byte{2, 0, 4, 0})
	for _, peer := range []bool{false, true} {
		p := pairWorld{interval: units.Millisecond, base: units.Microsecond, skew: 1e-5, change: func(c *Config) { c.PeerDelay = peer }}
		cfg := p.config(t, 2)
		cfg.OnWire = func(at units.Time, from clocksync.Node, m *clocksync.Outgoing) {
			appendToPcap(&pcap, at, from, m)
		}
		testnet.New(cfg).Run(30 * units.Millisecond)
	}
	file := filepath.Join(t.TempDir(), "ptp.pcap")
	if err := os.WriteFile(file, pcap.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", file, "-T", "fields", "-e", "_ws.col.Protocol", "-e", "ptp.v2.messagetype", "-e", "_ws.malformed", "-e", "_ws.expert").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	seen := map[string]int{}
	for _, l := range lines {
		f := strings.Split(l+"\t\t\t", "\t")
		if f[0] != "PTPv2" || f[2] != "" || f[3] != "" {
			t.Fatalf("tshark says %q", l)
		}
		seen[f[1]]++
	}
	if len(seen) != len(types) || len(lines) < 100 {
		t.Errorf("%d messages of types %v; want all %d types", len(lines), seen, len(types))
	}
}

// appendToPcap appends a message to a pcap as an IPv4 packet.
func appendToPcap(pcap *bytes.Buffer, at units.Time, from clocksync.Node, m *clocksync.Outgoing) {
	n := 28 + m.N
	ip := make([]byte, n)
	copy(ip, []byte{0x45, 0, 0, byte(n), 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, byte(from + 1), 10, 0, 0, byte(m.To + 1)})
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:20]))
	binary.BigEndian.PutUint16(ip[20:], m.Port)
	binary.BigEndian.PutUint16(ip[22:], m.Port)
	binary.BigEndian.PutUint16(ip[24:], uint16(8+m.N))
	copy(ip[28:], m.Data[:m.N])
	us := uint32(at / units.Microsecond)
	for _, v := range []uint32{us / 1e6, us % 1e6, uint32(n), uint32(n)} {
		_ = binary.Write(pcap, binary.LittleEndian, v)
	}
	pcap.Write(ip)
}
