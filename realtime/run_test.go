package realtime

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/clocksync"
	"weft/clocksync/labtime"
	"weft/fabric"
	"weft/internal/clock"
	"weft/internal/control"
	"weft/internal/quiettest"
	"weft/transport/wire"
	"weft/units"
)

// A lab is a fabric process without a process: its loop runs in a goroutine of the test, over a
// real control connection, and its hosts are the far ends of datagram sockets that stand for TAPs.
type lab struct {
	t     *testing.T
	conn  *control.Conn
	hosts []int // far ends
	done  chan error
	t0    int64
	alive int // how often it said that it is
}

// twoHosts returns two hosts on a switch: 10 Gb/s, 1 us.
func twoHosts() fabric.Config {
	port := func(from, to fabric.NodeID) fabric.PortConfig {
		return fabric.PortConfig{From: from, To: to, Link: fabric.Link{Rate: 10 * units.Gbps, Delay: units.Microsecond}, Buffer: units.MB}
	}
	return fabric.Config{
		Hosts: 2,
		Ports: []fabric.PortConfig{port(0, 2), port(1, 2), port(2, 0), port(2, 1)},
		Switches: []fabric.SwitchConfig{
			{Name: "s", Groups: [][]int32{{2}, {3}}, Route: []int32{0, 1}},
		},
	}
}

// addrOf returns the addresses of host i.
func addrOf(i int) Address {
	return Address{IP: [4]byte{10, 0, 0, byte(i)}, MAC: MAC{2, 0, 0, 0, 0, byte(i)}}
}

// startLab runs the loop of a fabric process in a goroutine until the test ends.
func startLab(t *testing.T, cfg Config) *lab { return startLabWith(t, cfg, nil) }

// startLabWith is startLab with the files of bypass NICs.
func startLabWith(t *testing.T, cfg Config, nics []*os.File) *lab {
	t.Helper()
	ours, theirs, err := control.Pair()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, conn: ours, done: make(chan error, 1)}
	t.Cleanup(func() { ours.Close() })
	fd, err := unix.Dup(int(theirs.Fd())) // Open closes the descriptor it is given
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	remote, err := control.Open(fd)
	if err != nil {
		t.Fatal(err)
	}
	var ports []Port
	for range cfg.Hosts {
		ports = append(ports, l.plug())
	}
	go func() { l.done <- serve(remote, ports, func() string { return "as it was" }); remote.Close() }()
	l.send(KindConfigure, cfg)
	for _, f := range nics {
		l.send(KindNICs, nil, int(f.Fd()))
	}
	l.expect(KindReady, nil)
	return l
}

// plug adds a host and returns the fabric's end of its cable.
func (l *lab) plug() Port {
	l.t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	tv := unix.NsecToTimeval(int64(quiettest.Patience))
	_ = unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20)
	_ = unix.SetsockoptTimeval(fds[1], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	l.hosts = append(l.hosts, fds[1])
	l.t.Cleanup(func() { unix.Close(fds[1]) })
	l.t.Cleanup(func() { unix.Close(fds[0]) })
	return Port{FD: fds[0], Kind: PortTAP}
}

// send sends a control message to the fabric.
func (l *lab) send(kind string, v any, fds ...int) {
	l.t.Helper()
	if err := l.conn.SendValue(kind, v, fds...); err != nil {
		l.t.Fatal(err)
	}
}

// next returns the next message that is not only a sign of life.
func (l *lab) next() (control.Message, error) {
	m, _, err := l.conn.Recv()
	for err == nil && (m.Kind == KindAlive || m.Kind == KindSteps) {
		if m.Kind == KindAlive {
			l.alive++
		}
		m, _, err = l.conn.Recv()
	}
	return m, err
}

