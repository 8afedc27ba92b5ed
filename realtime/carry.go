package realtime

import (
	"weft/clocksync"
	"weft/eventqueue"
	"weft/fabric"
	"weft/internal/splitmix"
	"weft/transport/wire"
	"weft/units"
)

// read reads the frames that a host has sent, at most a burst. To read until nothing is left would
// cost a system call more than it gains when frames arrive one by one, so the burst adapts to what
// was there.
func (l *loop) read(h fabric.HostID) error {
	port := &l.ports[h]
	if l.isFull(h, port) {
		port.full = true
		return l.poll.Remove(port.fd)
	}
	got := 0
	for got < port.burst {
		p := l.packet()
		n, again, err := port.cable.Read(p.Header[:cap(p.Header)])
		if err != nil || again {
			l.net.Put(p)
			port.burst = max(1, port.burst/2)
			return l.unlessGone(h, err)
		}
		got++
		l.rest.frames++
		l.report.Backlog = max(l.report.Backlog, got)
		p.Header = p.Header[:n]
		l.take(h, p)
	}
	port.burst = min(2*port.burst, maxBurst)
	return nil
}

// maxNICQueue is the number of bytes that may wait in a host's modelled NIC, or for their departure
// to it. Above it the host's frames are left to its kernel, whose interface queue then fills: a
// program that sends faster than the link is held back or loses packets in its own host, as on any
// machine. Weft's own nodes send at the rate of the link and never come near.
const maxNICQueue = 256 * units.KB

// Idle implements fabric.Sink. Nodes send by themselves, so there is nothing to pull; but a port
// that was not read because its NIC was full is read again.
func (l *loop) Idle(_ units.Time, h fabric.HostID) {
	port := &l.ports[h]
	if port.full && !port.gone {
		port.full = false
		l.fail(l.poll.Add(port.fd, int32(h)))
	}
}

// unlessGone returns err, unless it says that the port's host has ended. Then it marks the port as
// gone and returns nil: what to do is the orchestrator's decision, and the rest of the network
// continues.
func (l *loop) unlessGone(h fabric.HostID, err error) error {
	if err == nil || !isGone(err) {
		return err
	}
	p := &l.ports[h]
	if p.gone {
		return nil
	}
	p.gone = true
	l.reportGone(h)
	if p.full {
		return nil // it is not in the poller
	}
	return l.poll.Remove(p.fd)
}

// reportGone tells the orchestrator that a host's interface is gone or down.
func (l *loop) reportGone(h fabric.HostID) {
	if l.conn != nil { // nil in tests
		_ = l.conn.SendValue(KindGone, Gone{Host: int(h)}) // losing the orchestrator ends the loop elsewhere
	}
}

// packet returns a packet with room for a frame of Config.MaxFrame bytes.
func (l *loop) packet() *fabric.Packet {
	p := l.net.Get()
	if cap(p.Header) < l.cfg.MaxFrame {
		p.Header = make([]byte, 0, l.cfg.MaxFrame) // stays with the packet in the pool
	}
	return p
}

// take handles the frame in p, which host h has sent: it gives it to the network, answers it or
// drops it.
func (l *loop) take(h fabric.HostID, p *fabric.Packet) {
	frame := p.Header
	if l.ports[h].halted {
		l.report.Halted++
		l.net.Put(p)
		return
	}
	if l.captures != nil {
		l.captureHost(h, sentByHost, frame)
	}
	switch etherType(frame) {
	case typeIPv4:
		if l.route(h, p) {
			return
		}
	case typeARP:
		l.answer(h, frame)
	default:
		l.refusals[h].NotRouted++
	}
	l.net.Put(p)
}

// route gives the IPv4 packet in p to the network. If the packet cannot be carried it is counted,
// and route returns false.
func (l *loop) route(h fabric.HostID, p *fabric.Packet) bool {
	refused := &l.refusals[h]
	d, ok := parseIPv4(p.Header)
	if !ok {
		refused.Malformed++
		return false
	}
	switch address, mac := l.spoofed(h, p.Header, &d); {
	case address:
		refused.Spoofed++
		return false
	case mac:
		refused.SpoofedMAC++
		return false
	}
	c, ok := read(p.Header, &d)
	if !ok {
		refused.Malformed++
		return false
	}
	dst, known := l.byIP[d.dst]
	switch {
	case l.toSwitch(h, &d):
		dst = h
	case !known || dst == h:
		refused.NotRouted++
		return false
	}
	switch answered, own := l.isICMPAnswer(h, p.Header, &d), d.proto == protoUDP && own(d.dport); {
	case own || answered == toOwn:
		l.own[h]++
	case answered == toOther:
		l.answers[h]++
	default:
		l.beside[h]++
	}
	fill(p, h, dst, &d)
	l.depart(l.labNow(), p, c, &d)
	return true
}

