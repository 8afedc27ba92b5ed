package realtime

import (
	"encoding/binary"
	"fmt"

	"weft/fabric"
	"weft/transport/wire"
)

// Coordinated congestion management in frames: the tag behind a data packet's header is read when the packet comes from its host, and
// written when it goes to the next; in between the network has it. Notifications for hosts become datagrams from the address
// of the switch that sends them. Those for switches stay in the network: nothing that a host sends reaches a switch, and none may
// speak with a switch's address.

// maxSteps bounds the steps that are told of in a run.
const maxSteps = 100_000

// coordinate prepares for it.
func (l *loop) coordinate() error {
	if l.cfg.Network.CCM == nil {
		return nil
	}
	l.net.Observers.Follow(func(s fabric.Step) {
		if l.followed++; l.followed <= maxSteps {
			l.steps = append(l.steps, s)
		}
	})
	return nil
}

// nameSwitches notes the addresses of switches that send, for coordination or as transparent clocks.
func (l *loop) nameSwitches() error {
	if n := len(l.cfg.Switches); n != len(l.cfg.Network.Switches) && (n > 0 || l.cfg.Network.CCM != nil || l.cfg.PeerDelay > 0) {
		return fmt.Errorf("addresses of %d switches, the network has %d", n, len(l.cfg.Network.Switches))
	}
	l.bySwitch = make(map[uint32]bool, len(l.cfg.Switches))
	for s, a := range l.cfg.Switches {
		if h, taken := l.byIP[addressOf(a)]; taken {
			return fmt.Errorf("switch %d and host %d have the same address %v", s, h, a)
		}
		l.bySwitch[addressOf(a)] = true
	}
	return nil
}

// addressOf is an address as frames are looked up by it.
func addressOf(a [4]byte) uint32 { return binary.BigEndian.Uint32(a[:]) }

// switchAddress is how switch s is known on the network.
func (l *loop) switchAddress(s int) Address {
	a := l.cfg.Switches[s]
	return Address{IP: a, MAC: MAC{2, 0, a[0], a[1], a[2], a[3]}}
}

func (l *loop) sendSteps() error {
	if len(l.steps) == 0 {
		return nil
	}
	err := l.conn.SendValue(KindSteps, l.steps)
	l.steps = l.steps[:0]
	return err
}

// readTag gives the network the tag of the data packet in p.
func readTag(p *fabric.Packet, c contents, d *datagram) {
	t := c.shape.Tag(c.message(p.Header))
	p.Tag, p.SrcPort = fabric.Tag{On: t.On, CC: t.CC, AR: t.AR}, d.sport
}

// writeTag puts the tag, as switches have left it, into the data packet in frame.
func (c contents) writeTag(frame []byte, t fabric.Tag) {
	rewrite(c.datagram(frame), func(packet []byte) {
		c.shape.SetTag(packet, wire.Coordination{On: true, CC: t.CC, AR: t.AR})
	})
}

// frameOf is the frame of a packet on its way as it looks at present. It is good until the next.
func (l *loop) frameOf(p *fabric.Packet) []byte {
	if n, ok := l.net.NoteOf(p); ok {
		l.seen = l.notification(l.seen, p.Dst, &n)
		return l.seen
	}
	t := l.net.TagOf(p)
	if !t.On {
		return p.Header
	}
	l.seen = append(l.seen[:0], p.Header...)
	contentsOf(p).writeTag(l.seen, t)
	return l.seen
}

// notification writes the frame of a notification for a host or a switch over b.
func (l *loop) notification(b []byte, dst fabric.HostID, n *fabric.Note) []byte {
	w := wire.Notice{
		Kind: wire.NoticeKind(n.Type), Last: n.Last, SrcPort: n.SrcPort,
		Src: uint32(n.Src), Dst: uint32(n.Dst), Switch: uint32(n.Switch), At: max(n.At, 0),
	}
	var message [wire.NoticeSize]byte
	w.Encode(message[:])
	from := l.cfg.Switches[int(n.Switch)-len(l.cfg.Hosts)]
	if s := int(dst) - len(l.cfg.Hosts); s >= 0 {
		to := l.switchAddress(s)
		return appendDatagram(b[:0], from, &to, wire.Port, tosControl, message[:])
	}
	return appendDatagram(b[:0], from, &l.cfg.Hosts[dst], wire.Port, tosControl, message[:])
}