// expect receives a message of a kind and decodes it into v, unless v is nil.
func (l *lab) expect(kind string, v any) {
	l.t.Helper()
	m, err := l.next()
	if err == nil && m.Kind != kind {
		err = fmt.Errorf("%q came where %q was expected", m.Kind, kind)
	}
	if err == nil && v != nil {
		err = m.Decode(v)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// begin starts lab time and returns its scale. Frames written before are early, those written after
// are not.
func (l *lab) begin(dilation float64) labtime.Scale {
	l.settle()
	l.t0 = clock.Monotonic()
	l.send(KindStart, Start{T0: l.t0})
	l.settle()
	return labtime.Scale{T0: l.t0, Dilation: dilation}
}

// settle waits until the fabric has read all that was sent and written.
func (l *lab) settle() {
	l.t.Helper()
	l.send(KindLook, nil)
	if m, err := l.next(); err != nil || m.Kind != KindState && m.Kind != KindDid { // the latter before lab time begins: why not
		l.t.Fatalf("answered %q, %v", m.Kind, err)
	}
}

// finish ends the fabric and returns its report.
func (l *lab) finish() Report {
	l.t.Helper()
	var r Report
	l.send(KindStop, nil)
	l.expect(KindReport, &r)
	if err := <-l.done; err != nil {
		l.t.Fatalf("the fabric process failed: %v", err)
	}
	return r
}

// write has host h send a frame.
func (l *lab) write(h int, frame []byte) {
	l.t.Helper()
	if _, err := unix.Write(l.hosts[h], frame); err != nil {
		l.t.Fatal(err)
	}
}

// read returns the next frame that host h receives.
func (l *lab) read(h int) []byte {
	l.t.Helper()
	b := make([]byte, 1<<16)
	n, err := unix.Read(l.hosts[h], b)
	for err == unix.EINTR {
		n, err = unix.Read(l.hosts[h], b)
	}
	if err != nil {
		l.t.Fatalf("nothing came to host %d: %v", h, err)
	}
	return b[:n]
}

// udpFrame returns a frame with a UDP datagram from src to dst.
func udpFrame(src, dst Address, tos uint8, body []byte) []byte {
	frame := ipFrame(tos, protoUDP, 0x4000, binary.BigEndian.Uint32(src.IP[:]), binary.BigEndian.Uint32(dst.IP[:]), 20, body)
	copy(frame[macLen:], src.MAC[:])
	return frame
}

func TestCarriesAFrameInLabTime(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		const dilation = 20000 // 1 us is 20 ms
		l := startLab(t, Config{Network: twoHosts(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}})
		early := udpFrame(addrOf(0), addrOf(1), 0, make([]byte, 100))
		l.write(0, early)
		scale := l.begin(dilation)

		frame := udpFrame(addrOf(0), addrOf(1), 0, make([]byte, 1000-ethLen-ipMin-fcsLen)) // 1000 bytes on the wire
		before := clock.Monotonic()
		l.write(0, frame)
		got := l.read(1)
		took := scale.LabSpan(clock.Monotonic() - before)
		// Two links of 1 us, and 0.8 us to put 1000 bytes on each.
		want := 3600 * units.Nanosecond
		if mac := addrOf(1).MAC; !slices.Equal(got[:6], mac[:]) || !slices.Equal(got[6:], frame[6:]) {
			t.Errorf("delivered % x, want its destination's MAC and the rest unchanged", got)
		}
		r := l.finish()
		if late := took - want; late < 0 || late > r.Delivery.Quantile(1)+units.Microsecond {
			return fmt.Errorf("took %d ps of lab time, want %d and up to %d more", took, want, r.Delivery.Quantile(1))
		}
		if r.Early != 1 || r.Network.Delivered != 1 || r.Delivery.Count() != 1 || r.Broken != "" {
			t.Errorf("report %+v, want 1 early and 1 delivered", r)
		}
		return nil
	})
}

