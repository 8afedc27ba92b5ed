package emulate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"weft/transport/wire"
	"weft/units"
)

// target lists the attacked hosts of the lab by their IPv4 addresses. network is an address that
// only the network may use.
type target struct {
	victims [][4]byte
	network [4]byte
	conns   []uint32 // connections of other hosts, which it imitates
}

// attackFrom plays a malicious host. From the network namespace of a process, bypassing the
// kernel's sockets, it sends every kind of frame that a program with raw sockets could send, until
// ctx ends, one per interval every; 0: as fast as possible. It returns the number of frames that
// the kernel accepted. Runs with the same seed send the same frames.
func attackFrom(ctx context.Context, pid int, on target, every time.Duration, seed uint64) (sent int64, err error) {
	err = ns.WithNetNSPath(fmt.Sprintf("/proc/%d/ns/net", pid), func(ns.NetNS) (err error) {
		sent, err = attack(ctx, on, every, seed)
		return err
	})
	return sent, err
}

func attack(ctx context.Context, on target, every time.Duration, seed uint64) (sent int64, err error) {
	f := &forger{on: on, rand: rand.New(rand.NewPCG(seed, 0))}
	index, err := f.findInterface()
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: index}); err != nil {
		return 0, err
	}
	for n := 0; ctx.Err() == nil; n++ {
		switch _, err := unix.Write(fd, f.frame(n)); {
		case err == nil:
			sent++
		case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EMSGSIZE), errors.Is(err, unix.EINVAL),
			errors.Is(err, unix.EAGAIN):
		default:
			return sent, err
		}
		if every > 0 {
			time.Sleep(every) // the rate of the attack
		}
	}
	return sent, nil
}

// forger makes frames.
type forger struct {
	on   target
	ip   [4]byte
	mac  [6]byte
	rand *rand.Rand
}

// findInterface looks up the node's interface and its addresses.
func (f *forger) findInterface() (index int, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return 0, err
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagLoopback != 0 || len(i.HardwareAddr) != 6 {
			continue
		}
		for _, a := range addrs {
			if p, ok := a.(*net.IPNet); ok && p.IP.To4() != nil {
				f.ip, f.mac = [4]byte(p.IP.To4()), [6]byte(i.HardwareAddr)
				return i.Index, nil
			}
		}
	}
	return 0, errors.New("the node has no interface with an IPv4 address")
}

// frame returns the n-th frame; the kinds take turns.
func (f *forger) frame(n int) []byte {
	victim := f.on.victims[f.rand.IntN(len(f.on.victims))]
	other := f.on.victims[f.rand.IntN(len(f.on.victims))]
	mine := from{f.ip, f.mac}
	switch n % 12 {
	case 0: // random bytes
		return f.noise(1 + f.rand.IntN(1500))
	case 1: // another host's IP or MAC address
		return datagram(from{other, f.mac}, victim, wire.Port, 0, f.header())
	case 2:
		return datagram(from{f.ip, [6]byte{2, 0, 1, 2, 3, 4}}, victim, wire.Port, 0, f.header())
	case 3: // the network's address
		var b [wire.PauseSize]byte
		(&wire.Pause{Class: 1, Held: true, Seq: f.rand.Uint32()}).Encode(b[:])
		return datagram(from{f.on.network, f.mac}, victim, wire.Port, 0xc0, b[:])
	case 4: // a valid header of somebody else's connection
		return datagram(mine, victim, wire.Port, 0xc0, f.header())
	case 5: // both kinds of tables behind a header that has neither
		b := make([]byte, 160)
		b[0], b[1], b[2], b[3], b[56], b[57] = 'W', wire.Version, byte(wire.TypeData),
			byte(wire.Coordinated|wire.Telemetry), 255, byte(f.rand.Uint32())
		return datagram(mine, victim, wire.Port, 2, b)
	case 6: // not a header
		return datagram(mine, victim, wire.Port, byte(f.rand.Uint32()), f.noise(f.rand.IntN(1000)))
	case 7: // a broken IPv4 header
		b := datagram(mine, victim, wire.Port, 0, f.header())
		b[14+f.rand.IntN(4)] ^= byte(1 + f.rand.IntN(255))
		return b[:14+f.rand.IntN(len(b)-14)]
	case 8: // unroutable and broadcast addresses
		return datagram(mine, [4]byte{byte(224 + f.rand.IntN(32)), 9, 9, 9}, wire.Port, 0, f.header())
	case 9: // a fragment of somebody else's packet
		b := datagram(from{other, f.mac}, victim, wire.Port, 0, f.header())
		b[20] = 0x20
		return b
	case 10: // ICMP: other hosts' packets were too big or unreachable
		return f.unreachable(victim, other)
	}
	return datagram(mine, victim, uint16(1024+f.rand.IntN(60000)), byte(f.rand.Uint32())&3, f.noise(f.rand.IntN(1400)))
}

