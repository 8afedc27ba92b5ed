package realtime

import (
	"encoding/binary"
	"fmt"
	"testing"

	"weft/fabric"
	"weft/internal/clock"
	"weft/internal/quiettest"
	"weft/transport/wire"
	"weft/units"
)

// dataFrame returns a frame with a data packet from host 0 to host 1.
func dataFrame(d wire.Data) []byte {
	d.Flags, d.Payload, d.Size = wire.Announce, 1, 1
	header := make([]byte, udpLen+int(wire.DataSize+wire.TelemetrySize(int(d.Room)))+1)
	binary.BigEndian.PutUint16(header[2:], wire.Port)
	binary.BigEndian.PutUint16(header[udpLengthAt:], uint16(len(header)))
	d.Encode(header[udpLen:])
	return udpFrame(addrOf(0), addrOf(1), 2, header)
}

// A switch writes into packets that leave room for it, and into no others.
func TestWritesTelemetry(t *testing.T) {
	const dilation = 20000
	l := startLab(t, Config{Network: twoHosts(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}})
	scale := l.begin(dilation)
	before := scale.Lab(clock.Monotonic())
	l.write(0, dataFrame(wire.Data{Room: 1}))
	hops := hopsIn(t, l.read(1))
	if len(hops) != 1 || hops[0].At < before+units.Microsecond-units.Nanosecond || hops[0].At > scale.Lab(clock.Monotonic()) || hops[0].Sent != 0 {
		t.Errorf("after %d: %+v", before, hops)
	}
	l.write(0, dataFrame(wire.Data{Room: 1}))
	first := units.Bytes(len(dataFrame(wire.Data{Room: 1})) + fcsLen)
	if hops = hopsIn(t, l.read(1)); len(hops) != 1 || hops[0].Sent != first/16*16 {
		t.Errorf("%+v, want %d bytes sent before", hops, first)
	}
	plain := dataFrame(wire.Data{})
	l.write(0, plain)
	if got := l.read(1); string(got[6:]) != string(plain[6:]) {
		t.Errorf("a packet without room came as % x", got)
	}
	l.finish()
}

// Links go down and come up at their instants of lab time.
func TestMakesChanges(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		const dilation = 20000 // 1 us is 20 ms
		up, down := true, false
		ports := []int{0, 2}
		l := startLab(t, Config{
			Network: twoHosts(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)},
			Changes: []fabric.Change{{At: 0, Ports: ports, Up: &down}, {At: 5 * units.Microsecond, Ports: ports, Up: &up}},
		})
		scale := l.begin(dilation)
		l.write(0, udpFrame(addrOf(0), addrOf(1), 0, make([]byte, 100))) // cut off
		for scale.Lab(clock.Monotonic()) < 6*units.Microsecond {
		}
		frame := udpFrame(addrOf(0), addrOf(1), 0, make([]byte, 200))
		l.write(0, frame)
		if got := l.read(1); len(got) != len(frame) {
			return fmt.Errorf("%d bytes came, want the second frame of %d", len(got), len(frame))
		}
		if r := l.finish(); r.Network.Cut != 1 || r.Network.Delivered != 1 || r.Broken != "" {
			return fmt.Errorf("report %+v", r.Network)
		}
		return nil
	})
}

// While PFC holds a host back its packets come late by right; one that was ready afterwards does
// not.
func TestLatenessUnderPFCIsNotTheMachines(t *testing.T) {
	cfg := twoHosts()
	cfg.Ports[0].PFC[1] = fabric.PFCConfig{On: true, Xoff: 1000, Headroom: 100_000}
	cfg.Ports[3].Rate = units.Gbps
	cfg.Switches[0].Buffer.Total = units.MB
	l, err := newLoop(Config{Network: cfg, Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	us := units.Microsecond
	if !l.blames(0, 10*us, 5*us) {
		t.Error("nothing holds the host back, and a late packet is excused")
	}
	for range 10 { // the second of them waits in the switch and has the host paused
		p := l.net.Get()
		p.Src, p.Dst, p.Size, p.Class = 0, 1, 4000, 1
		l.net.Inject(0, p)
	}
	for !l.net.NICs.Paused(0) {
		id, at, _ := l.events.Pop()
		l.net.Fire(at, id)
	}
	if l.blames(0, 20*us, 15*us) {
		t.Error("a paused host is blamed")
	}
	if l.blames(0, 21*us, 15*us) || l.ports[0].heldUntil != 21*us {
		t.Errorf("held back until %d", l.ports[0].heldUntil)
	}
}
