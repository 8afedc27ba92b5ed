package agent

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"weft/clocksync/labtime"
	"weft/internal/bypass"
	"weft/internal/rings"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// NIC says that the node has a bypass NIC: rings in memory that it shares with the fabric process
// (packages rings and bypass). Its agent sends and receives through them. The node's interface and
// sockets stay, for programs and for what programs send to the agent's ports in ways that only a
// kernel understands, such as fragments.
//
// Four descriptors come with the configuration, behind that of a module: the NIC's region, and the
// three of its bell.
type NIC struct {
	Frame int // size of the longest frame in bytes
	Bell  int // number of the bell: nodes of one process share one
}

// nicFDs is the number of descriptors of a bypass NIC.
const nicFDs = 4

// bypassNIC is the node's end of a bypass NIC. It is the node's inlet and outlet.
type bypassNIC struct {
	in     *rings.Consumer
	out    *rings.Producer
	slot   []byte // of out, for the packet that room was called for
	bell   *bypass.Bell
	region []byte
	scale  *labtime.Scale
	own    [4]byte
	peers  [][4]byte // by host, followed by switches
}

// bells are the bells of a process by their numbers.
type bells map[int]*bypass.Bell

// close closes all bells.
func (b bells) close() {
	for _, bell := range b {
		bell.Close()
	}
}

// open opens a node's bypass NIC. It takes ownership of the descriptors.
func (b bells) open(n *NIC, fds []int) (nic *bypassNIC, err error) {
	rest := fds
	defer func() {
		for _, fd := range rest {
			unix.Close(fd)
		}
	}()
	layout, err := rings.For(n.Frame)
	if err != nil {
		return nil, err
	}
	rest = fds[1:]
	nic = new(bypassNIC)
	if nic.region, err = bypass.Map(fds[0], layout.Bytes()); err != nil {
		return nil, err
	}
	if nic.out, err = rings.NewProducer(layout, nic.region, 0); err != nil {
		return nil, err
	}
	if nic.in, err = rings.NewConsumer(layout, nic.region, 1); err != nil {
		return nil, err
	}
	if nic.bell = b[n.Bell]; nic.bell == nil {
		rest = nil
		if nic.bell, err = bypass.OpenBell(fds[1:], bypass.Node); err != nil {
			return nil, err
		}
		b[n.Bell] = nic.bell
	}
	return nic, nil
}

// Layout of the headers before a datagram: Ethernet II, IPv4 without options, UDP (RFC 894, 791,
// 768).
const (
	ethLen    = 14
	ipLen     = 20
	udpLen    = 8
	envelope  = ethLen + ipLen + udpLen
	typeIPv4  = 0x0800
	protoUDP  = 17
	ttl       = 64
	dontSplit = 0x4000
)

// room implements outlet: payload is written where the fabric process reads it.
func (b *bypassNIC) room(out *transport.Outgoing) []byte {
	slot, err := b.out.Slot() // send finds the error again
	if from := envelope + out.N; err == nil && from+int(out.Payload) <= len(slot) {
		b.slot = slot
		return slot[from:][:out.Payload]
	}
	return nil
}

// send implements outlet. The fabric process is woken unless it looks at the ring before the packet
// departs.
func (b *bypassNIC) send(out *transport.Outgoing, payload, trailer []byte, at units.Time) (taken bool, err error) {
	slot := b.slot
	if b.slot = nil; slot == nil {
		if slot, err = b.out.Slot(); err != nil || slot == nil {
			return false, err
		}
	}
	n := envelope + out.N + len(payload) + len(trailer)
	if n > len(slot) {
		return false, fmt.Errorf("a packet of %d bytes with its headers; the NIC takes %d", n, len(slot))
	}
	k := keyOf(out)
	b.address(slot[:n], &k)
	body := slot[envelope:]
	body = body[copy(body, out.Header[:out.N]):]
	if len(payload) > 0 && &payload[0] != &body[0] {
		copy(body, payload)
	}
	copy(body[len(payload):], trailer)
	b.out.Push(n, int64(at), 0)
	b.bell.Ring(b.scale.Mono(at))
	return true, nil
}

// address writes the headers of a datagram into its frame, as the node's kernel would.
func (b *bypassNIC) address(frame []byte, k *socketKey) {
	to := &b.peers[k.dst]
	_ = frame[envelope-1]
	copy(frame, []byte{2, 0, to[0], to[1], to[2], to[3], 2, 0, b.own[0], b.own[1], b.own[2], b.own[3]}) // internal/mac
	binary.BigEndian.PutUint16(frame[12:], typeIPv4)
	ip := frame[ethLen:]
	size := uint16(len(frame) - ethLen)
	ip[0], ip[1] = 0x45, k.tos
	binary.BigEndian.PutUint16(ip[2:], size)
	binary.BigEndian.PutUint32(ip[4:], dontSplit)
	ip[8], ip[9] = ttl, protoUDP
	copy(ip[12:16], b.own[:])
	copy(ip[16:20], to[:])
	sum := uint32(0x4500) + uint32(k.tos) + uint32(size) + dontSplit + ttl<<8 + protoUDP +
		uint32(b.own[0])<<8 + uint32(b.own[1]) + uint32(b.own[2])<<8 + uint32(b.own[3]) +
		uint32(to[0])<<8 + uint32(to[1]) + uint32(to[2])<<8 + uint32(to[3])
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum&0xffff+sum>>16))
	udp := ip[ipLen:]
	port := k.to
	if port == 0 {
		port = wire.Port
	}
	binary.BigEndian.PutUint16(udp, k.port)
	binary.BigEndian.PutUint16(udp[2:], port)
	binary.BigEndian.PutUint16(udp[4:], size-ipLen)
	binary.BigEndian.PutUint16(udp[6:], 0) // without a checksum, as on sockets
}

// opened implements outlet: there are no sockets to open.
func (b *bypassNIC) opened() int64 { return 0 }

// close implements outlet.
func (b *bypassNIC) close() { bypass.Unmap(b.region) }

// receive implements inlet.
func (b *bypassNIC) receive(f func(datagram)) (n int, err error) {
	for n < batch {
		frame, ok, err := b.in.Next()
		if err != nil || !ok {
			return n, err
		}
		n++
		if d, ok := parseFrame(frame.Bytes, b.own); ok {
			d.lab, d.mono = units.Time(frame.At), frame.Written
			f(d)
		}
		b.in.Release()
	}
	return n, nil
}

// parseFrame returns the UDP datagram in a frame. ok is false for what a kernel would not give to a
// socket of the node: another protocol or address, fragments, wrong lengths.
func parseFrame(frame []byte, own [4]byte) (d datagram, ok bool) {
	if len(frame) < envelope || binary.BigEndian.Uint16(frame[12:]) != typeIPv4 {
		return d, false
	}
	ip := frame[ethLen:]
	header, total := int(ip[0]&0x0f)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if ip[0]>>4 != 4 || header < ipLen || total > len(ip) || total < header+udpLen || ip[9] != protoUDP ||
		binary.BigEndian.Uint16(ip[6:])&^dontSplit != 0 || [4]byte(ip[16:20]) != own {
		return d, false
	}
	udp := ip[header:total]
	size := int(binary.BigEndian.Uint16(udp[4:]))
	if size < udpLen || size > len(udp) {
		return d, false
	}
	d.data, d.from, d.tos = udp[udpLen:size:size], binary.BigEndian.Uint32(ip[12:]), ip[1]
	if port := binary.BigEndian.Uint16(udp[2:]); port != wire.Port {
		d.port = port
	}
	return d, true
}
