package fabric

import "weft/units"

// Trace has f told of every packet that a port begins to send, with the instant and the mark it then has. Instants
// are exact, but f may be told of them later, when the port is looked at; of one port they come in order. f must
// not keep the packet. nil ends it.
func (n *Network) Trace(f func(at units.Time, port int, p *Packet, ecn ECN)) { n.trace = f }
