package realtime

import (
	"encoding/binary"
	"testing"

	"weft/fabric"
	"weft/internal/clock"
	"weft/transport/wire"
	"weft/units"
)

// ccmSwitch returns two hosts and a switch that runs CCM and whose link to host 1 is slow.
func ccmSwitch() Config {
	cfg := twoHosts()
	sw := &cfg.Switches[0]
	sw.Balance, sw.Route = fabric.CCM, []int32{0, 1, -1}
	for i := range cfg.Ports {
		cfg.Ports[i].Light, cfg.Ports[i].Congested = 1000, 2000
	}
	cfg.Ports[3].Rate = units.Gbps
	cfg.Port = wire.Port
	cfg.CCM = &fabric.CCMConfig{RTT: 10 * units.Microsecond, Every: 50 * units.Microsecond, Refresh: 250 * units.Microsecond}
	return Config{
		Network: cfg, Dilation: 20000, Hosts: []Address{addrOf(0), addrOf(1)}, Ahead: 50 * units.Microsecond,
		Switches: [][4]byte{{10, 128, 0, 1}},
	}
}

// Tags are read from frames and written to them; a switch tells the source of an incast in a
// datagram from its own address; and what hosts send to switches, or in their names, goes nowhere
// and is counted.
func TestCoordinationInFrames(t *testing.T) {
	cfg := ccmSwitch()
	l := startLab(t, cfg)
	scale := l.begin(cfg.Dilation)
	const frames = 8
	first := scale.Lab(clock.Monotonic()) + units.Microsecond
	for i := range frames {
		header := make([]byte, udpLen+int(wire.DataSize)+wire.CoordinationSize+800)
		binary.BigEndian.PutUint16(header, 50001)
		binary.BigEndian.PutUint16(header[2:], wire.Port)
		binary.BigEndian.PutUint16(header[udpLengthAt:], uint16(len(header)))
		(&wire.Data{
			Flags: wire.Announce, Payload: 800, Size: 800, SentAt: first + units.Time(i)*units.Microsecond,
			Coordination: wire.Coordination{On: true, AR: wire.AskSource},
		}).Encode(header[udpLen:])
		frame := udpFrame(addrOf(0), addrOf(1), 2, header)
		sealUDP(frame)
		l.write(0, frame)
	}
	forged := make([]byte, udpLen+wire.NoticeSize)
	binary.BigEndian.PutUint16(forged[2:], wire.Port)
	binary.BigEndian.PutUint16(forged[udpLengthAt:], uint16(len(forged)))
	(&wire.Notice{Kind: wire.NeedsCC, Src: 0, Dst: 1, SrcPort: 50001, Switch: 2, At: 1}).Encode(forged[udpLen:])
	l.write(1, udpFrame(Address{IP: cfg.Switches[0], MAC: addrOf(1).MAC}, addrOf(0), 0xc0, forged)) // in the switch's name
	l.write(1, udpFrame(addrOf(1), Address{IP: cfg.Switches[0]}, 0xc0, forged))                     // to the switch

	frame := l.read(0)
	d, ok := parseIPv4(frame)
	if !ok || onesSum(frame[ethLen:ethLen+ipMin]) != 0xffff || d.src != binary.BigEndian.Uint32(cfg.Switches[0][:]) || d.dport != wire.Port || d.class() != 0 {
		t.Fatalf("%+v is no datagram of the switch: % x", d, frame)
	}
	var n wire.Notice
	if err := n.Decode(udpOf(frame)[udpLen:]); err != nil {
		t.Fatal(err)
	}
	if n.Kind != wire.NeedsCC || n.Last || n.Src != 0 || n.Dst != 1 || n.SrcPort != 50001 || n.Switch != 2 || n.At < first {
		t.Errorf("told %+v", n)
	}
	for range frames {
		frame := l.read(1)
		if got, want := tagIn(t, frame), (wire.Coordination{On: true, AR: wire.AskSource}); got != want {
			t.Errorf("tag %+v, want %+v", got, want)
		}
		if got := checksumOfUDP(frame); got != 0xffff {
			t.Errorf("sum %#04x under the checksum", got)
		}
	}
	r := l.finish()
	if r.Broken != "" || r.Refused != 0 || r.Refusals[1] != (Refusals{NotRouted: 1, Spoofed: 1}) || r.Network.CCM.Notes[fabric.NeedsCC] == 0 {
		t.Errorf("report %+v", r)
	}
}

// The tag that switches leave is what the frame gets, under a right checksum.
func TestTagsKeepTheChecksumRight(t *testing.T) {
	header := make([]byte, udpLen+int(wire.DataSize)+wire.CoordinationSize+5)
	binary.BigEndian.PutUint16(header[2:], wire.Port)
	(&wire.Data{Flags: wire.Announce, Payload: 5, Size: 5, Coordination: wire.Coordination{On: true}}).Encode(header[udpLen:])
	frame := udpFrame(addrOf(0), addrOf(1), 2, header)
	sealUDP(frame)
	c, _ := parseFrame(t, frame)
	c.writeTag(frame, fabric.Tag{On: true, CC: true, AR: 0x1234})
	if got, want := tagIn(t, frame), (wire.Coordination{On: true, CC: true, AR: 0x1234}); got != want {
		t.Errorf("tag %+v, want %+v", got, want)
	}
	if got := checksumOfUDP(frame); got != 0xffff {
		t.Errorf("sum %#04x under the checksum", got)
	}
}

// Captures of ports show notifications as they are, to hosts and to switches, and tags as the last
// switch left them.
func TestCapturesShowCoordination(t *testing.T) {
	cfg := ccmSwitch()
	l, err := newLoop(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	note := fabric.Note{Type: fabric.NeedsPath, Src: 0, Dst: 1, SrcPort: 50001, Switch: 2, At: 7}
	for dst, ip := range map[fabric.HostID][4]byte{0: cfg.Hosts[0].IP, 2: cfg.Switches[0]} {
		frame := l.notification(nil, dst, &note)
		d, ok := parseIPv4(frame)
		var n wire.Notice
		if !ok || d.dst != binary.BigEndian.Uint32(ip[:]) || n.Decode(udpOf(frame)[udpLen:]) != nil || n.Kind != wire.NeedsPath || n.At != 7 {
			t.Errorf("to %d: %+v, %+v", dst, d, n)
		}
	}
	header := make([]byte, udpLen+int(wire.DataSize)+wire.CoordinationSize+5)
	binary.BigEndian.PutUint16(header[2:], wire.Port)
	(&wire.Data{Flags: wire.Announce, Payload: 5, Size: 5, Coordination: wire.Coordination{On: true}}).Encode(header[udpLen:])
	frame := udpFrame(addrOf(0), addrOf(1), 2, header)
	sealUDP(frame)
	var seen []byte
	l.net.Observers.Trace(func(_ units.Time, _ int, p *fabric.Packet, _ fabric.ECN) { seen = append([]byte(nil), l.frameOf(p)...) })
	p := l.packet()
	p.Header = append(p.Header[:0], frame...)
	c, d := parseFrame(t, p.Header)
	fill(p, 0, 1, &d)
	p.Context = c.pack()
	readTag(p, c, &d)
	p.Tag.AR = 9 // as a switch leaves it
	l.net.Inject(0, p)
	if got := tagIn(t, seen); !got.On || got.AR != 9 {
		t.Errorf("captured tag %+v", got)
	}
}
