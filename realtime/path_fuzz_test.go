package realtime

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"weft/clocksync"
	"weft/clocksync/labtime"
	"weft/clocksync/ptp"
	"weft/fabric"
	"weft/internal/fuzztest"
	"weft/transport/wire"
	"weft/units"
)

// allFeatures is a network in which the fabric does all that it can do: two hosts on a switch and
// one on another, two links between the switches that CCM chooses among, PFC towards hosts, marks,
// telemetry, links that lose, double and delay packets, and switches that are transparent clocks
// and measure their links.
func allFeatures(departs bool) Config {
	port := func(from, to fabric.NodeID) fabric.PortConfig {
		return fabric.PortConfig{
			From: from, To: to, Link: fabric.Link{Rate: units.Gbps, Delay: units.Microsecond}, Buffer: 20_000, Light: 1000, Congested: 2000,
			ECN: fabric.ECNConfig{On: true, Kmin: 500, Kmax: 3000, Pmax: 1},
		}
	}
	n := fabric.Config{
		Seed: 1, Hosts: 3, Port: wire.Port, Stations: clocksync.EventPort, Disturbable: true,
		CCM: &fabric.CCMConfig{RTT: 10 * units.Microsecond, Every: 20 * units.Microsecond, Refresh: 50 * units.Microsecond, Loss: 0.1},
		Ports: []fabric.PortConfig{
			port(0, 3), port(1, 3), port(2, 4), port(3, 0), port(3, 1), port(3, 4), port(3, 4), port(4, 2), port(4, 3), port(4, 3),
		},
		Switches: []fabric.SwitchConfig{
			{Name: "s0", Seed: 1, Balance: fabric.CCM, Groups: [][]int32{{3}, {4}, {5, 6}}, Route: []int32{0, 1, 2, -1, 2}},
			{Name: "s1", Seed: 2, Balance: fabric.CCM, Groups: [][]int32{{7}, {8, 9}}, Route: []int32{1, 1, 0, 1, -1}},
		},
	}
	for s := range n.Switches {
		n.Switches[s].Buffer.Total = 200_000
	}
	for p := range 3 {
		n.Ports[p].PFC[dataClass] = fabric.PFCConfig{On: true, Xoff: 3000, Xon: 1000, Headroom: 20_000}
	}
	p := &n.Ports[4]
	p.Reorder, p.ReorderBy, p.Duplicate, p.Jitter = 0.2, 30*units.Microsecond, 0.2, units.Microsecond
	n.Ports[6].Loss = 0.1
	for _, slow := range []int{3, 4, 5, 7} { // so that queues grow
		n.Ports[slow].Rate = units.Gbps / 20
	}
	return Config{
		Network: n, Dilation: 1, Hosts: []Address{addrOf(0), addrOf(1), addrOf(2)}, Switch: network, Ahead: 50 * units.Microsecond,
		Switches: [][4]byte{{10, 128, 0, 1}, {10, 128, 0, 2}}, MaxFrame: 2000,
		Transparent: true, PeerDelay: units.Millisecond, Departs: departs,
	}
}

// manualClock is a clock that the test sets.
type manualClock int64

func (c *manualClock) Now() int64 { return int64(*c) }

// hostPort is a host's end of its cable: frames that the fabric has not read yet, and checks of
// what it delivers.
type hostPort struct {
	path *fuzzedFabric
	host fabric.HostID
	sent [][]byte
	full bool // the kernel takes nothing
	got  int
}

func (c *hostPort) Read(b []byte) (n int, again bool, err error) {
	if len(c.sent) == 0 {
		return 0, true, nil
	}
	n = copy(b, c.sent[0]) // a longer frame is cut, as by a TAP
	c.sent = c.sent[1:]
	c.path.read++
	return n, false, nil
}

func (c *hostPort) Write(frame []byte) (n int, again bool, err error) {
	if c.full {
		return 0, true, nil
	}
	c.got++
	c.path.checkArrival(c.host, frame)
	return len(frame), false, nil
}

// fuzzedFabric is a fabric under fuzzing: frames of hosts in, frames to hosts out, without sockets.
type fuzzedFabric struct {
	t      testing.TB
	l      *loop
	clock  manualClock
	cables []*hostPort
	sent   map[uint32][][]byte // frames by the source address and identification of IPv4
	read   int
	script []byte
}

