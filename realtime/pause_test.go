package realtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/clock"
	"weft/internal/quiettest"
	"weft/transport/wire"
	"weft/units"
)

var network = [4]byte{10, 255, 255, 254} // where notices come from

// slowReceiver returns two hosts of which host 0 is paused, since the link of host 1 is slow.
func slowReceiver() fabric.Config {
	cfg := twoHosts()
	cfg.Ports[0].PFC[dataClass] = fabric.PFCConfig{On: true, Xoff: 1000, Xon: 500, Headroom: 100_000}
	cfg.Ports[3].Rate = units.Gbps
	cfg.Switches[0].Buffer.Total = units.MB
	return cfg
}

// readPause reads a frame of host h, which must be a pause notice of the network.
func (l *lab) readPause(h int) wire.Pause {
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

// A host hears that it is paused and that it may go on; what it sent into the pause says when it
// really left.
func TestTellsHostsOfPauses(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		const dilation = 20000 // 1 us is 20 ms
		l := startLab(t, Config{
			Network: slowReceiver(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}, Switch: network, Ahead: 50 * units.Microsecond,
		})
		scale := l.begin(dilation)
		const frames = 6
		first := scale.Lab(clock.Monotonic()) + units.Microsecond
		for i := range frames {
			header := make([]byte, udpLen+int(wire.DataSize)+800)
			binary.BigEndian.PutUint16(header[2:], wire.Port)
			binary.BigEndian.PutUint16(header[udpLengthAt:], uint16(len(header)))
			(&wire.Data{Flags: wire.Announce, Payload: 800, Size: 800, SentAt: first + units.Time(i)*units.Microsecond}).Encode(header[udpLen:])
			l.write(0, udpFrame(addrOf(0), addrOf(1), 2, header))
		}
		pause, resume := l.readPause(0), l.readPause(0)
		for pause.Held && resume.Held { // reminders
			pause, resume = resume, l.readPause(0)
		}
		if !pause.Held || resume.Held || pause.Host != 0 || pause.Class != dataClass || resume.Seq != pause.Seq+1 {
			return fmt.Errorf("told %+v and %+v, want a pause and its end", pause, resume)
		}
		if pause.At < first || resume.At <= pause.At || resume.Clears <= resume.At {
			return fmt.Errorf("told %+v and %+v: instants of lab time in order, with packets left to send", pause, resume)
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
				return fmt.Errorf("packet %d says that it left at %d", i, d.SentAt)
			}
			if last = d.SentAt; d.SentAt > first+units.Time(i)*units.Microsecond {
				later++
			}
		}
		if later == 0 {
			return errors.New("no packet says that it left later than it should have")
		}
		if r := l.finish(); r.Broken != "" || r.Refused != 0 || r.Network.Delivered != frames {
			t.Errorf("report %+v", r)
		}
		return nil
	})
}

// While a pause lasts hosts hear of it again, and once more of its end.
func TestRemindsOfPauses(t *testing.T) {
	l, err := newLoop(Config{Network: slowReceiver(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}, Switch: network}, nil)
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
			l.repeatNotices()
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
	cfg := Config{Network: slowReceiver(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}, Switch: network}
	l := startLab(t, cfg)
	l.begin(1)
	forger := Address{IP: network}
	body := make([]byte, udpLen+int(wire.PauseSize))
	binary.BigEndian.PutUint16(body[2:], wire.Port)
	(&wire.Pause{Host: 1, Seq: 99, Class: dataClass, Held: true}).Encode(body[udpLen:])
	l.write(0, udpFrame(forger, addrOf(1), 0xc0, body))
	l.write(0, udpFrame(addrOf(0), addrOf(1), 0, []byte("this one arrives")))
	if d, ok := parseIPv4(l.read(1)); !ok || d.src == binary.BigEndian.Uint32(network[:]) {
		t.Error("a host was told something by another in the network's name")
	}
	if r := l.finish(); r.Refusals[0] != (Refusals{Spoofed: 1}) {
		t.Errorf("refused %+v, want the forged notice", r.Refusals)
	}
}

// writable waits up to the given milliseconds until a host's socket can take another frame.
func (l *lab) writable(h, millis int) bool {
	l.t.Helper()
	fds := []unix.PollFd{{Fd: int32(l.hosts[h]), Events: unix.POLLOUT}}
	for {
		n, err := unix.Poll(fds, millis)
		if err == nil {
			return n > 0
		}
		if !errors.Is(err, unix.EINTR) {
			l.t.Fatal(err)
		}
	}
}

// Whatever a host runs: while its NIC is paused its frames are read up to what the NIC holds and no
// further, so that its socket stops being writable; when the pause ends it is again, and nothing
// was lost.
func TestPausedHostCannotWrite(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		cfg := slowReceiver()
		cfg.Ports[3].Rate = units.Mbps // a frame takes 8 ms: host 0 is paused nearly all the time
		l := startLab(t, Config{Network: cfg, Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}})
		l.begin(1)
		if err := unix.SetNonblock(l.hosts[0], true); err != nil {
			t.Fatal(err)
		}
		frame := udpFrame(addrOf(0), addrOf(1), 0, make([]byte, 1000))
		written := 0
		for l.writable(0, 100) {
			switch _, err := unix.Write(l.hosts[0], frame); {
			case err == nil:
				written++
			case !errors.Is(err, unix.EAGAIN):
				t.Fatal(err)
			}
		}
		var s State
		l.send(KindLook, nil)
		l.expect(KindState, &s)
		if nic := s.Ports[0]; nic.Counters.Pauses[dataClass] == 0 || nic.Queued <= maxNICQueue || nic.Queued > maxNICQueue+maxBurst*2*units.KB {
			return fmt.Errorf("%d bytes wait in the NIC after %d pauses", nic.Queued, nic.Counters.Pauses[dataClass])
		}
		if len(s.Waiting) == 0 {
			return errors.New("nobody waits for anybody")
		}
		l.send(KindChange, fabric.Change{Ports: []int{3}, Link: &fabric.Link{Rate: 10 * units.Gbps, Delay: units.Microsecond}})
		var did Did
		if l.expect(KindDid, &did); did.Error != "" {
			t.Fatal(did.Error)
		}
		for i := range written {
			if got := l.read(1); len(got) != len(frame) {
				t.Fatalf("frame %d has %d bytes", i, len(got))
			}
		}
		if !l.writable(0, int(quiettest.Patience.Milliseconds())) {
			t.Error("the socket takes nothing after the pause")
		}
		if r := l.finish(); r.Broken != "" || r.Refused != 0 || r.Network.Dropped != 0 || r.Network.Delivered != int64(written) {
			t.Errorf("%d frames were written; report %+v", written, r)
		}
		return nil
	})
}
