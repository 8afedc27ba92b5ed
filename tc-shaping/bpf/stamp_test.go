package bpf

import (
	"net/netip"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"weft/internal/clock"
	"weft/tc-shaping/qdisc"
	"weft/transport/wire"
	"weft/units"
)

// A port writes its state into packets that ask for it, as long as there is room, and into no
// others.
func TestPrivStamp(t *testing.T) {
	table := loaded(t, 2)
	port := table.Port(1)
	if err := port.Set(&qdisc.Gate{Limit: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	port.Stamps = true
	p, err := port.Leave(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	from, to := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	data := wire.Data{Flags: wire.Announce, Payload: 100, Size: 100, Room: 2}
	asking := append(frame(from, to, 17, 50000, wire.Port)[:atMessage], make([]byte, int(data.Len())+100)...)
	data.Encode(asking[atMessage:])
	run := func(in []byte) (out []byte) {
		out = make([]byte, len(in)+256)
		if _, err := p.Run(&ebpf.RunOptions{Data: in, DataOut: out}); err != nil {
			t.Fatal(err)
		}
		return out[:len(in)]
	}
	hops := func(b []byte) []wire.Hop {
		t.Helper()
		var d wire.Data
		if err := d.Decode(b[atMessage:]); err != nil {
			t.Fatal(err)
		}
		return d.Records(b[atMessage:]).AppendHops(nil)
	}
	if got := hops(run(asking)); len(got) != 0 {
		t.Errorf("without a dilation there is telemetry: %+v", got)
	}
	const dilation = 1000
	table.Dilate(dilation)
	port.Reset()
	r := port.row()
	r.entered, r.enteredPackets = 50_000+uint64(len(asking)), 11
	r.left, r.leftPackets = 20_000, 5
	out := run(asking)
	got := hops(out)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	at := units.FromDuration(time.Duration(clock.Monotonic()/dilation)) % (1 << 40 * units.Nanosecond)
	if late := at - got[0].At; late < -10*units.Nanosecond || late > units.Millisecond {
		t.Errorf("at %v, want %v", got[0].At, at)
	}
	if want := units.Bytes(20_000+5*4) / 16 * 16; got[0].Sent != want {
		t.Errorf("sent %v, want %v", got[0].Sent, want)
	}
	if want := units.Bytes(30_000+5*4) / 64 * 64; got[0].Queued != want {
		t.Errorf("queued %v, want %v", got[0].Queued, want)
	}
	again := run(run(out))
	if got := hops(again); len(got) != 2 || got[1].Sent != (20_000+units.Bytes(len(asking))+6*4)/16*16 {
		t.Errorf("two records fit, and the second is of the next packet: %+v", got)
	}
	plain := wire.Data{Flags: wire.Announce, Payload: 100, Size: 100}
	other := append(frame(from, to, 17, 50000, wire.Port)[:atMessage], make([]byte, int(plain.Len())+100)...)
	plain.Encode(other[atMessage:])
	for _, in := range [][]byte{other, frame(from, to, 17, 50000, 53), frame(from, to, 6, 50000, wire.Port)} {
		if out := run(in); string(out) != string(in) {
			t.Errorf("% x became\n% x", in, out)
		}
	}
}