// spoofed reports whether the frame has a false IP address as its source, or else a false MAC
// address: an address of the network, or, on a packet to one of Weft's own ports, one other than
// the host's. Fragments have no ports and are reassembled at the receiver, so every UDP fragment
// must have the host's address. Other traffic may come from elsewhere: a host may forward, or
// bridge.
func (l *loop) spoofed(h fabric.HostID, frame []byte, d *datagram) (address, mac bool) {
	if d.src == l.switchIP && l.switchIP != 0 || l.bySwitch[d.src] {
		return true, false
	}
	if d.proto != protoUDP || !d.fragment && !own(d.dport) {
		return false, false
	}
	from := &l.cfg.Hosts[h]
	return d.src != addressOf(from.IP), MAC(frame[macLen:2*macLen]) != from.MAC
}

// own reports whether packets to a UDP port are Weft's own: of the transport or of clock
// synchronization.
func own(port uint16) bool {
	return port == wire.Port ||
		port == clocksync.EventPort || port == clocksync.GeneralPort || port == clocksync.ProbePort
}

// fill sets the fields of p that the network reads from the frame of d.
func fill(p *fabric.Packet, src, dst fabric.HostID, d *datagram) {
	p.Src, p.Dst = src, dst
	p.Size = units.Bytes(len(p.Header) + fcsLen)
	p.Class, p.ECN = d.class(), d.ecn()
	if d.udp != 0 {
		p.Port = d.dport
	}
	p.FlowHash = fabric.FlowHash(src, dst, d.sport, d.dport)
	if d.proto != protoUDP {
		p.FlowHash ^= uint64(d.proto) * splitmix.Gamma
	}
}

// depart hands p to its host's NIC: at its departure instant if it has one and is early, otherwise
// now.
//
// A node that sends data knows when the packet leaves its NIC and wakes up a little earlier, so
// that a late wake-up does not make the packet late. Before the start of lab time no other packet
// is carried.
func (l *loop) depart(now units.Time, p *fabric.Packet, c contents, d *datagram) {
	l.fire(now)
	at, ok := l.cut(p, c)
	if d.proto != protoUDP || d.dport != wire.Port { // agents receive all of these: no ICMP error answers them
		if q, ok := quoteOf(p.Header[ethLen:]); ok {
			l.quotes[p.Dst].add(q, d.proto == protoUDP && own(d.dport))
		}
	}
	if c.shape.Data() {
		p.INT, p.Keep = c.shape.Asks(), c.shape.Keep()
		if l.cfg.Network.CCM != nil {
			readTag(p, c, d)
		}
		if !l.cfg.Departs {
			at, ok = c.shape.SentAt(c.message(p.Header)), true
		}
	}
	if now < 0 && (!ok || l.scale.T0 == 0 || at < 0 || at > now+l.cfg.Ahead) {
		l.report.Early++
		if ok && at >= 0 && c.shape.Data() {
			l.report.Unborn++
		}
		l.net.Put(p)
		return
	}
	if ok && l.blames(p.Src, now, at) {
		l.report.Departure.Record(max(now-at, 0))
		l.behind.Late.Record(at, now)
	} else if pushed := l.behind.pushed; !ok && pushed != 0 && l.blames(p.Src, now, pushed) {
		l.behind.Record(pushed, now)
	}
	if ok && c.shape.Data() {
		c.leaves = onTime
	}
	p.Context = c.pack()
	if !ok || at <= now || at > now+l.cfg.Ahead {
		l.inject(now, p)
		return
	}
	port := &l.ports[p.Src]
	p.SentAt = at
	port.held.push(p)
	port.heldBytes += p.Size
	if port.held.n == 1 {
		l.events.Set(l.held+eventqueue.ID(p.Src), at)
	}
}

// blames reports whether the machine is to blame for a packet of host h that should have left at
// the instant at and arrives now. It is not while PFC holds the host back: a packet that was ready
// before the host may send waits in the host's kernel and is rightly late.
func (l *loop) blames(h fabric.HostID, now, at units.Time) bool {
	port := &l.ports[h]
	if l.holdsBack(h) {
		port.heldUntil = max(port.heldUntil, now)
	}
	return at >= port.heldUntil
}

// holdsBack reports whether data that host h sends now waits because of a pause, even one that has
// ended.
func (l *loop) holdsBack(h fabric.HostID) bool {
	port := &l.ports[h]
	port.heldBack = l.net.NICs.Paused(h) || port.heldBack && l.net.NICs.Queued(h) > 0
	return port.heldBack
}

