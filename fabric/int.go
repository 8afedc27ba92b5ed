package fabric

import "weft/units"

// In-band telemetry (HPCC, SIGCOMM 2019, section 3.1): every switch port that starts to send a
// packet with INT enabled appends a Hop to it. NICs append nothing.

// MaxHops is the largest number of hops that a packet records; later ones are left out.
const MaxHops = 8

// Hop is the state of a port at the instant it starts to send a packet.
type Hop struct {
	At     units.Time      // instant at which the transmission starts
	Sent   units.Bytes     // bytes whose transmission the port had started before
	Queued units.Bytes     // bytes that wait in the port behind the packet, all classes
	Rate   units.Bandwidth // rate of its link
}

// records is the telemetry of one packet.
type records struct {
	n    int
	hops [MaxHops]Hop
}

// Telemetry returns what the ports on its path have recorded on p, in order. It is nil if p.INT is
// not set. It is valid until Put.
func (n *Network) Telemetry(p *Packet) []Hop {
	if !p.INT {
		return nil
	}
	r := n.pool.record(p.number)
	return r.hops[:r.n]
}

// stamp appends the state of o to e, whose transmission starts.
func (o *port) stamp(n *Network, start units.Time, e *Packet) {
	r := n.pool.record(e.number)
	if r.n == MaxHops {
		return
	}
	r.hops[r.n] = Hop{At: start, Sent: o.bytes, Queued: o.queued(), Rate: o.line.Rate()}
	r.n++
}
