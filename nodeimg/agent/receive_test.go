package agent

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/host"
	"weft/internal/clock"
	"weft/internal/fuzztest"
	"weft/transport"
	"weft/transport/cc/strack"
	"weft/transport/wire"
	"weft/units"
)

var loopback = [4]byte{127, 0, 0, 1}

func listenSocket(t *testing.T, port int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback, Port: port}); err != nil {
		t.Skipf("port %d of the loopback is taken: %v", port, err)
	}
	return fd
}

func TestSendAndReceive(t *testing.T) {
	r, err := newReceiver(listenSocket(t, wire.Port), newTray(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	s := newSenders(loopback, [][4]byte{loopback})
	defer s.close()
	before := clock.Monotonic()
	header := [transport.MaxHeader]byte{'h', 'd'}
	packets := []struct {
		out     transport.Outgoing
		payload string
		tos     uint8
	}{
		{transport.Outgoing{SrcPort: 50001, Class: 1, ECT: true, N: 2, Header: header}, "payload", tosECT0},
		{transport.Outgoing{SrcPort: 50001, Class: 0, N: 2, Header: header}, "", wire.TOSControl},
		{transport.Outgoing{SrcPort: 50001, Class: 1, N: 2, Header: header}, "other", 0},
	}
	for i := range packets {
		if taken, err := s.send(&packets[i].out, []byte(packets[i].payload), nil, 0); err != nil || !taken {
			t.Fatalf("send: taken %v, %v", taken, err)
		}
	}
	if len(s.sockets) != 3 {
		t.Errorf("%d sockets for three TOS values, want 3", len(s.sockets))
	}
	after := clock.Monotonic()
	offset := clock.RealtimeOffset()
	slack := 100_000 + clock.Monotonic() - after // a busy machine may take long for the offset, which is off by that then
	seen := 0
	check := func(d datagram) {
		want := packets[seen]
		seen++
		if string(d.data) != "hd"+want.payload || d.tos != want.tos || d.from != 0x7f000001 {
			t.Errorf("got %q, TOS %#x, from %#x, want %q, %#x", d.data, d.tos, d.from, "hd"+want.payload, want.tos)
		}
		// Resolution of the offset and of the kernel's stamp: well below a microsecond on an idle
		// machine. On a busy one the kernel stamps what it delivers after send has returned.
		if at, now := d.at-offset, clock.Monotonic(); at < before-slack || at > now+slack {
			t.Errorf("stamped %d, sent from %d on and read by %d", at, before, now)
		}
	}
	for seen < len(packets) {
		if _, err := r.receive(check); err != nil || clock.Monotonic()-before > 60e9 {
			t.Fatalf("received %d, %v, want 3", seen, err)
		}
	}
	if n, err := r.receive(func(datagram) {}); n != 0 || err != nil {
		t.Errorf("received %d, %v from an empty socket", n, err)
	}
}

func TestSenderTakesAPreparedSocketForItsFirstWay(t *testing.T) {
	r, err := newReceiver(listenSocket(t, wire.Port), newTray(2048))
	if err != nil {
		t.Fatal(err)
	}
	s := newSenders(loopback, [][4]byte{loopback})
	defer s.close()
	for range 2 { // both ends of a connection prepare the same
		if err := s.prepare([]socketKey{{port: 50004}}); err != nil {
			t.Fatal(err)
		}
	}
	prepared := s.spare[socketKey{dst: 0, port: 50004}]
	for _, class := range []uint8{0, 1} {
		if _, err := s.send(&transport.Outgoing{SrcPort: 50004, Class: class, ECT: class == 1, N: 1}, nil, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.sockets[socketKey{dst: 0, port: 50004, tos: wire.TOSControl}]; got != prepared || len(s.sockets) != 2 ||
		len(s.spare) != 0 {
		t.Errorf("acknowledgements leave by socket %d of %v, want the prepared %d; %d to spare", got, s.sockets,
			prepared, len(s.spare))
	}
	var tos []uint8
	if _, err := r.receive(func(d datagram) { tos = append(tos, d.tos) }); err != nil ||
		!slices.Equal(tos, []uint8{wire.TOSControl, tosECT0}) {
		t.Errorf("TOS %#x came, %v", tos, err)
	}
}

// A connection that sprays has a port for every path; the node's sockets stay bounded, and every
// packet leaves.
func TestSendersAreBounded(t *testing.T) {
	r, err := newReceiver(listenSocket(t, wire.Port), newTray(2048))
	if err != nil {
		t.Fatal(err)
	}
	s := newSenders(loopback, [][4]byte{loopback})
	defer s.close()
	s.maxOpen = 3
	for i := range 10 {
		port := uint16(50010 + i%5)
		if taken, err := s.send(&transport.Outgoing{SrcPort: port, Class: 1, N: 1}, nil, nil, 0); err != nil || !taken {
			t.Fatalf("packet %d: taken %v, %v", i, taken, err)
		}
		if want := min(i+1, 3); len(s.sockets) != want || len(s.inUse) != want {
			t.Fatalf("%d sockets after %d packets, want %d", len(s.sockets), i+1, want)
		}
	}
	if n, err := r.receive(func(datagram) {}); n != 10 || err != nil {
		t.Errorf("%d packets came, %v; want 10", n, err)
	}
}

// Opening a socket takes longer than sending a packet, so as many paths as fit have theirs before
// the run. Replies take the first path.
func TestPathsAhead(t *testing.T) {
	spray := transport.Spec{Src: 1, Dst: 0, Kind: "spray", CC: strack.Params{Paths: 256}}
	back := spray
	back.Src, back.Dst = 0, 1
	for conns, want := range map[int]int{0: 1, 15: 256, 16: 255, 100: 39, 5000: 1} {
		p := host.Plan{Host: 1}
		for range conns {
			p.Conns = append(p.Conns, spray, back)
		}
		if got := pathsAhead(&p, maxSockets); got != want {
			t.Errorf("%d connections each direction: %d paths, want %d", conns, got, want)
		}
	}
}

// Sockets that nothing was sent from make room before any other.
func TestSendersCloseUnusedSocketsFirst(t *testing.T) {
	s := newSenders(loopback, [][4]byte{loopback})
	defer s.close()
	s.maxOpen = 3
	if err := s.prepare([]socketKey{{port: 50020}, {port: 50021}, {port: 50022}}); err != nil {
		t.Fatal(err)
	}
	for i, port := range []uint16{50020, 50030, 50031, 50020} {
		if taken, err := s.send(&transport.Outgoing{SrcPort: port, Class: 1, N: 1}, nil, nil, 0); err != nil || !taken {
			t.Fatalf("packet %d: taken %v, %v", i, taken, err)
		}
		if n := len(s.sockets) + len(s.spare); n > 3 {
			t.Errorf("%d sockets after packet %d", n, i)
		}
	}
	if s.missed != 2 || len(s.spare) != 0 {
		t.Errorf("%d sockets opened late, want 2; %d to spare", s.missed, len(s.spare))
	}
}

func TestSenderSurvivesAClosedPort(t *testing.T) {
	s := newSenders(loopback, [][4]byte{loopback})
	defer s.close()
	out := transport.Outgoing{SrcPort: 50002, Class: 1, N: 1}
	for range 3 {
		if taken, err := s.send(&out, nil, nil, 0); err != nil || !taken {
			t.Fatalf("sending to a closed port: taken %v, %v", taken, err)
		}
	}
}

func TestDropsAreCounted(t *testing.T) {
	fd := listenSocket(t, wire.Port)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil { // the kernel rounds it up
		t.Fatal(err)
	}
	r, err := newReceiver(fd, newTray(2048))
	if err != nil {
		t.Fatal(err)
	}
	s := newSenders(loopback, [][4]byte{loopback})
	defer s.close()
	for range 20 {
		if _, err := s.send(&transport.Outgoing{SrcPort: 50003, N: 90}, make([]byte, 1000), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	n, err := r.receive(func(datagram) {})
	if got := r.drops(); err != nil || got != int64(20-n) || got == 0 {
		t.Errorf("%d of 20 came, %d counted as dropped, %v", n, got, err)
	}
}

func FuzzParseControl(f *testing.F) {
	corpus := fuzztest.New(f)
	corpus.Add(make([]byte, 32))
	corpus.Fuzz(func(_ *testing.T, b []byte) { parseControl(b) })
}

func TestParseControlSkipsWhatItDoesNotKnow(t *testing.T) {
	b := unix.UnixRights(1, 2, 3)
	b = append(b, unix.UnixRights()...)
	if d := parseControl(b); d.at != 0 || d.tos != 0 {
		t.Errorf("read %+v from ancillary data of another kind", d)
	}
}

func TestNICKeepsTheLineBusyAndNoMore(t *testing.T) {
	n := nic{line: units.NewLine(units.Gbps), ahead: 3 * units.Microsecond} // 1000 bytes take 8 us
	us := func(d time.Duration) units.Time { return units.FromDuration(d * time.Microsecond) }
	give := func(now, want time.Duration) {
		t.Helper()
		at, ok := n.slot(us(now))
		if !ok || at != us(want) {
			t.Fatalf("at %d us: leaves at %d ps, %v, want %d us", now, at, ok, want)
		}
		n.sent(at, 1000)
	}
	give(10, 10)
	if _, ok := n.slot(us(14)); ok {
		t.Error("takes a second packet 4 us before the line is free")
	}
	if _, ok := n.slot(us(15) - 1); ok {
		t.Error("takes it before 15 us")
	}
	give(15, 18) // early, and yet it leaves when the line is free
	give(24, 26) // likewise
	give(40, 40) // late: the line was idle from 34 us
}

// newTray returns a tray for datagrams of up to size bytes.
func newTray(size int) *tray {
	t := new(tray)
	t.fit(size)
	return t
}
