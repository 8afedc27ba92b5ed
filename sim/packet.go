package sim

import (
	"cmp"

	"weft/clocksync"
	"weft/fabric"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Deliver implements fabric.Sink: it hands p to its host.
func (s *partition) Deliver(now units.Time, p *fabric.Packet) {
	if p.Context > 0 && now >= s.sim.opts.From {
		s.delay.Record(p.Queued)
	}
	h := int(p.Dst)
	s.in.At, s.in.ClockOffset, s.in.Port = now, 0, p.Port
	s.in.Src = transport.HostID(p.Src)
	s.in.Header = p.Header
	s.in.Payload = units.Bytes(p.Context)
	s.in.CE = p.ECN == fabric.CE
	s.in.INT = nil
	if trimmed, last := p.Trimmed(); trimmed {
		wire.PeekTrim(p.Header, last)
		s.in.Payload = 0
	}
	if p.INT {
		s.telemetry(p)
	}
	if n, ok := s.net.NoteOf(p); ok {
		s.notice(p, &n)
	}
	if s.sim.opts.Transparent && p.Port == clocksync.EventPort {
		clocksync.AddResidence(p.Header, p.Queued)
	}
	if _, err := s.sim.hosts[h].host.Receive(now, &s.in); err != nil {
		s.refuse(int(h), err)
	}
	s.net.Put(p)
	s.settle(now, h)
}

// telemetry copies what switch ports recorded on p to s.in. Rates are left out: hosts know them
// from the topology.
func (s *partition) telemetry(p *fabric.Packet) {
	hops := s.net.Telemetry(p)
	for i, h := range hops {
		s.int[i] = wire.Hop{At: h.At, Sent: h.Sent, Queued: h.Queued}
	}
	s.in.INT = s.int[:len(hops)]
}

// notice encodes a notification of a switch in s.in.
func (s *partition) notice(p *fabric.Packet, n *fabric.Note) {
	w := wire.Notice{
		Kind: wire.NoticeKind(n.Type), Last: n.Last, SrcPort: n.SrcPort,
		Src: uint32(n.Src), Dst: uint32(n.Dst), Switch: uint32(n.Switch), At: n.At,
	}
	p.Header = p.Header[:wire.NoticeSize]
	w.Encode(p.Header)
	s.in.Header = p.Header
}

// asksTelemetry reports whether a header has room for telemetry: that of a data packet has, that of
// an acknowledgement, which returns telemetry, has not.
func asksTelemetry(header []byte) bool {
	if len(header) < 4 || wire.Flags(header[3])&wire.Telemetry == 0 {
		return false
	}
	t, err := wire.Peek(header)
	return err == nil && t == wire.TypeData
}

// Idle implements fabric.Sink: it pulls the next packet of h.
func (s *partition) Idle(now units.Time, h fabric.HostID) { s.settle(now, int(h)) }

// inject sends the packet that host h has filled in in s.out.
func (s *partition) inject(now units.Time, h fabric.HostID) {
	o := &s.out
	p := s.net.Get()
	p.Src, p.Dst = h, fabric.HostID(o.Dst)
	if int(o.Dst) >= len(s.sim.hosts) { // to the switch that the host is attached to
		p.Dst = h
	}
	p.Size = o.Size
	p.Port = o.DstPort
	p.FlowHash = fabric.FlowHash(p.Src, p.Dst, o.SrcPort, cmp.Or(o.DstPort, wire.Port))
	p.Class = o.Class
	if o.ECT {
		p.ECN = fabric.ECT0
	}
	p.Context = int64(o.Payload) // read by Deliver
	p.Header = append(p.Header, o.Header[:o.N]...)
	if s.sim.coordinated {
		c := wire.PeekCoordination(p.Header)
		p.Tag, p.SrcPort = fabric.Tag{On: c.On, CC: c.CC, AR: c.AR}, o.SrcPort
	}
	p.INT, p.Keep = asksTelemetry(p.Header), wire.PeekKeep(p.Header)
	s.net.Inject(now, p)
}
