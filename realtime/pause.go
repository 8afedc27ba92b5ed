package realtime

import (
	"encoding/binary"

	"weft/fabric"
	"weft/transport/wire"
	"weft/units"
)

// A host whose NIC is paused learns it at once, by a datagram from an address that belongs to no
// host and is accepted from no host. It then holds its data. What it sent before it learns of the
// pause waits in its modelled NIC: at most what it may send ahead and what it sends while the
// datagram is on its way. The datagram is repeated while the pause lasts, and once after its end,
// because a kernel may drop one. Hosts let a pause expire if they stop hearing of it.

// dataClass is the class that PFC pauses.
const dataClass = 1

// pauses handles the start of a pause at the NIC of h, or its end. The network calls it.
func (l *loop) pauses(now units.Time, h fabric.HostID, class uint8, paused bool) {
	if class != dataClass {
		return
	}
	port := &l.ports[h]
	port.heldBack = port.heldBack || paused
	clears := l.net.NICs.Clears(now, h)
	if !paused {
		port.heldUntil = max(port.heldUntil, clears)
	}
	port.notice = wire.Pause{Host: uint32(h), Class: class, Held: paused, At: max(now, 0), Clears: max(clears, 0)}
	port.repeat = true
	l.notify(h)
}

// notify sends the current notice to host h.
func (l *loop) notify(h fabric.HostID) {
	port := &l.ports[h]
	port.told++
	port.notice.Seq = port.told
	l.hand(h, l.noticeFrame(h), max(0, l.labNow()))
	l.rest.frames++
}

// repeatNotices repeats the last notices.
func (l *loop) repeatNotices() {
	for h := range l.ports {
		if port := &l.ports[h]; port.repeat {
			port.repeat = port.notice.Held
			l.notify(fabric.HostID(h))
		}
	}
}

// noticeFrame returns the frame of the notice to host h. It is valid until the next call.
func (l *loop) noticeFrame(h fabric.HostID) []byte {
	var message [wire.PauseSize]byte
	l.ports[h].notice.Encode(message[:])
	return appendDatagram(l.notice[:0], l.cfg.Switch, &l.cfg.Hosts[h], wire.Port, wire.TOSControl, message[:])
}

// appendDatagram appends the frame of a UDP datagram from an address of the network. Source and
// destination port are the same.
func appendDatagram(b []byte, from [4]byte, to *Address, port uint16, tos byte, message []byte) []byte {
	const ttl = 1 // for the next machine only
	total := ipMin + udpLen + len(message)
	b = append(b, to.MAC[:]...)
	b = append(b, 2, 0, from[0], from[1], from[2], from[3]) // locally administered, then the IP address, as hosts' are
	b = binary.BigEndian.AppendUint16(b, typeIPv4)
	at := len(b)
	b = append(b, 0x45, tos, byte(total>>8), byte(total), 0, 0, 0, 0, ttl, protoUDP, 0, 0)
	b = append(b, from[:]...)
	b = append(b, to.IP[:]...)
	var sum uint16 = 0xffff // the checksum of zeros
	for i := at; i < at+ipMin; i += 2 {
		sum = updateChecksum(sum, 0, binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[at+10:], sum)
	b = binary.BigEndian.AppendUint16(b, port) // without a checksum, as hosts send
	b = binary.BigEndian.AppendUint16(b, port)
	b = append(b, byte((udpLen+len(message))>>8), byte(udpLen+len(message)), 0, 0)
	return append(b, message...)
}