// newFuzzedFabric returns the fabric of allFeatures at lab time 0, with descriptors that are never
// readable.
func newFuzzedFabric(t testing.TB, script []byte, fds []int) *fuzzedFabric {
	p := &fuzzedFabric{t: t, script: script, sent: map[uint32][][]byte{}}
	options := p.byte()
	l, err := newLoop(allFeatures(options&1 != 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.l, l.clock, p.clock = l, &p.clock, 1
	l.scale.Scale = labtime.Scale{T0: 1, Dilation: 1}
	for h := range l.ports {
		if err := l.attach(h, Port{FD: fds[h], Kind: PortTAP}); err != nil {
			t.Fatal(err)
		}
		p.cables = append(p.cables, &hostPort{path: p, host: fabric.HostID(h)})
		l.ports[h].cable = p.cables[h]
	}
	if options&2 != 0 {
		for _, c := range []Capture{{Host: 0, Port: -1, Snap: 60}, {Host: -1, Port: 5, Snap: 2000}, {Host: -1, Port: 3, Snap: 5}} {
			l.captures = append(l.captures, &capture{Capture: c, fd: fds[len(fds)-1], lost: &l.report.Uncaptured})
		}
		l.net.Observers.Trace(l.tracePort)
	}
	return p
}

// byte returns the next byte of the script, which ends in zeros.
func (p *fuzzedFabric) byte() byte {
	if len(p.script) == 0 {
		return 0
	}
	b := p.script[0]
	p.script = p.script[1:]
	return b
}

// word returns the next two bytes of the script.
func (p *fuzzedFabric) word() uint16 { return uint16(p.byte())<<8 | uint16(p.byte()) }

// bytes returns up to most bytes, the first of them from the script and then zeros.
func (p *fuzzedFabric) bytes(most int) []byte {
	n := min(int(p.byte()&0x3f), len(p.script), most)
	b := append([]byte(nil), p.script[:n]...)
	p.script = p.script[n:]
	return append(b, make([]byte, int(p.byte())*8%(most+1-n))...)
}

// advance lets time pass.
func (p *fuzzedFabric) advance(d units.Time) {
	p.clock += manualClock(d.Nanoseconds())
	p.l.fire(p.l.labNow())
}

// send has host h send a frame, of which one byte may be damaged first, and the fabric read it.
func (p *fuzzedFabric) send(h int, frame []byte) {
	frame = append(make([]byte, 0, len(frame)+wire.DepartureSize), frame...)
	if how := p.byte(); how > 0xd0 && len(frame) > 0 {
		frame[int(p.word())%len(frame)] ^= p.byte()
	}
	if d, ok := parseIPv4(frame[:min(len(frame), p.l.cfg.MaxFrame)]); ok {
		key := frameKey(frame, &d)
		p.sent[key] = append(p.sent[key], frame)
	}
	c := p.cables[h]
	c.sent = append(c.sent, frame)
	for range 2 {
		if !p.l.ports[h].full {
			p.l.fail(p.l.read(fabric.HostID(h)))
		}
	}
}

// play runs the script, then waits until the fabric is idle.
func (p *fuzzedFabric) play() {
	l := p.l
	for n := uint16(0); len(p.script) > 0 && n < 400; n++ {
		op := p.byte()
		h := int(op>>4) % len(l.ports)
		from, to := l.cfg.Hosts[h], l.cfg.Hosts[(h+1+int(op>>6)%2)%len(l.ports)]
		if op>>4 == 15 {
			to.IP = l.cfg.Switches[0]
		}
		datagram := func(port uint16, tos byte, message []byte) {
			b := make([]byte, udpLen, udpLen+len(message)+wire.DepartureSize)
			b = append(b, message...)
			if l.cfg.Departs && tos&4 == 0 {
				b = wire.AppendDeparture(b, l.labNow()+units.Time(p.word())*units.Nanosecond)
			}
			binary.BigEndian.PutUint16(b, 49152+n%7)
			binary.BigEndian.PutUint16(b[2:], port)
			binary.BigEndian.PutUint16(b[udpLengthAt:], uint16(len(b)))
			frame := udpFrame(from, to, tos, b)
			binary.BigEndian.PutUint16(frame[ethLen+4:], n+1)
			binary.BigEndian.PutUint16(frame[ipSumAt:], 0)
			binary.BigEndian.PutUint16(frame[ipSumAt:], ^onesSum(frame[ethLen:ethLen+ipMin]))
			if tos&8 != 0 {
				sealUDP(frame)
			}
			p.send(h, frame)
		}
		switch op & 0xf {
		case 0, 1:
			p.advance(units.Time(p.word()) * units.Nanosecond)
		case 2:
			p.advance(units.Time(p.byte()) * 10 * units.Microsecond)
			l.repeatNotices()
		case 3: // anything at all
			p.send(h, p.bytes(l.cfg.MaxFrame+100))
		case 4: // any IPv4 packet
			proto, tos, fragment := p.byte(), p.byte(), p.word()
			f := ipFrame(tos, proto, fragment, addressOf(from.IP), addressOf(to.IP), ipMin+int(p.byte()%11)*4, p.bytes(1500))
			copy(f[macLen:], from.MAC[:])
			binary.BigEndian.PutUint16(f[ethLen+4:], n+1)
			p.send(h, f)
		case 5: // any datagram to one of Weft's ports
			port := []uint16{wire.Port, clocksync.EventPort, clocksync.GeneralPort, clocksync.ProbePort}[p.byte()%4]
			datagram(port, p.byte(), p.bytes(1500))
		case 6, 7, 8:
			datagram(wire.Port, p.byte(), p.data())
		case 9:
			datagram(wire.Port, p.byte(), p.control())
		case 10, 11:
			var message [ptp.MaxSize]byte
			m := ptp.Message{
				Type:     []ptp.Type{ptp.Sync, ptp.DelayReq, ptp.PDelayReq, ptp.PDelayResp, ptp.FollowUp, ptp.PDelayRespFollowUp}[p.byte()%6],
				Sequence: uint16(p.byte() % 4), Correction: int64(p.word()) << 20, Flags: uint16(p.byte()) << 8,
				Source:     ptp.PortIdentity{Clock: ptp.IdentityOf(clocksync.Node(h)), Port: 1},
				Requesting: ptp.PortIdentity{Clock: ptp.IdentityOf(clocksync.Node(3 + p.byte()%2)), Port: uint16(p.byte() % 4)},
				Timestamp:  ptp.Timestamp{Seconds: 1_000_000_000, Nanoseconds: uint32(p.word())},
			}
			to.IP = [4][4]byte{to.IP, l.cfg.Switches[0], l.cfg.Switches[1], to.IP}[p.byte()%4]
			datagram(clocksync.EventPort, p.byte(), message[:m.Encode(message[:])])
		case 12:
			ask := make([]byte, ethLen+arpLen)
			binary.BigEndian.PutUint16(ask[ethTypeAt:], typeARP)
			binary.BigEndian.PutUint64(ask[ethLen-2:], typeARP<<48|arpFixed)
			ask[arpOpAt+1] = arpRequest
			copy(ask[arpSenderMAC:], from.MAC[:])
			copy(ask[arpTargetIP:], to.IP[:])
			p.send(h, append(ask, p.bytes(40)...))
		case 13:
			up := p.byte()%2 == 0
			link := [][]int{{0, 3}, {1, 4}, {2, 7}, {5, 8}, {6, 9}}[p.byte()%5]
			l.fail(l.changeNow(l.labNow(), &fabric.Change{Ports: link, Up: &up}))
		case 14:
			l.ports[h].halted = p.byte()%2 != 0
		case 15:
			p.cables[h].full = p.byte()%2 != 0
		}
	}
	for h := range l.ports {
		l.ports[h].halted = false
	}
	for range 40 {
		p.advance(units.Millisecond)
	}
	for h := range l.ports { // what was left in a host's own kernel while its NIC was full
		for len(p.cables[h].sent) > 0 && !l.ports[h].full {
			l.fail(l.read(fabric.HostID(h)))
			p.advance(units.Millisecond)
		}
	}
	for range 40 {
		p.advance(units.Millisecond)
	}
}

// data returns a data packet of the transport with any fields.
func (p *fuzzedFabric) data() []byte {
	kind, size := p.byte(), 1+units.Bytes(p.word())%1200
	d := wire.Data{
		Flags: wire.Flags(kind) & (wire.Fin | wire.AckNow), Conn: uint32(p.byte()), PSN: uint32(p.word()), Payload: size,
		Size: size, SentAt: p.l.labNow() + units.Time(int16(p.word()))*10*units.Nanosecond, Path: uint16(p.byte()),
	}
	d.Flags |= wire.Announce
	switch kind >> 6 {
	case 1:
		d.Room = 1 + p.byte()%wire.MaxHops
	case 2:
		d.Coordination = wire.Coordination{On: true, CC: kind&1 != 0, AR: p.word()}
	case 3:
		d.Coordination = wire.Coordination{On: true, AR: wire.AskSource}
	}
	b := make([]byte, d.Len()+size)
	d.Encode(b)
	return b
}

// control returns any other packet of the transport, or one that only the network sends.
func (p *fuzzedFabric) control() []byte {
	b := make([]byte, 160)
	switch p.byte() % 6 {
	case 0:
		a := wire.Ack{Nak: p.byte()%2 != 0, Count: 1, PSN: uint32(p.word()), Room: p.byte() % (wire.MaxHops + 1)}
		a.Encode(b)
		return b[:a.Len()]
	case 1:
		(&wire.Sack{Bitmap: uint64(p.word())}).Encode(b)
		return b[:wire.SackSize]
	case 2:
		(&wire.Notice{Kind: wire.NeedsPath, Src: uint32(p.byte() % 3), Dst: uint32(p.byte() % 3), SrcPort: p.word(), Switch: 3}).Encode(b)
		return b[:wire.NoticeSize]
	case 3:
		(&wire.Pause{Host: uint32(p.byte() % 3), Class: dataClass, Held: true, Seq: uint32(p.word())}).Encode(b)
		return b[:wire.PauseSize]
	case 4:
		(&wire.Probe{PSN: uint32(p.word())}).Encode(b)
	default:
		(&wire.CNP{PSN: uint32(p.word())}).Encode(b)
	}
	return b[:wire.CNPSize]
}

// checkArrival checks a frame that host h receives: its destination, its source, and that only the
// fields which switches write have changed.
func (p *fuzzedFabric) checkArrival(h fabric.HostID, frame []byte) {
	t, to := p.t, p.l.cfg.Hosts[h]
	if len(frame) < ethLen || MAC(frame[:macLen]) != to.MAC && etherType(frame) != typeARP {
		t.Fatalf("host %d gets a frame of another: % x", h, frame)
	}
	if etherType(frame) == typeARP {
		if len(frame) != ethLen+arpLen || frame[arpOpAt+1] != arpReply {
			t.Fatalf("host %d gets the ARP packet % x", h, frame)
		}
		return
	}
	d, ok := parseIPv4(frame)
	if !ok || d.dst != addressOf(to.IP) || len(frame) > p.l.cfg.MaxFrame {
		t.Fatalf("host %d gets a frame of %d bytes to %#x: % x", h, len(frame), d.dst, frame[:min(len(frame), 80)])
	}
	if d.src == p.l.switchIP || p.l.bySwitch[d.src] {
		if onesSum(frame[ethLen:ethLen+ipMin]) != 0xffff || d.udp == 0 {
			t.Fatalf("the network says % x", frame)
		}
		return
	}
	if src, known := p.l.byIP[d.src]; (d.udp != 0 && own(d.dport) || d.proto == protoUDP && d.fragment) && (!known || src == h) {
		t.Fatalf("host %d gets a packet from %#x to port %d", h, d.src, d.dport)
	}
	why := "nobody sent it"
	for _, was := range p.sent[frameKey(frame, &d)] {
		if why = p.difference(was, frame, &d); why == "" {
			return
		}
	}
	t.Fatalf("host %d gets a frame, but %s: % x", h, why, frame)
}

// frameKey returns the key under which a sent frame is found again when it arrives.
func frameKey(frame []byte, d *datagram) uint32 {
	return d.src<<16 | uint32(binary.BigEndian.Uint16(frame[ethLen+4:]))
}

// difference returns what is wrong with a frame that was sent as another and that d describes; ""
// if nothing is.
func (p *fuzzedFabric) difference(was, frame []byte, d *datagram) string {
	before, _ := parseIPv4(was)
	if d.tos&3 == 3 && before.tos&3 == 0 || d.tos&^3 != before.tos&^3 {
		return fmt.Sprintf("its TOS was %#x", before.tos)
	}
	header := ethLen + int(frame[ethLen]&0xf)*4
	if sum, old := onesSum(frame[ethLen:header]), onesSum(was[ethLen:header]); old == 0xffff && sum != 0xffff {
		return "its checksum of IPv4 was right"
	}
	if d.udp != 0 && int(binary.BigEndian.Uint16(frame[int(d.udp)+udpLengthAt:])) == len(udpOf(frame)) && len(was) == len(frame) {
		if s := binary.BigEndian.Uint16(was[int(d.udp)+udpSumAt:]); s != 0 && checksumOfUDP(was) == 0xffff && checksumOfUDP(frame) != 0xffff {
			return "its checksum of UDP was right"
		}
	}
	said := p.l.cfg.Departs && d.udp != 0 && len(was) == len(frame)+wire.DepartureSize // when it leaves, which was taken off
	if len(was) != len(frame) && !said {
		return fmt.Sprintf("it had %d bytes", len(was))
	}
	if !bytes.Equal(immutablePart(frame, d), immutablePart(was[:len(frame)], d)) {
		return fmt.Sprintf("it was % x", was)
	}
	return ""
}

// immutablePart returns a frame without the fields that the fabric may change.
func immutablePart(frame []byte, d *datagram) []byte {
	f := append([]byte(nil), frame...)
	clear(f[:macLen])
	f[ipTOSAt] &^= 3
	clear(f[ipSumAt:][:2])
	clear(f[ethLen+2:][:2]) // cut takes off the instant of departure
	if d.udp == 0 || len(f) < int(d.udp)+udpLen {
		return f
	}
	clear(f[int(d.udp)+udpLengthAt:][:4])
	message := f[int(d.udp)+udpLen:]
	var data wire.Data
	switch {
	case d.dport == clocksync.EventPort && len(message) >= 34: // a header of PTP
		clear(message[8:16]) // the correction
	case d.dport == wire.Port && data.Decode(message) == nil:
		clear(message[12:14])                    // the check
		clear(message[40:48])                    // when it left
		clear(message[wire.DataSize:data.Len()]) // what switches write
	}
	return f
}

// Whatever hosts send, in whatever order, the fabric goes on, loses and invents nothing, and gives
// each host what is for it.
func FuzzPath(f *testing.F) {
	corpus := fuzztest.New(f)
	fds := make([]int, 3, 4)
	for h := range fds {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			f.Fatal(err)
		}
		fds[h] = fd
	}
	records, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		f.Fatal(err)
	}
	fds = append(fds, records[0])
	for _, seed := range pathSeeds() {
		corpus.Add(seed)
	}
	corpus.Fuzz(func(t *testing.T, script []byte) {
		p := newFuzzedFabric(t, script, fds)
		defer p.l.poll.Close()
		p.play()
		for record := make([]byte, 4096); ; {
			n, err := unix.Read(records[1], record)
			if err != nil {
				break
			}
			if _, err := ParseCaptured(record[:n]); err != nil {
				t.Error(err)
			}
		}
		p.checkIdle()
	})
}

