package realtime

import (
	"encoding/binary"

	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// A host whose NIC is paused is told at once, in a datagram from an address that no host has and that is taken from no
// host. It then keeps its data; what it has sent by then waits in its modelled NIC, as little as it may send ahead and
// as the datagram takes to be heard. Each datagram is repeated while the pause lasts, and its end once, since a kernel
// may refuse one; hosts do not believe in a pause of which they hear nothing any more.

// dataClass is the class that PFC pauses.
const dataClass = 1

// pauses is told by the network that the NIC of h heeds a pause or its end.
func (l *loop) pauses(now units.Time, h fabric.HostID, class uint8, paused bool) {
	if class != dataClass {
		return
	}
	port := &l.ports[h]
	port.heldBack = port.heldBack || paused
	clears := l.net.NICClears(now, h)
	if !paused {
		port.heldUntil = max(port.heldUntil, clears)
	}
	port.notice = wire.Pause{Host: uint32(h), Class: class, Held: paused, At: max(now, 0), Clears: max(clears, 0)}
	port.repeat = true
	l.notify(h)
}

// notify tells host h what there is to know.
func (l *loop) notify(h fabric.HostID) {
	port := &l.ports[h]
	port.told++
	port.notice.Seq = port.told
	l.write(h, l.noticeFrame(h))
	l.rest.frames++
}

// remind repeats what hosts were told last.
func (l *loop) remind() {
	for h := range l.ports {
		if port := &l.ports[h]; port.repeat {
			port.repeat = port.notice.Held
			l.notify(fabric.HostID(h))
		}
	}
}

// noticeFrame returns the frame that tells host h what is in its port's notice. It is good until the next.
func (l *loop) noticeFrame(h fabric.HostID) []byte {
	const (
		total = ipMin + udpLen + int(wire.PauseSize)
		ttl   = 1 // it is for the next machine only
	)
	clear(l.notice[:])
	f := l.notice[:ethLen+total]
	a := &l.cfg.Hosts[h]
	copy(f, a.MAC[:])
	copy(f[macLen:], []byte{2, 0}) // locally administered, and the address, as hosts' are
	copy(f[macLen+2:], l.cfg.Switch[:])
	binary.BigEndian.PutUint16(f[ethTypeAt:], typeIPv4)
	ip := f[ethLen:]
	ip[0], ip[1], ip[8], ip[9] = 0x45, 0xc0, ttl, protoUDP
	binary.BigEndian.PutUint16(ip[2:], uint16(total))
	copy(ip[12:], l.cfg.Switch[:])
	copy(ip[16:], a.IP[:])
	var sum uint16 = 0xffff // of zeros
	for i := 0; i < ipMin; i += 2 {
		sum = updateChecksum(sum, 0, binary.BigEndian.Uint16(ip[i:]))
	}
	binary.BigEndian.PutUint16(f[ipSumAt:], sum)
	udp := ip[ipMin:] // without a checksum, as hosts send
	binary.BigEndian.PutUint16(udp, wire.Port)
	binary.BigEndian.PutUint16(udp[2:], wire.Port)
	binary.BigEndian.PutUint16(udp[udpLengthAt:], uint16(len(udp)))
	l.ports[h].notice.Encode(udp[udpLen:])
	return f
}
