package sim

import (
	"weft/clocksync"
	"weft/clocksync/node"
	"weft/clocksync/ptp"
	"weft/fabric"
	"weft/units"
)

// bridges are the switches as peer-to-peer transparent clocks. Parts share them, and each switch is of one part.
type bridges struct {
	all   []*ptp.Bridge
	class uint8 // of what they send
}

// employ has switches measure their links, where the run asks for it.
func (s *Sim) employ(cfg *fabric.Config) error {
	if s.opts.PeerDelay == 0 {
		return nil
	}
	b := &bridges{class: 1}
	if s.opts.Control {
		b.class = 0
	}
	for k, links := range cfg.SwitchLinks() {
		bridge, err := ptp.NewBridge(ptp.IdentityOf(clocksync.Node(cfg.Hosts+k)), len(links), s.opts.PeerDelay)
		if err != nil {
			return err
		}
		bridge.Start(0)
		b.all = append(b.all, bridge)
	}
	for _, p := range s.parts {
		p.net.AttachStations(0, b)
	}
	s.bridges = b
	return nil
}

// Receive implements fabric.Stations.
func (b *bridges) Receive(now units.Time, s, link int, p *fabric.Packet) {
	if p.Port == clocksync.EventPort {
		clocksync.AddResidence(p.Header, p.Queued)
	}
	_ = b.all[s].Receive(now, link, p.Header) // who counts what it refuses
}

// Pass implements fabric.Stations.
func (b *bridges) Pass(_ units.Time, s, link int, p *fabric.Packet) bool {
	return b.all[s].Pass(link, p.Header)
}

// Transmit implements fabric.Stations.
func (b *bridges) Transmit(now units.Time, s int, p *fabric.Packet) (link int, ok bool) {
	link, n, ok := b.all[s].Transmit(now, p.Header[:ptp.MaxSize])
	if ok {
		p.Header, p.Size, p.Class, p.Port = p.Header[:n], node.SizeOf(n), b.class, clocksync.EventPort
	}
	return link, ok
}

// Deadline implements fabric.Stations.
func (b *bridges) Deadline(s int) (units.Time, bool) { return b.all[s].Deadline() }

// Advance implements fabric.Stations.
func (b *bridges) Advance(now units.Time, s int) { b.all[s].Advance(now) }

// Bridges returns what the switches did as peer-to-peer transparent clocks.
func (s *Sim) Bridges() (c clocksync.Counters) {
	if s.bridges != nil {
		for _, b := range s.bridges.all {
			c.Add(b.Counters())
		}
	}
	return c
}