// checkIdle checks a fabric that has become idle.
func (p *fuzzedFabric) checkIdle() {
	l := p.l
	if l.err != nil {
		p.t.Fatalf("the fabric ended: %v", l.err)
	}
	if err := l.net.CheckConservation(); err != nil {
		p.t.Fatal(err)
	}
	c := l.net.Counters()
	own := l.bridges.Counters().Sent + c.CCM.Notes[1] + c.CCM.Notes[2] + c.CCM.Notes[3] - c.CCM.Notes[0]
	known := c.Injected - own + l.report.ARP + l.report.Early + l.report.Halted
	for h := range l.ports {
		r := l.refusals[h]
		known += r.Malformed + r.NotRouted + r.Spoofed + r.SpoofedMAC
		if held := &l.ports[h]; held.held.n != 0 || held.heldBytes != 0 {
			p.t.Errorf("host %d still has %d packets of %d bytes held", h, held.held.n, held.heldBytes)
		}
		if left := len(p.cables[h].sent); left > 0 && !l.net.NICs.Paused(fabric.HostID(h)) && l.net.NICs.Free(fabric.HostID(h)) {
			p.t.Errorf("%d frames of host %d were not read, and its NIC is free", left, h)
		}
	}
	if known != int64(p.read) {
		p.t.Errorf("%d frames were read; %d were carried or counted as refused (%+v, network %+v)", p.read, known, l.refusals, c)
	}
}

