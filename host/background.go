package host

import (
	"fmt"
	"math/rand/v2"

	"weft/internal/splitmix"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Background is traffic that nobody waits for, beside the items: bursts of packets to random hosts, at random instants,
// as fast as the NIC sends them. Nothing holds it back, and what is lost is not sent again: it fills queues to a
// known share of the line rate, as congestion control would not.
type Background struct {
	Load   float64     // share of the NIC's line rate, in (0, 1)
	Burst  int         // packets of a burst
	Packet units.Bytes // of each on the wire
	Hosts  int         // of the lab: where it goes to, all alike
}

// DiscardPort is the UDP port that background traffic goes to (RFC 863).
const DiscardPort = 9

// background is it being made.
type background struct {
	is    Background
	self  transport.HostID
	rand  *rand.Rand
	mean  float64 // from one burst to the next, picoseconds
	next  units.Time
	queue []burst
	turn  bool // the transport had the last packet
}

// burst is what is left of one.
type burst struct {
	dst  transport.HostID
	port uint16
	left int
}

// maxBursts bounds the bursts that wait in a host: a NIC that is paused does not send them.
const maxBursts = 1 << 12

func newBackground(p *Plan) (*background, error) {
	b := p.Background
	switch {
	case b == nil:
		return nil, nil
	case !(b.Load > 0 && b.Load < 1) || b.Burst < 1 || b.Packet < wire.Overhead+8 || b.Hosts < 2:
		return nil, fmt.Errorf("background traffic of load %g in bursts of %d packets of %d bytes to %d hosts", b.Load, b.Burst, b.Packet, b.Hosts)
	}
	t := p.Endpoint.LineRate.TransmitTime(units.Bytes(b.Burst) * b.Packet)
	g := &background{
		is: *b, self: p.Host, mean: float64(t) / b.Load,
		rand: rand.New(rand.NewPCG(p.Seed, splitmix.Mix(0xbac6_0000_0000_0000+uint64(p.Host)))),
	}
	g.next = g.wait()
	return g, nil
}

func (g *background) wait() units.Time { return units.Time(g.rand.ExpFloat64() * g.mean) }

// advance lets the bursts begin that are due by now.
func (g *background) advance(now units.Time) {
	for ; g.next <= now; g.next += g.wait() {
		dst := transport.HostID(g.rand.IntN(g.is.Hosts - 1))
		if dst >= g.self {
			dst++
		}
		port := 49152 + uint16(g.rand.IntN(16384))
		if len(g.queue) < maxBursts {
			g.queue = append(g.queue, burst{dst, port, g.is.Burst})
		}
	}
}

// transmit writes the next packet of the first burst into out.
func (g *background) transmit(now units.Time, out *transport.Outgoing) bool {
	g.advance(now)
	if len(g.queue) == 0 {
		return false
	}
	b := &g.queue[0]
	out.Dst, out.SrcPort, out.DstPort, out.ECT, out.Class = b.dst, b.port, DiscardPort, false, 1
	out.Conn, out.Message, out.Offset, out.Payload = 0, 0, 0, 0
	out.Size, out.N = g.is.Packet, 8
	clear(out.Header[:out.N])
	if b.left--; b.left == 0 {
		g.queue = g.queue[:copy(g.queue, g.queue[1:])]
	}
	return true
}
