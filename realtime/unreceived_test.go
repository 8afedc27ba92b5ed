package realtime

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/clocksync/labtime"
	"weft/transport/wire"
)

// stoppedCable is the cable of a host whose kernel may be full, or whose interface fails.
type stoppedCable struct {
	full bool
	err  error
	got  int // frames received
}

func (c *stoppedCable) Read([]byte) (int, bool, error) { return 0, true, nil }

func (c *stoppedCable) Write(frame []byte) (int, bool, error) {
	if c.full || c.err != nil {
		return 0, c.full, c.err
	}
	c.got++
	return len(frame), false, nil
}

// A packet that reaches a host is received, refused by the host's kernel, or unreceived because
// nothing is there to take it, and counted as one of these.
func TestPacketsAtStoppedHostsAreUnreceived(t *testing.T) {
	type counts struct{ got, refused, unreceived int }
	for name, c := range map[string]struct {
		stop           func(*port, *stoppedCable)
		stopped, after counts // after three packets, and after three more once it continues
	}{
		"running": {func(*port, *stoppedCable) {}, counts{got: 3}, counts{got: 6}},
		"halted":  {func(p *port, _ *stoppedCable) { p.halted = true }, counts{unreceived: 3}, counts{got: 3, unreceived: 3}},
		"gone":    {func(p *port, _ *stoppedCable) { p.gone = true }, counts{unreceived: 3}, counts{unreceived: 6}},
		"full":    {func(_ *port, c *stoppedCable) { c.full = true }, counts{refused: 3}, counts{got: 3, refused: 3}},
		"an interface that ends": {
			func(_ *port, c *stoppedCable) { c.err = unix.EBADFD }, counts{unreceived: 3}, counts{unreceived: 6},
		},
		"an interface that is down": {
			func(_ *port, c *stoppedCable) { c.err = unix.EIO }, counts{unreceived: 3}, counts{got: 3, unreceived: 3},
		},
	} {
		for _, udp := range []uint16{wire.Port, 7} { // to the host's agent, and to a program
			l, err := newLoop(Config{Network: twoHosts(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}, MaxFrame: 2000}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer l.poll.Close()
			clock, cable := manualClock(1), &stoppedCable{}
			l.clock, l.scale.Scale = &clock, labtime.Scale{T0: 1, Dilation: 1}
			for h, fd := range eventFDs(t) {
				if err := l.attach(h, Port{FD: fd, Kind: PortTAP}); err != nil {
					t.Fatal(err)
				}
				l.ports[h].cable = cable
			}
			body := make([]byte, 100)
			body[2], body[3], body[udpLengthAt+1] = byte(udp>>8), byte(udp), byte(len(body))
			send := func(want counts) {
				t.Helper()
				for range 3 {
					p := l.packet()
					p.Header = append(p.Header[:0], udpFrame(addrOf(0), addrOf(1), 0, body)...)
					l.take(0, p)
					clock += manualClock(time.Millisecond)
					l.fire(l.labNow())
				}
				got := counts{cable.got, int(l.report.Refused), int(l.report.Unreceived)}
				if l.err != nil || got != want || l.state(l.labNow()).Unreceived != l.report.Unreceived {
					t.Errorf("%s, port %d: %+v, want %+v; %v", name, udp, got, want, l.err)
				}
				if all := int(l.net.Counters().Delivered); all != want.got+want.refused+want.unreceived {
					t.Errorf("%s, port %d: %d packets reached the host; want %+v", name, udp, all, want)
				}
			}
			c.stop(&l.ports[1], cable)
			send(c.stopped)
			cable.full, cable.err, l.ports[1].halted = false, nil, false
			send(c.after)
		}
	}
}

// eventFDs returns descriptors that are never readable, one for each of two hosts.
func eventFDs(t *testing.T) (fds []int) {
	for range 2 {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		fds = append(fds, fd)
	}
	return fds
}