func TestHoldsDataUntilItsDeparture(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		const dilation = 20000
		l := startLab(t, Config{
			Network: twoHosts(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}, Ahead: 10 * units.Microsecond,
		})
		scale := l.begin(dilation)
		at := scale.Lab(clock.Monotonic()) + 5*units.Microsecond
		header := make([]byte, udpLen+int(wire.DataSize))
		binary.BigEndian.PutUint16(header[2:], wire.Port)
		binary.BigEndian.PutUint16(header[udpLengthAt:], uint16(len(header)))
		(&wire.Data{Flags: wire.Announce, Payload: 1, Size: 1, SentAt: at}).Encode(header[udpLen:])
		frame := udpFrame(addrOf(0), addrOf(1), 2, header)
		l.write(0, frame)
		l.read(1)
		arrived := scale.Lab(clock.Monotonic())
		wire := units.Bytes(len(frame) + fcsLen)
		want := at + 2*(units.Microsecond+(10*units.Gbps).TransmitTime(wire))
		r := l.finish()
		// What comes on top of the schedule is lateness, of the fabric as it says, and of this
		// test.
		if late := arrived - want; late < 0 || late > r.Delivery.Quantile(1)+units.Microsecond {
			return fmt.Errorf("left at %d and arrived at %d ps, want %d and up to %d more", at, arrived, want, r.Delivery.Quantile(1))
		}
		if r.Departure.Count() != 1 || r.QueueDelay.Count() != 1 || r.Departure.Quantile(1) != 0 {
			return fmt.Errorf("departures %+v, want one that was on time", r.Departure)
		}
		return nil
	})
}

// Nodes send what leaves at lab time 0 before that has come.
func TestHoldsDataThatComesBeforeTheStart(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		const dilation = 20000
		l := startLab(t, Config{
			Network: twoHosts(), Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}, Ahead: 10 * units.Microsecond,
		})
		header := make([]byte, udpLen+int(wire.DataSize))
		binary.BigEndian.PutUint16(header[2:], wire.Port)
		binary.BigEndian.PutUint16(header[udpLengthAt:], uint16(len(header)))
		(&wire.Data{Flags: wire.Announce, Payload: 1, Size: 1}).Encode(header[udpLen:])
		frame := udpFrame(addrOf(0), addrOf(1), 2, header)
		l.write(0, frame) // nobody knows yet when 0 will be
		l.settle()
		l.send(KindStart, Start{T0: clock.Monotonic() + int64(100*time.Millisecond)}) // 5 us
		l.settle()
		l.write(0, frame)
		l.read(1)
		if r := l.finish(); r.Early != 1 || r.Network.Delivered != 1 || r.Departure.Quantile(1) != 0 {
			return fmt.Errorf("%d early, %d delivered, departure late by %d ps, want the second frame on time", r.Early, r.Network.Delivered, r.Departure.Quantile(1))
		}
		return nil
	})
}

// TestSaysThatItIsAlive waits for three alive messages of a process that has nothing to carry. They
// are AliveEvery apart: never less, and not much more on a quiet machine.
func TestSaysThatItIsAlive(t *testing.T) {
	l := startLab(t, Config{Network: twoHosts(), Dilation: 1000, Hosts: []Address{addrOf(0), addrOf(1)}})
	watch := quiettest.Start()
	l.begin(1000)
	for l.alive < 3 {
		m, _, err := l.conn.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind == KindAlive {
			l.alive++
		}
	}
	if passed := time.Duration(clock.Monotonic() - l.t0); passed < 2*AliveEvery {
		t.Errorf("three alive messages within %v of the start, want at least %v", passed, 2*AliveEvery)
	}
	watch.AtMost(t, 3*AliveEvery, "three alive messages")
	l.finish()
}

// A host that sends faster than its link is not read from until its NIC has sent what it holds:
// nothing is lost, and what waits is bounded.
func TestLeavesAFullNICAlone(t *testing.T) {
	const frames = 1000
	network := twoHosts()
	network.Ports[2].Buffer, network.Ports[3].Buffer = units.GB, units.GB
	// The test reads late on a busy machine; the socket then holds what came.
	l := startLab(t, Config{Network: network, Dilation: 100, Hosts: []Address{addrOf(0), addrOf(1)}})
	l.begin(100)
	go func() {
		for range frames {
			_, _ = unix.Write(l.hosts[0], udpFrame(addrOf(0), addrOf(1), 0, make([]byte, 1000))) // the reader notices
		}
	}()
	for i := range frames {
		if got := l.read(1); len(got) != ethLen+ipMin+1000 {
			t.Fatalf("frame %d has %d bytes", i, len(got))
		}
	}
	// 1,000 frames of 1 KB take 80 ms at a hundredth of 10 Gb/s; a socket takes them as fast as
	// they are written.
	r := l.finish()
	if r.Network.Delivered != frames || r.Refused != 0 || r.MaxNIC > maxNICQueue+maxBurst*2*units.KB {
		t.Errorf("%d delivered, %d refused, at most %d bytes in the NIC", r.Network.Delivered, r.Refused, r.MaxNIC)
	}
}

