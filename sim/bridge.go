package sim

import (
	"weft/clocksync"
	"weft/clocksync/node"
	"weft/clocksync/ptp"
	"weft/fabric"
	"weft/units"
)

// bridges makes switches peer-to-peer transparent clocks. It implements fabric.Stations with
// packets that carry bare messages. Partitions share it; each switch belongs to one partition.
type bridges struct {
	ptp.Bridges
	class uint8 // of the packets that switches send
}

// attachBridges makes switches measure their links, if Options.PeerDelay is set.
func (s *Sim) attachBridges(cfg *fabric.Config) error {
	if s.opts.PeerDelay == 0 {
		return nil
	}
	all, err := ptp.NewBridges(clocksync.Node(cfg.Hosts), cfg.SwitchDegrees(), s.opts.PeerDelay)
	if err != nil {
		return err
	}
	s.bridges = &bridges{Bridges: all, class: 1}
	if s.opts.Control {
		s.bridges.class = 0
	}
	for _, p := range s.partitions {
		p.net.AttachStations(0, s.bridges)
	}
	return nil
}

// Receive implements fabric.Stations.
func (b *bridges) Receive(now units.Time, s, link int, p *fabric.Packet) {
	b.Hear(now, s, link, p.Port, p.Header, p.Queued)
}

// Pass implements fabric.Stations.
func (b *bridges) Pass(_ units.Time, s, link int, p *fabric.Packet) bool {
	return b.Bridges[s].Pass(link, p.Header)
}

// Transmit implements fabric.Stations.
func (b *bridges) Transmit(now units.Time, s int, p *fabric.Packet) (link int, ok bool) {
	link, n, ok := b.Bridges[s].Transmit(now, p.Header[:ptp.MaxSize])
	if ok {
		p.Header, p.Size, p.Class, p.Port = p.Header[:n], node.SizeOf(n), b.class, clocksync.EventPort
	}
	return link, ok
}

// Bridges returns the counters of switches that are peer-to-peer transparent clocks.
func (s *Sim) Bridges() (c clocksync.Counters) {
	if s.bridges != nil {
		c = s.bridges.Counters()
	}
	return c
}