func (f *forger) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(f.rand.Uint32())
	}
	return b
}

// header returns a valid header of a random type, with payload.
func (f *forger) header() []byte {
	conn, psn, b := 1<<20+f.rand.Uint32N(64), f.rand.Uint32N(4096), make([]byte, 1200)
	if n := len(f.on.conns); n > 0 && psn%4 != 0 {
		conn = f.on.conns[f.rand.IntN(n)]
	}
	switch f.rand.IntN(9) {
	case 0:
		d := wire.Data{
			Flags: wire.Announce, Conn: conn, PSN: psn, Payload: 1000, Size: 1000, SentAt: units.Time(f.rand.Int64()),
			Room:    uint8(f.rand.IntN(9)),
			Message: f.rand.Uint32N(8), Path: uint16(psn),
		}
		d.Encode(b)
		return b[:d.Len()+1000]
	case 1:
		a := wire.Ack{Conn: conn, Expected: psn, PSN: psn, Count: 1, SentAt: units.Time(f.rand.Int64()),
			Nak: psn%2 == 0}
		a.Encode(b)
		return b[:a.Len()]
	case 2:
		(&wire.Sack{Conn: conn, Expected: psn, Base: psn, Bitmap: f.rand.Uint64(), PSN: psn}).Encode(b)
		return b[:wire.SackSize]
	case 3:
		(&wire.CNP{Conn: conn, PSN: psn}).Encode(b)
	case 4:
		(&wire.Probe{Conn: conn, PSN: psn}).Encode(b)
	case 5:
		(&wire.Credit{Conn: conn, Granted: f.rand.Uint32()}).Encode(b)
	case 6:
		(&wire.Reject{Conn: conn, PSN: psn, LastHop: psn%2 == 0}).Encode(b)
	case 7:
		d := wire.Data{Conn: conn, PSN: psn, Payload: 1000, Size: 1000, Trimmed: psn%2 == 0,
			Request: wire.Request{On: true, Target: f.rand.Uint32()}}
		d.Encode(b)
		return b[:d.Len()]
	default:
		(&wire.Notice{Kind: wire.NeedsCC, Src: conn, Dst: psn, SrcPort: uint16(psn), Switch: 4,
			At: units.Time(psn)}).Encode(b)
		return b[:wire.NoticeSize]
	}
	return b[:wire.CNPSize]
}

// unreachable returns an ICMP message to one host about its packet to another.
func (f *forger) unreachable(to, about [4]byte) []byte {
	about2 := datagram(from{to, f.mac}, about, wire.Port, 0, make([]byte, 8))[14:]
	binary.BigEndian.PutUint16(about2[20:], uint16(49152+f.rand.IntN(16384)))
	icmp := append([]byte{3, []byte{1, 2, 3, 4}[f.rand.IntN(4)], 0, 0, 0, 0, 2, 40}, about2...)
	binary.BigEndian.PutUint16(icmp[2:], ^sum(icmp))
	return packet(from{f.ip, f.mac}, to, 1, 0, icmp)
}

// from is the claimed sender of a frame.
type from struct {
	ip  [4]byte
	mac [6]byte
}

// datagram returns a frame with a UDP datagram.
func datagram(src from, dst [4]byte, port uint16, tos byte, message []byte) []byte {
	udp := binary.BigEndian.AppendUint16(nil, 50000)
	udp = binary.BigEndian.AppendUint16(udp, port)
	udp = binary.BigEndian.AppendUint16(udp, uint16(8+len(message)))
	return packet(src, dst, 17, tos, append(append(udp, 0, 0), message...))
}

// packet returns a frame with an IPv4 packet.
func packet(src from, dst [4]byte, proto, tos byte, body []byte) []byte {
	b := append([]byte{2, 0, dst[0], dst[1], dst[2], dst[3]}, src.mac[:]...)
	b = append(b, 8, 0, 0x45, tos)
	b = binary.BigEndian.AppendUint16(b, uint16(20+len(body)))
	b = append(b, 0, 0, 0, 0, 64, proto, 0, 0)
	b = append(append(b, src.ip[:]...), dst[:]...)
	binary.BigEndian.PutUint16(b[24:], ^sum(b[14:34]))
	return append(b, body...)
}

// sum returns the one's complement sum of RFC 1071.
func sum(b []byte) uint16 {
	s := uint32(0)
	for i, x := range b {
		s += uint32(x) << (8 * (1 - i%2))
	}
	for s > 0xffff {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}
