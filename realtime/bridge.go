package realtime

import (
	"weft/clocksync"
	"weft/clocksync/ptp"
	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// bridges makes switches peer-to-peer transparent clocks. It implements fabric.Stations with
// messages in datagrams that come from the switches' own addresses. Hosts measure their links in
// datagrams to the switch that they are attached to.
type bridges struct {
	ptp.Bridges
	loop *loop
	home []int       // by host: the switch that it is attached to, or -1
	far  [][]Address // by switch and link: the address at the other end
	tos  byte        // TOS of the datagrams that switches send
}

// attachBridges makes switches measure their links, if Config.PeerDelay is set.
func (l *loop) attachBridges() error {
	if l.cfg.PeerDelay == 0 {
		return nil
	}
	hosts, net := len(l.cfg.Hosts), &l.cfg.Network
	all, err := ptp.NewBridges(clocksync.Node(hosts), net.SwitchDegrees(), l.cfg.PeerDelay)
	if err != nil {
		return err
	}
	b := &bridges{Bridges: all, loop: l, home: make([]int, hosts)}
	if l.cfg.Control {
		b.tos = wire.TOSControl
	}
	for _, p := range net.Ports {
		if int(p.From) < hosts {
			b.home[p.From] = int(p.To) - hosts
		}
	}
	for _, links := range net.SwitchLinks() {
		far := make([]Address, len(links))
		for k, link := range links {
			if to := int(net.Ports[link.Out].To); to < hosts {
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

// toSwitch reports whether the frame of host h is a PTP message to the switch that the host is
// attached to.
func (l *loop) toSwitch(h fabric.HostID, d *datagram) bool {
	if l.bridges == nil || d.udp == 0 || d.dport != clocksync.EventPort && d.dport != clocksync.GeneralPort {
		return false
	}
	s := l.bridges.home[h]
	return s >= 0 && d.dst == addressOf(l.cfg.Switches[s])
}

// Receive implements fabric.Stations.
func (b *bridges) Receive(now units.Time, s, link int, p *fabric.Packet) {
	b.Hear(now, s, link, p.Port, contentsOf(p).message(p.Header), p.Queued)
}

// Pass implements fabric.Stations.
func (b *bridges) Pass(_ units.Time, s, link int, p *fabric.Packet) (on bool) {
	rewrite(contentsOf(p).datagram(p.Header), func(message []byte) { on = b.Bridges[s].Pass(link, message) })
	return on
}

// Transmit implements fabric.Stations.
func (b *bridges) Transmit(now units.Time, s int, p *fabric.Packet) (link int, ok bool) {
	var message [ptp.MaxSize]byte
	link, n, ok := b.Bridges[s].Transmit(now, message[:])
	if !ok {
		return 0, false
	}
	l := b.loop
	p.Header = appendDatagram(p.Header[:0], l.cfg.Switches[s], &b.far[s][link], clocksync.EventPort, b.tos, message[:n])
	p.Size, p.Port = units.Bytes(len(p.Header)+fcsLen), clocksync.EventPort
	p.Class, p.Context = datagram{tos: b.tos}.class(), contents{udp: ethLen + ipMin}.pack()
	return link, true
}