func TestMarksAndSamplesACongestedQueue(t *testing.T) {
	quiettest.Check(t, 3, func() error {
		const dilation = 20000
		network := twoHosts()
		network.Ports[3].Rate = units.Gbps
		network.Ports[3].ECN = fabric.ECNConfig{On: true, Kmin: 1, Kmax: 1, Pmax: 1}
		l := startLab(t, Config{
			Network: network, Dilation: dilation, Hosts: []Address{addrOf(0), addrOf(1)}, Sample: units.Microsecond,
		})
		l.begin(dilation)
		for range 4 {
			l.write(0, udpFrame(addrOf(0), addrOf(1), 2, make([]byte, 462)))
		}
		marks := 0
		for range 4 {
			got := l.read(1)
			d, ok := parseIPv4(got)
			if !ok || onesSum(got[ethLen:ethLen+ipMin]) != 0xffff {
				t.Fatalf("delivered a broken header: % x", got[:ethLen+ipMin])
			}
			if d.ecn() == fabric.CE {
				marks++
			}
		}
		l.send(KindStop, nil)
		var samples []Sample
		l.expect(KindSamples, &samples)
		var r Report
		l.expect(KindReport, &r)
		// 500 bytes take 0.4 us on the NIC and 4 us on the slow port: one goes at once, three wait.
		// A frame is marked when it leaves others behind: neither the first, which finds the link
		// free, nor the last.
		if marks != 2 || r.Network.Marks != int64(marks) {
			return fmt.Errorf("%d frames are marked, the network marked %d", marks, r.Network.Marks)
		}
		samples = slices.DeleteFunc(samples, func(s Sample) bool { return s.Port == 0 }) // frames wait for the NIC too
		if len(samples) == 0 || samples[0].Port != 3 || samples[0].Queued%500 != 0 {
			return fmt.Errorf("samples %+v, want multiples of 500 bytes in port 3", samples)
		}
		if n := len(samples); n > 0 && (samples[n-1].Marks == 0 || samples[n-1].Marks > int64(marks) || samples[0].Marks > samples[n-1].Marks) {
			return fmt.Errorf("samples %+v of %d marks", samples, marks)
		}
		return nil
	})
}

func TestAnswersARPAndCountsWhatItCannotCarry(t *testing.T) {
	l := startLab(t, Config{Network: twoHosts(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}})
	ask := func(target byte) []byte {
		f := make([]byte, ethLen+arpLen)
		copy(f, []byte{255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 0, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0, 10, 0, 0, 0})
		copy(f[arpTargetIP:], []byte{10, 0, 0, target})
		return f
	}
	l.write(0, ask(1)) // before the start of lab time, too
	if got := l.read(0); got[arpOpAt+1] != arpReply || got[arpSenderMAC+5] != 1 {
		t.Errorf("answer % x, want host 1's address", got)
	}
	l.begin(1)
	l.write(0, ask(0))                                                                // its own: nobody may answer
	l.write(0, ask(9))                                                                // nobody has it
	l.write(0, udpFrame(addrOf(0), addrOf(9), 0, nil))                                // unknown destination
	l.write(0, append(make([]byte, 12), 0x86, 0xdd))                                  // IPv6
	l.write(0, append(make([]byte, 12), 8, 0, 0x45))                                  // cut
	l.write(0, udpFrame(addrOf(0), addrOf(1), 0, []byte("this one arrives, behind"))) // in order behind the others
	if _, ok := parseIPv4(l.read(1)); !ok {
		t.Error("not the frame that was sent")
	}
	if r := l.finish(); r.ARP != 1 || r.Refusals[0] != (Refusals{NotRouted: 4, Malformed: 1}) {
		t.Errorf("%d answered, refused %+v, want 1, and 4 not routed, 1 malformed", r.ARP, r.Refusals)
	}
}

