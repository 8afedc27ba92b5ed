package realtime

import (
	"encoding/binary"

	"weft/fabric"
	"weft/transport/wire"
)

// Coordinated congestion management (CCM) in frames. The tag behind a data packet's header is read
// when the packet arrives from its host and written when it leaves for the next; in between the
// network keeps it. Notifications for hosts become datagrams from the address of the switch that
// sends them. Those for switches stay in the network: nothing that a host sends reaches a switch,
// and no host may use a switch's address.

// MaxSteps is the largest number of steps that a run reports.
const MaxSteps = 100_000

// coordinate makes the loop report the steps of CCM, if the network has CCM.
func (l *loop) coordinate() {
	if l.cfg.Network.CCM == nil {
		return
	}
	l.net.Observers.Follow(func(s fabric.Step) {
		if l.followed++; l.followed <= MaxSteps {
			l.steps = append(l.steps, s)
		}
	})
}

// nameSwitches records the addresses of switches that send, for CCM or as transparent clocks.
func (l *loop) nameSwitches() {
	l.bySwitch = make(map[uint32]bool, len(l.cfg.Switches))
	for _, a := range l.cfg.Switches {
		l.bySwitch[addressOf(a)] = true
	}
}

// addressOf returns an IPv4 address as the key by which frames are looked up.
func addressOf(a [4]byte) uint32 { return binary.BigEndian.Uint32(a[:]) }

// switchAddress returns the addresses of switch s.
func (l *loop) switchAddress(s int) Address {
	a := l.cfg.Switches[s]
	return Address{IP: a, MAC: MAC{2, 0, a[0], a[1], a[2], a[3]}}
}

// sendSteps sends the steps that were not sent yet.
func (l *loop) sendSteps() error {
	if len(l.steps) == 0 {
		return nil
	}
	err := l.conn.SendValue(KindSteps, l.steps)
	l.steps = l.steps[:0]
	return err
}

// readTag reads the tag of the data packet in p for the network.
func readTag(p *fabric.Packet, c contents, d *datagram) {
	t := c.shape.Tag(c.message(p.Header))
	p.Tag, p.SrcPort = fabric.Tag{On: t.On, CC: t.CC, AR: t.AR}, d.sport
}

// writeTag writes the tag, as switches have left it, into the data packet in frame.
func (c contents) writeTag(frame []byte, t fabric.Tag) {
	rewrite(c.datagram(frame), func(packet []byte) {
		c.shape.SetTag(packet, wire.Coordination{On: true, CC: t.CC, AR: t.AR})
	})
}

// frameOf returns the frame of a packet in the network as it looks now. It is valid until the next
// call.
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

// EncodeNote returns a notification as it is on the wire, behind the UDP header.
func EncodeNote(n *fabric.Note) (message [wire.NoticeSize]byte) {
	w := wire.Notice{
		Kind: wire.NoticeKind(n.Type), Last: n.Last, SrcPort: n.SrcPort,
		Src: uint32(n.Src), Dst: uint32(n.Dst), Switch: uint32(n.Switch), At: max(n.At, 0),
	}
	w.Encode(message[:])
	return message
}

// notification encodes a notification for a host or a switch as a frame over b.
func (l *loop) notification(b []byte, dst fabric.HostID, n *fabric.Note) []byte {
	message := EncodeNote(n)
	from := l.cfg.Switches[int(n.Switch)-len(l.cfg.Hosts)]
	if s := int(dst) - len(l.cfg.Hosts); s >= 0 {
		to := l.switchAddress(s)
		return appendDatagram(b[:0], from, &to, wire.Port, wire.TOSControl, message[:])
	}
	return appendDatagram(b[:0], from, &l.cfg.Hosts[dst], wire.Port, wire.TOSControl, message[:])
}