// inject hands p to its host's NIC.
func (l *loop) inject(at units.Time, p *fabric.Packet) {
	if c := contentsOf(p); c.leaves == onTime && l.holdsBack(p.Src) {
		c.leaves = heldBack
		p.Context = c.pack()
	}
	l.net.Inject(at, p)
}

// release injects the first held packet of h and arms the next.
func (l *loop) release(at units.Time, h fabric.HostID) {
	port := &l.ports[h]
	p := port.held.pop()
	port.heldBytes -= p.Size
	if next, ok := port.held.front(); ok {
		l.events.Set(l.held+eventqueue.ID(h), max(next, at))
	}
	p.SentAt = 0
	l.inject(at, p)
}

// Deliver implements fabric.Sink: it writes a frame to the host at which it has arrived.
func (l *loop) Deliver(now units.Time, p *fabric.Packet) {
	n, note := l.net.NoteOf(p)
	if note {
		p.Header = l.notification(p.Header, p.Dst, &n)
	}
	c := contentsOf(p)
	if trimmed, last := p.Trimmed(); trimmed {
		p.Header = c.trim(p.Header, last)
	}
	frame := p.Header
	copy(frame, l.cfg.Hosts[p.Dst].MAC[:])
	if p.ECN == fabric.CE && frame[ipTOSAt]&3 != uint8(fabric.CE) {
		markCE(frame)
	}
	if c.leaves == heldBack {
		l.restamp(c, frame, p.SentAt)
	}
	if p.Tag.On {
		c.writeTag(frame, p.Tag)
	}
	if p.INT {
		c.note(frame, l.net.Telemetry(p))
	}
	if l.cfg.Transparent && p.Port == clocksync.EventPort {
		rewrite(c.datagram(frame), func(message []byte) { clocksync.AddResidence(message, p.Queued) })
	}
	var written int64
	var received bool
	if note || own(p.Port) {
		written, received = l.hand(p.Dst, frame, now)
	} else {
		received = l.write(p.Dst, frame)
	}
	if !received {
		l.report.Unreceived++
	}
	if written == 0 {
		written = l.clock.Now()
	}
	l.rest.frames++
	late := l.scale.Lab(written)
	l.report.Delivery.Record(max(late-now, 0))
	l.behind.Record(now, late)
	if c.leaves != anytime {
		l.report.QueueDelay.Record(p.Queued)
	}
	l.net.Put(p)
}

// write hands a frame to a host's kernel. A frame that the kernel does not take is lost, and
// counted in Report.Refused. write returns false if there is no kernel to take it: the host is
// halted, has ended, or has taken its interface down.
func (l *loop) write(h fabric.HostID, frame []byte) (received bool) {
	port := &l.ports[h]
	if !l.reaches(h, frame) {
		return false
	}
	n, again, err := port.cable.Write(frame)
	switch {
	case err != nil && isGone(err):
		l.fail(l.unlessGone(h, err))
		return false
	case err != nil && isDown(err):
		if !port.down {
			port.down = true
			l.reportGone(h)
		}
		return false
	}
	port.down = false
	if again || err != nil || n != len(frame) {
		l.report.Refused++
	}
	return true
}

// reaches reports whether a frame that has arrived at a host gets there: the host has not ended and
// is not halted. It copies the frame to captures.
func (l *loop) reaches(h fabric.HostID, frame []byte) bool {
	port := &l.ports[h]
	if port.gone || port.halted {
		return false
	}
	if l.captures != nil {
		l.captureHost(h, deliveredToHost, frame)
	}
	return true
}

// hand hands a frame to a host's agent, which it has reached at an instant: to the agent's NIC, or
// to the host's kernel if it has none. It returns when it wrote to a NIC, CLOCK_MONOTONIC in
// nanoseconds, or else 0; and, as write, whether there was an agent to take it.
func (l *loop) hand(h fabric.HostID, frame []byte, at units.Time) (written int64, received bool) {
	nic := l.ports[h].nic
	if nic == nil {
		return 0, l.write(h, frame)
	}
	if !l.reaches(h, frame) {
		return 0, false
	}
	nic.at = at
	n, again, err := nic.Write(frame)
	if err != nil {
		l.fail(l.unlessLie(h, err))
		return 0, false
	}
	if again || n != len(frame) {
		l.report.Refused++
		return 0, true
	}
	return nic.written, true
}

// answer replies to an ARP request for another host's address.
func (l *loop) answer(h fabric.HostID, frame []byte) {
	target, ok := arpQuery(frame)
	if !ok {
		l.refusals[h].NotRouted++
		return
	}
	if owner, known := l.byIP[target]; known && owner != h {
		l.report.ARP++
		l.write(h, answerARP(frame, l.cfg.Hosts[owner].MAC))
		return
	}
	l.refusals[h].NotRouted++
}
