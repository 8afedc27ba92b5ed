package dissector_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/internal/testenv"
	"weft/transport/wire"
	"weft/transport/wire/dissector"
	"weft/units"
)

func TestGolden(t *testing.T) { golden.Check(t, "weft.lua", string(dissector.Lua())) }

// datagram is an Ethernet frame with an IPv4 UDP datagram to the transport's port.
func datagram(payload []byte) []byte {
	b := make([]byte, 14+20+8)
	b[12], b[14], b[22], b[23] = 8, 0x45, 64, 17
	copy(b[26:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
	binary.BigEndian.PutUint16(b[16:], uint16(28+len(payload)))
	binary.BigEndian.PutUint16(b[34:], 50000)
	binary.BigEndian.PutUint16(b[36:], wire.Port)
	binary.BigEndian.PutUint16(b[38:], uint16(8+len(payload)))
	return append(b, payload...)
}

// capture writes frames as a file of tcpdump's (pcap).
func capture(t *testing.T, frames ...[]byte) string {
	t.Helper()
	var b bytes.Buffer
	for _, v := range []uint32{0xa1b2c3d4, 2 | 4<<16, 0, 0, 1 << 16, 1} {
		_ = binary.Write(&b, binary.LittleEndian, v)
	}
	for i, f := range frames {
		for _, v := range []uint32{uint32(i), 0, uint32(len(f)), uint32(len(f))} {
			_ = binary.Write(&b, binary.LittleEndian, v)
		}
		b.Write(f)
	}
	name := filepath.Join(t.TempDir(), "weft.pcap")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// tshark understands every type of packet, to the last field.
func TestTsharkUnderstandsIt(t *testing.T) {
	tshark := testenv.NeedProgram(t, "tshark")[0]
	script := filepath.Join(t.TempDir(), "weft.lua")
	if err := os.WriteFile(script, dissector.Lua(), 0o644); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, wire.DataSize+wire.TelemetrySize(2)+5)
	d := wire.Data{Flags: wire.Announce, Conn: 7, PSN: 8, Payload: 5, Message: 9, Tag: 10, Size: 5_000_000_000, SentAt: -3, Baseline: 1 << 40, Path: 4, Room: 2}
	d.Encode(data)
	d.Records(data).Stamp(wire.Hop{At: units.Second, Sent: 1600, Queued: 6400})
	sack := make([]byte, wire.SackSize)
	(&wire.Sack{CE: true, Conn: 7, Expected: 8, Base: 9, Bitmap: 0xf0f0, Received: 12, OutOfOrder: 3, PSN: 2, Due: 1, OneWay: -5 * units.Nanosecond, Path: 6}).Encode(sack)
	rated := make([]byte, wire.SackSize+wire.RateSize)
	(&wire.Sack{Conn: 7, Rated: true, BaseRate: 25_000_000_000}).Encode(rated)
	cnp := make([]byte, wire.CNPSize)
	(&wire.CNP{Conn: 7, PSN: 8, Path: 9}).Encode(cnp)
	notice := make([]byte, wire.NoticeSize)
	(&wire.Notice{Kind: wire.NeedsPath, SrcPort: 50000, Src: 5, Dst: 6, Switch: 20, At: 77}).Encode(notice)
	tagged := make([]byte, wire.DataSize+wire.CoordinationSize+5)
	(&wire.Data{Flags: wire.Announce, Payload: 5, Size: 5, Coordination: wire.Coordination{On: true, CC: true, AR: 21}}).Encode(tagged)
	credit := make([]byte, wire.CreditSize)
	(&wire.Credit{Conn: 7, Granted: 81}).Encode(credit)
	asking := make([]byte, wire.ProbeSize+wire.RequestSize)
	(&wire.Probe{Conn: 7, PSN: 8, Path: 9, Request: wire.Request{On: true, Target: 227}}).Encode(asking)
	cut := data[:20]
	for _, c := range []struct {
		frame  []byte
		fields []string
		want   string
	}{
		{data, []string{"weft.type", "weft.conn", "weft.psn", "weft.payload", "weft.data.message", "weft.data.size", "weft.data.sent", "weft.data.baseline", "weft.data.path", "weft.data.announce", "weft.hop.at", "weft.hop.sent", "weft.hop.queued"},
			"1|7|8|5|9|5000000000|-3|1099511627776|4|True|1000000000|1600|6400"},
		{sack, []string{"weft.type", "weft.sack.bitmap", "weft.sack.onewayns", "weft.sack.disorder", "weft.sack.ce", "weft.sack.probed"},
			"5|0x000000000000f0f0|-5|3|True|False"},
		{rated, []string{"weft.type", "weft.sack.rated", "weft.rate.base"}, "5|True|25000000000"},
		{cnp, []string{"weft.type", "weft.cnp.path"}, "4|9"},
		{notice, []string{"weft.type", "weft.notice.kind", "weft.notice.srcport", "weft.notice.src", "weft.notice.dst", "weft.notice.switch", "weft.notice.at"}, "8|3|50000|5|6|20|77"},
		{tagged, []string{"weft.data.size", "weft.tag.ar"}, "5|21"},
		{credit, []string{"weft.credit.granted", "weft.psn", "_ws.col.Info"}, "81||credit conn 7 granted 81"},
		{asking, []string{"weft.psn", "weft.probe.trimmable", "weft.request.target"}, "8|True|227"},
		{cut, []string{"weft.type"}, ""},
	} {
		args := []string{"-X", "lua_script:" + script, "-r", capture(t, datagram(c.frame)), "-T", "fields", "-E", "separator=|"}
		for _, f := range c.fields {
			args = append(args, "-e", f)
		}
		cmd := exec.Command(tshark, args...)
		var words bytes.Buffer
		cmd.Stderr = &words
		out, err := cmd.Output()
		got := strings.NewReplacer("|1|", "|True|", "|0|", "|False|").Replace(strings.TrimSpace(string(out)))
		got = strings.TrimSuffix(strings.ReplaceAll(got+"#", "|0#", "|False#"), "#")
		if err != nil || got != c.want {
			t.Errorf("%v: tshark says %q, want %q (%v)\n%s", c.fields, got, c.want, err, words.String())
		}
	}
}