// An ICMP error is an answer if it quotes a packet that its destination has sent to its source, and
// once. All others are packets beside the workload of whoever sends them.
func TestForgedErrorsAreNoAnswers(t *testing.T) {
	l := startLab(t, Config{Network: threeHosts(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1), addrOf(2)}})
	l.begin(1)
	datagram := func(from, to Address, id byte) []byte {
		f := udpFrame(from, to, 0, append([]byte{0x30, 0x39, 0, 80, 0, 12, 0, 0}, "body"...))
		f[ethLen+5] = id
		return f
	}
	about := func(from, to Address, quoted []byte) []byte {
		f := udpFrame(from, to, 0xc0, append([]byte{3, 3, 0, 0, 0, 0, 0, 0}, quoted...))
		f[ethLen+9] = protoICMP
		return f
	}
	asked, elsewhere := datagram(addrOf(0), addrOf(1), 7), datagram(addrOf(0), addrOf(2), 8)
	for _, f := range [][]byte{asked, elsewhere} {
		l.write(0, f)
	}
	l.read(1)
	l.read(2)
	for i, f := range [][]byte{
		about(addrOf(1), addrOf(0), asked[ethLen:ethLen+ipMin+8]),               // the answer
		about(addrOf(1), addrOf(0), asked[ethLen:ethLen+ipMin+8]),               // again
		about(addrOf(1), addrOf(0), elsewhere[ethLen:]),                         // what was sent to another
		about(addrOf(1), addrOf(0), datagram(addrOf(0), addrOf(1), 9)[ethLen:]), // what was never sent
		about(addrOf(1), addrOf(2), asked[ethLen:]),                             // to another than who sent it
		about(addrOf(1), addrOf(0), asked[ethLen:ethLen+ipMin+7]),               // cut
		about(addrOf(1), addrOf(0), nil),                                        // of nothing
		about(addrOf(1), addrOf(0), bytes.Repeat([]byte{0x4f}, ipMin+8)),        // a header longer than what there is
	} {
		l.write(1, f)
		at := 0
		if i == 4 {
			at = 2
		}
		l.read(at)
	}
	l.write(2, about(addrOf(2), addrOf(0), elsewhere[ethLen:]))
	l.read(0)
	r := l.finish()
	if want := []int64{0, 1, 1}; !slices.Equal(r.Answers, want) {
		t.Errorf("answers %v, want %v", r.Answers, want)
	}
	if want := []int64{2, 7, 0}; !slices.Equal(r.Beside, want) {
		t.Errorf("beside the workload %v, want %v", r.Beside, want)
	}
}

// An ICMP error about a message of clock synchronization, whose receiver has ended, is Weft's own:
// it quotes the message as it was delivered, without its departure.
func TestErrorsAboutSynchronizationAreOwn(t *testing.T) {
	l := startLab(t, Config{Network: twoHosts(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}, Departs: true})
	l.begin(1)
	message := func(trailer bool) []byte {
		body := append(make([]byte, udpLen), "measures a clock"...)
		if trailer {
			body = wire.AppendDeparture(body, 0)
		}
		binary.BigEndian.PutUint16(body[2:], clocksync.ProbePort)
		binary.BigEndian.PutUint16(body[udpLengthAt:], uint16(len(body)))
		return udpFrame(addrOf(0), addrOf(1), 0, body)
	}
	for _, trailer := range []bool{false, true} {
		l.write(0, message(trailer))
		delivered := l.read(1)
		answer := udpFrame(addrOf(1), addrOf(0), 0xc0, append([]byte{3, 3, 0, 0, 0, 0, 0, 0}, delivered[ethLen:]...))
		answer[ethLen+9] = protoICMP
		l.write(1, answer)
		l.read(0)
	}
	if r := l.finish(); !slices.Equal(r.Answers, []int64{0, 0}) || !slices.Equal(r.Beside, []int64{0, 0}) {
		t.Errorf("answers %v, beside the workload %v", r.Answers, r.Beside)
	}
}

