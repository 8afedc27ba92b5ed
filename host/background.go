package host

import (
	"fmt"
	"math/rand/v2"

	"weft/internal/splitmix"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Background is traffic besides the items that nothing waits for: bursts of packets to random
// hosts, at random instants, as fast as the NIC sends them. It has no congestion control and no
// retransmission: it loads queues with a known share of the line rate, which congestion control
// would not.
type Background struct {
	Load   float64     // share of the NIC's line rate, in (0, 1)
	Burst  int         // packets in a burst
	Packet units.Bytes // size of each on the wire
	Hosts  int         // number of hosts of the lab, which are equally likely destinations
}

// DiscardPort is the UDP port to which background traffic is sent (RFC 863).
const DiscardPort = 9

// background generates the traffic.
type background struct {
	is    Background
	self  transport.HostID
	rand  *rand.Rand
	mean  float64    // mean time between the starts of bursts, in ps
	next  units.Time // start of the next burst
	queue []burst
	turn  bool // the transport sent the last packet
}

// burst is the rest of a burst.
type burst struct {
	dst  transport.HostID
	port uint16
	left int
}

// maxBursts is the largest number of bursts that wait in a host, for instance in one with a paused
// NIC. Further bursts are dropped. Our own choice.
const maxBursts = 1 << 12

func newBackground(p *Plan) (*background, error) {
	b := p.Background
	switch {
	case b == nil:
		return nil, nil
	case !(b.Load > 0 && b.Load < 1) || b.Burst < 1 || b.Packet < wire.Overhead+8 || b.Hosts < 2:
		return nil, fmt.Errorf("background traffic of load %g in bursts of %d packets of %d bytes to %d hosts",
			b.Load, b.Burst, b.Packet, b.Hosts)
	}
	t := p.Endpoint.LineRate.TransmitTime(units.Bytes(b.Burst) * b.Packet)
	g := &background{
		is: *b, self: p.Host, mean: float64(t) / b.Load,
		rand: rand.New(rand.NewPCG(p.Seed, splitmix.Mix(0xbac6_0000_0000_0000+uint64(p.Host)))),
	}
	g.next = g.wait()
	return g, nil
}

// wait draws the time to the next burst.
func (g *background) wait() units.Time { return units.Time(g.rand.ExpFloat64() * g.mean) }

// advance begins the bursts that are due at now.
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

// transmit writes the next packet of the first burst into out. It returns false if there is none.
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
