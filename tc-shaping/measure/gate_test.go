package measure_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/quiettest"
	"weft/tc-shaping/measure"
	"weft/tc-shaping/qdisc"
	proto "weft/transport/wire"
	"weft/units"
)

// Links with BPF programs have the properties of the contract: marks on arrival and on departure,
// by a step and by a slope, loss, one sender; and a link that differs is found out.
func TestPrivGate(t *testing.T) {
	own := &qdisc.Source{MAC: [6]byte{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.9.0.1")}
	plain := qdisc.Direction{Rate: 8 * units.Mbps, Limit: 400_000, Lateness: quiettest.Gap, AtEnds: true, Source: own,
		Delay: 20 * time.Millisecond, Overhead: 4}
	with := func(red qdisc.RED) qdisc.Direction {
		d := plain
		red.ECN, red.Drawn = true, true
		d.RED = &red
		return d
	}
	lossy, shaky, shuffled := plain, plain, plain
	lossy.Loss = 0.1
	shaky.Jitter = 4 * time.Millisecond
	shuffled.Reorder, shuffled.ReorderBy = 0.2, 30*time.Millisecond
	for name, d := range map[string]qdisc.Direction{
		"rate": plain, "loss": lossy, "jitter": shaky, "reordering": shuffled,
		"step, arriving":  with(qdisc.RED{Min: 60_000, Max: 60_000, Pmax: 1}),
		"step, leaving":   with(qdisc.RED{Min: 60_000, Max: 60_000, Pmax: 1, Leaving: true}),
		"slope, arriving": with(qdisc.RED{Min: 30_000, Max: 150_000, Pmax: 0.4}),
		"slope, leaving":  with(qdisc.RED{Min: 30_000, Max: 150_000, Pmax: 0.4, Leaving: true}),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLink(t, d)
			l.measureUntil(func() error {
				found, err := measure.Examine(t.Context(), l.sender, l.receiver, d)
				l.noError(err)
				t.Logf("%+v", found.Findings)
				if !found.OK() {
					return fmt.Errorf("broken: %+v", found)
				}
				return nil
			})
			s := l.statistics()
			c := l.Gate.Counters()
			if s.Backlog != 0 || c.Queue() != 0 || c.EnteredPackets != c.LeftPackets || s.Sent != c.Left ||
				s.Spoofed+s.NotRouted+s.Drops != 0 || (d.Loss > 0) != (s.Lost > 0) || (d.RED != nil) != (s.Marks > 0) {
				t.Errorf("%+v, gate %+v", s, c)
			}
			if d.RED == nil {
				return
			}
			wrong := *d.RED
			wrong.Min, wrong.Max = 350_000, 380_000
			d.RED = &wrong
			if found, err := measure.Examine(t.Context(), l.sender, l.receiver, d); err != nil || found.OK() {
				t.Errorf("marks from 30 or 60 kB on are as asked from 350 kB on: %+v, %v", found, err)
			}
		})
	}
}

// A Gate drops what does not fit, counts it, and frames of other senders.
func TestPrivGateDrops(t *testing.T) {
	d := qdisc.Direction{Rate: 8 * units.Mbps, Limit: 20_000, AtEnds: true,
		Source: &qdisc.Source{MAC: [6]byte{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.9.0.1")}}
	l := newLink(t, d)
	packets := l.send(measure.Train{Count: 40, Size: 1000, Burst: 40, Wait: time.Second})
	s := l.statistics()
	if lost := measure.Lost(packets); lost == 0 || uint64(lost) != s.Drops || s.MaxQueue > d.Limit ||
		s.MaxQueue < d.Limit-1014 || s.Arrived != uint64(40-lost) {
		t.Errorf("%d of 40 packets lost: %+v", lost, s)
	}
	tree := l.tree
	tree.Source = &qdisc.Source{MAC: [6]byte{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("10.9.0.9")}
	l.noError(l.Apply(tree))
	if lost := measure.Lost(l.send(measure.Train{Count: 5, Size: 1000, Burst: 5, Wait: time.Second / 5})); lost != 5 {
		t.Errorf("%d of 5 packets of another sender were lost", lost)
	}
	if s := l.statistics(); s.Spoofed != 5 || s.NotRouted != 0 || s.Arrived != 0 {
		t.Errorf("%+v", s)
	}
}

// Control packets pass data that waits, and both are counted in their class; of a super-packet each
// of its packets is.
func TestPrivClasses(t *testing.T) {
	const data, control = 1000, 100 // bytes of payload
	l := newLink(t, qdisc.Direction{Rate: 8 * units.Mbps, Limit: 80_000, AtEnds: true})
	far, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	l.noError(err)
	defer unix.Close(far)
	to := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{10, 9, 0, 2}}
	l.noError(unix.Bind(far, to))
	l.noError(unix.SetsockoptTimeval(far, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}))
	send := func(tos, size int) {
		t.Helper()
		l.noError(unix.SetsockoptInt(l.near, unix.IPPROTO_IP, unix.IP_TOS, tos))
		l.noError(unix.Sendto(l.near, make([]byte, size), 0, to))
	}
	sizes := func(n int) (all []int) {
		t.Helper()
		for range n {
			size, _, err := unix.Recvfrom(far, make([]byte, 65536), 0)
			l.noError(err)
			all = append(all, size)
		}
		return all
	}
	empty := func(what string, packets uint64) {
		t.Helper()
		c := l.Gate.Counters()
		if c.Queue() != 0 || c.Data != 0 || c.Entered != c.Left || c.EnteredPackets != packets || c.LeftPackets != packets {
			t.Errorf("after %s: %+v", what, c)
		}
	}
	const behind = 40
	for range behind {
		send(2, data)
	}
	send(proto.TOSControl, control)
	c := l.Gate.Counters()
	if waits := c.Queue() - c.Data; c.Data < 20*data || waits > 200 {
		t.Errorf("%v of data wait, %v of control: %+v", c.Data, waits, c)
	}
	at := slices.Index(sizes(behind+1), control)
	if at < 0 || at > behind/2 {
		t.Errorf("the control packet behind %d of data arrived as number %d", behind, at)
	}
	empty("a control packet and data", behind+1)
	const segment = 103 // UDP_SEGMENT of linux/udp.h
	l.noError(unix.SetsockoptInt(l.near, unix.IPPROTO_UDP, segment, data))
	l.noError(unix.SetsockoptInt(l.near, unix.IPPROTO_IP, unix.IP_TOS, 2))
	if err := unix.Sendto(l.near, make([]byte, 10*data), 0, to); errors.Is(err, unix.EIO) {
		return // gso_max_segs forbids it, before Linux 6.2
	} else if err != nil {
		t.Fatal(err)
	}
	sizes(10)
	empty("a super-packet", behind+1+10)
}