// To Weft's own ports, and as the network, a host speaks under its own addresses alone; what it
// forwards for others passes.
func TestDropsWhatIsNotFromItsSender(t *testing.T) {
	l := startLab(t, Config{Network: threeHosts(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1), addrOf(2)}, Switch: network})
	l.begin(1)
	to := func(port uint16, from Address, tail ...byte) []byte {
		body := append(make([]byte, udpLen), tail...)
		binary.BigEndian.PutUint16(body[2:], port)
		binary.BigEndian.PutUint16(body[udpLengthAt:], uint16(len(body)))
		return udpFrame(from, addrOf(1), 0, body)
	}
	fragment := func(from Address) []byte {
		f := to(wire.Port, from)
		f[ethLen+6] = 0x20 // more follow
		return f
	}
	otherMAC, other := addrOf(0), addrOf(2)
	otherMAC.MAC = other.MAC
	other.MAC = addrOf(0).MAC
	spoofed := int64(0)
	for _, port := range []uint16{wire.Port, clocksync.EventPort, clocksync.GeneralPort, clocksync.ProbePort} {
		l.write(0, to(port, other))
		l.write(0, to(port, otherMAC))
		spoofed += 2
	}
	l.write(0, fragment(other))
	l.write(0, udpFrame(Address{IP: network}, addrOf(1), 0, []byte{1}))
	spoofed += 2
	short := to(wire.Port, addrOf(0), 1)
	short[ethLen+ipMin+udpLengthAt+1]--
	l.write(0, short)
	passes := [][]byte{to(80, other), to(80, otherMAC), fragment(addrOf(0)), to(wire.Port, addrOf(0), 2)}
	for _, frame := range passes {
		l.write(0, frame)
	}
	for _, want := range passes {
		if got := l.read(1); !slices.Equal(got[macLen:], want[macLen:]) {
			t.Errorf("% x came, want % x", got, want)
		}
	}
	l.send(KindLook, nil)
	var seen State
	if l.expect(KindState, &seen); seen.Hosts[0].Own != 1 || seen.Hosts[1].Own != 0 {
		t.Errorf("%+v; want one frame to Weft's ports", seen.Hosts)
	}
	if r := l.finish(); r.Refusals[0].Spoofed+r.Refusals[0].SpoofedMAC != spoofed || r.Refusals[0].SpoofedMAC != 4 ||
		r.Refusals[0].Malformed != 1 || r.Refusals[0].NotRouted != 0 || r.Refusals[1] != (Refusals{}) {
		t.Errorf("refused %+v, want %d that pretend to be somebody else's and one malformed", r.Refusals, spoofed)
	}
}

// threeHosts returns three hosts on a switch: 10 Gb/s, 1 us.
func threeHosts() fabric.Config {
	port := func(from, to fabric.NodeID) fabric.PortConfig {
		return fabric.PortConfig{From: from, To: to, Link: fabric.Link{Rate: 10 * units.Gbps, Delay: units.Microsecond}, Buffer: units.MB}
	}
	return fabric.Config{
		Hosts: 3,
		Ports: []fabric.PortConfig{port(0, 3), port(1, 3), port(2, 3), port(3, 0), port(3, 1), port(3, 2)},
		Switches: []fabric.SwitchConfig{
			{Name: "s", Groups: [][]int32{{3}, {4}, {5}}, Route: []int32{0, 1, 2}},
		},
	}
}

func TestEndsWhenTheOrchestratorIsGone(t *testing.T) {
	l := startLab(t, Config{Network: twoHosts(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}})
	l.begin(1)
	l.conn.Close()
	if err := <-l.done; !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
		t.Errorf("ended with %v, want the end of the connection", err)
	}
}

// A descriptor that frames cannot be read from is refused, and so is a network that is none.
func TestRefusesBadPorts(t *testing.T) {
	c := Config{Network: twoHosts(), Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1)}}
	l, err := newLoop(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Network.Ports = c.Network.Ports[1:]
	if _, err := newLoop(c, nil); err == nil {
		t.Error("a network with a port less is accepted")
	}
	if l.attach(0, Port{FD: -1, Kind: PortTAP}) == nil || l.attach(0, Port{FD: 0, Kind: "pipe"}) == nil {
		t.Error("a bad descriptor or one of no known kind is accepted")
	}
}
