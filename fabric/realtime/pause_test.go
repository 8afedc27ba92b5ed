package realtime

import (
	"encoding/binary"
	"testing"

	"weft/fabric"
	"weft/internal/clock"
	"weft/transport/wire"
	"weft/units"
)

var network = [4]byte{10, 255, 255, 254} // where notices come from

// jammed is two hosts, of which host 0 is paused by what it sends to host 1, whose line is slow.
func jammed() fabric.Config {
	cfg := pair()
	cfg.Ports[0].PFC[dataClass] = fabric.PFCConfig{On: true, Xoff: 1000, Xon: 500, Headroom: 100_000}
	cfg.Ports[3].Rate = units.Gbps
	cfg.Switches[0].Buffer.Total = units.MB
	return cfg
}

// notice reads a frame that host h gets, which must be a notice of the network.
func (l *lab) notice(h int) wire.Pause {
	l.t.Helper()
	frame := l.read(h)
	d, ok := parseIPv4(frame)
	if !ok || onesSum(frame[ethLen:ethLen+ipMin]) != 0xffff || d.src != binary.BigEndian.Uint32(network[:]) || d.dport != wire.Port {
		l.t.Fatalf("%+v is no datagram of the network: % x", d, frame)
	}
	var p wire.Pause
	if err := p.Decode(udpOf(frame)[udpLen:]); err != nil {
		l.t.Fatal(err)
	}
	return p
}

// A host hears that it is paused and that it may go on; what it sent into the pause says when it really left.
func TestTellsHostsOfPauses(t *testing.T) {
	const dilation = 20000 // 1 us is 20 ms
	l := start(t, Config{
		Network: jammed(), Dilation: dilation, Hosts: []Address{host(0), host(1)}, Switch: network, Ahead: 50 * units.Microsecond,
	})
	scale := l.begin(dilation)
	const frames = 6
	first := scale.Lab(clock.Monotonic()) + units.Microsecond
	for i := range frames {
		header := make([]byte, udpLen+int(wire.DataSize)+800)
		binary.BigEndian.PutUint16(header[2:], wire.Port)
		binary.BigEndian.PutUint16(header[udpLengthAt:], uint16(len(header)))
		(&wire.Data{Flags: wire.Announce, Payload: 800, Size: 800, SentAt: first + units.Time(i)*units.Microsecond}).Encode(header[udpLen:])
		l.write(0, between(host(0), host(1), 2, header))
	}
	pause, resume := l.notice(0), l.notice(0)
	for pause.Held && resume.Held { // reminders
		pause, resume = resume, l.notice(0)
	}
	if !pause.Held || resume.Held || pause.Host != 0 || pause.Class != dataClass || resume.Seq != pause.Seq+1 {
		t.Errorf("told %+v and %+v, want a pause and its end", pause, resume)
	}
	if pause.At < first || resume.At <= pause.At || resume.Clears <= resume.At {
		t.Errorf("told %+v and %+v: instants of lab time in order, with packets left to send", pause, resume)
	}
	later := 0
	var last units.Time
	for i := range frames {
		frame := l.read(1)
		var d wire.Data
		if err := d.Decode(udpOf(frame)[udpLen:]); err != nil {
			t.Fatal(err)
		}
		if d.SentAt < first+units.Time(i)*units.Microsecond || d.SentAt <= last {
			t.Errorf("packet %d says that it left at %d", i, d.SentAt)
		}
		if last = d.SentAt; d.SentAt > first+units.Time(i)*units.Microsecond {
			later++
		}
	}
	if later == 0 {
		t.Error("no packet says that it left later than it should have")
	}
	if r := l.finish(); r.Broken != "" || r.Refused != 0 || r.Network.Delivered != frames {
		t.Errorf("report %+v", r)
	}
}

// While a pause lasts hosts hear of it again, and once more of its end.
func TestRemindsOfPauses(t *testing.T) {
	l, err := newLoop(Config{Network: jammed(), Dilation: 1, Hosts: []Address{host(0), host(1)}, Switch: network}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for h := range l.ports {
		l.ports[h].gone = true // nobody reads
	}
	remind := func(paused bool, want ...uint32) {
		t.Helper()
		l.pauses(0, 0, dataClass, paused)
		for _, n := range want {
			l.remind()
			if l.ports[0].told != n {
				t.Errorf("told %d times, want %d", l.ports[0].told, n)
			}
		}
	}
	remind(true, 2, 3, 4)
	remind(false, 6, 6)
	l.pauses(0, 0, 0, true)
	if l.ports[0].told != 6 || l.ports[1].told != 0 {
		t.Error("told of a class that is never paused, or a host of another's")
	}
}

// No host may speak as the network, to itself or to others; and no host has its address.
func TestDropsForgedNotices(t *testing.T) {
	cfg := Config{Network: jammed(), Dilation: 1, Hosts: []Address{host(0), host(1)}, Switch: network}
	l := start(t, cfg)
	l.begin(1)
	forger := Address{IP: network}
	body := make([]byte, udpLen+int(wire.PauseSize))
	binary.BigEndian.PutUint16(body[2:], wire.Port)
	(&wire.Pause{Host: 1, Seq: 99, Class: dataClass, Held: true}).Encode(body[udpLen:])
	l.write(0, between(forger, host(1), 0xc0, body))
	l.write(0, between(host(0), host(1), 0, []byte("this one arrives")))
	if d, ok := parseIPv4(l.read(1)); !ok || d.src == binary.BigEndian.Uint32(network[:]) {
		t.Error("a host was told something by another in the network's name")
	}
	if r := l.finish(); r.NotRouted != 1 {
		t.Errorf("%d not routed, want the forged notice", r.NotRouted)
	}
	cfg.Switch = host(1).IP
	if _, err := newLoop(cfg, nil); err == nil {
		t.Error("a host may have the network's address")
	}
}
