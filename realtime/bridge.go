package realtime

import (
	"weft/clocksync"
	"weft/clocksync/ptp"
	"weft/fabric"
	"weft/units"
)

// bridges are the switches as peer-to-peer transparent clocks: they measure their links in datagrams from their own addresses,
// and hosts theirs in datagrams to the switch that they are attached to.
type bridges struct {
	loop *loop
	all  []*ptp.Bridge
	home []int       // by host: the switch that it is attached to, or below 0
	far  [][]Address // by switch and link: who is at the other end
	tos  byte        // of what they send
}

// employ has switches measure their links, where the run asks for it.
func (l *loop) employ() error {
	if l.cfg.PeerDelay == 0 {
		return nil
	}
	b := &bridges{loop: l}
	if l.cfg.Control {
		b.tos = tosControl
	}
	hosts := len(l.cfg.Hosts)
	b.home = make([]int, hosts)
	for _, p := range l.cfg.Network.Ports {
		if int(p.From) < hosts {
			b.home[p.From] = int(p.To) - hosts
		}
	}
	for s, links := range l.cfg.Network.SwitchLinks() {
		bridge, err := ptp.NewBridge(ptp.IdentityOf(clocksync.Node(hosts+s)), len(links), l.cfg.PeerDelay)
		if err != nil {
			return err
		}
		bridge.Start(0)
		b.all = append(b.all, bridge)
		far := make([]Address, len(links))
		for k, link := range links {
			if to := int(l.cfg.Network.Ports[link.Out].To); to < hosts {
				far[k] = l.cfg.Hosts[to]
			} else {
				far[k] = l.switchAddress(to - hosts)
			}
		}
		b.far = append(b.far, far)
	}
	l.bridges = b
	l.net.AttachStations(0, b)
	return nil
}

// toSwitch reports whether the frame of host h is for the switch that it is attached to, as a peer-to-peer transparent clock.
func (l *loop) toSwitch(h fabric.HostID, d *datagram) bool {
	if l.bridges == nil || d.udp == 0 || d.dport != clocksync.EventPort && d.dport != clocksync.GeneralPort {
		return false
	}
	s := l.bridges.home[h]
	return s >= 0 && d.dst == addressOf(l.cfg.Switches[s])
}

// Receive implements fabric.Stations.
func (b *bridges) Receive(now units.Time, s, link int, p *fabric.Packet) {
	message := contentsOf(p).message(p.Header)
	if p.Port == clocksync.EventPort {
		clocksync.AddResidence(message, p.Queued)
	}
	_ = b.all[s].Receive(now, link, message) // who counts what it refuses
}

// Pass implements fabric.Stations.
func (b *bridges) Pass(_ units.Time, s, link int, p *fabric.Packet) (on bool) {
	rewrite(contentsOf(p).datagram(p.Header), func(message []byte) { on = b.all[s].Pass(link, message) })
	return on
}

// Transmit implements fabric.Stations.
func (b *bridges) Transmit(now units.Time, s int, p *fabric.Packet) (link int, ok bool) {
	var message [ptp.MaxSize]byte
	link, n, ok := b.all[s].Transmit(now, message[:])
	if !ok {
		return 0, false
	}
	l := b.loop
	p.Header = appendDatagram(p.Header[:0], l.cfg.Switches[s], &b.far[s][link], clocksync.EventPort, b.tos, message[:n])
	p.Size, p.Port = units.Bytes(len(p.Header)+fcsLen), clocksync.EventPort
	p.Class, p.Context = datagram{tos: b.tos}.class(), contents{udp: ethLen + ipMin}.pack()
	return link, true
}

// Deadline implements fabric.Stations.
func (b *bridges) Deadline(s int) (units.Time, bool) { return b.all[s].Deadline() }

// Advance implements fabric.Stations.
func (b *bridges) Advance(now units.Time, s int) { b.all[s].Advance(now) }

// counters are what all of them did.
func (b *bridges) counters() (c clocksync.Counters) {
	for _, one := range b.all {
		c.Add(one.Counters())
	}
	return c
}
