package fabric

import "weft/units"

// In-band telemetry (HPCC, SIGCOMM 2019, section 3.1): every port of a switch that begins to send a packet which
// asks for it notes what it has sent and holds. NICs note nothing.

// MaxHops is how many ports a packet carries notes of; those beyond are left out.
const MaxHops = 8

// Hop is what a port says of itself at the instant it begins to send a packet.
type Hop struct {
	At     units.Time      // that instant
	Sent   units.Bytes     // all that the port had begun to send before
	Queued units.Bytes     // what waits in the port behind the packet, all classes
	Rate   units.Bandwidth // of its line
}

// records are the notes of one packet.
type records struct {
	n    int
	hops [MaxHops]Hop
}

// Telemetry returns what the ports on its way noted of p, which asked for it (Packet.INT), in order. It is nil when
// p did not ask. It is good until Put.
func (n *Network) Telemetry(p *Packet) []Hop {
	if !p.INT {
		return nil
	}
	r := n.pool.record(p.number)
	return r.hops[:r.n]
}

// stamp notes for e, whose transmission starts.
func (o *port) stamp(n *Network, start units.Time, e *Packet) {
	r := n.pool.record(e.number)
	if r.n == MaxHops {
		return
	}
	r.hops[r.n] = Hop{At: start, Sent: o.bytes, Queued: o.queued(), Rate: o.line.Rate()}
	r.n++
}