// pathSeeds are scripts of bytes that look random and are the same each time: of all kinds of
// steps, and of some kinds alone.
func pathSeeds() (seeds [][]byte) {
	source := rand.New(rand.NewPCG(1, 2))
	for i, steps := range []string{"", "", "", "", "\x00\x06", "\x00\x07\x16\x26", "\x02\x0a\x1b\x2a", "\x01\x09\x1c\x28"} {
		script := []byte{byte(i)}
		for range 1500 {
			b := byte(source.Uint32())
			if len(steps) > 0 && source.IntN(2) == 0 {
				b = steps[source.IntN(len(steps))]
			}
			if source.IntN(3) == 0 {
				b &= 3 // little time, small numbers
			}
			script = append(script, b)
		}
		seeds = append(seeds, script)
	}
	// Hosts 0 and 2 send tagged packets to host 1, faster than its link; and host 0 more than its
	// NIC may hold.
	incast, flood := []byte{2}, []byte{0}
	for i := range byte(120) {
		packet := []byte{0x06, 2, 0xc0, 4, 0, 0, 0, i, 0, 0, 0, 0}
		flood = append(append(flood, packet...), packet...)
		if packet[0] = 0x06 + i%2*0x50; i%3 == 0 {
			packet = append(packet, 0, 0x20, 0)
		}
		incast = append(incast, packet...)
	}
	return append(seeds, incast, flood)
}
