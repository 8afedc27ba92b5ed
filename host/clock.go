package host

import (
	"fmt"

	"weft/clocksync"
	"weft/clocksync/node"
	"weft/internal/splitmix"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// clock is the host's clock and what keeps it, beside the transport: the two share the NIC, and the clock stamps what
// the transport sends and receives.
type clock struct {
	node *node.Node
	seed uint64
	out  clocksync.Outgoing
}

// newClock returns the clock of a plan; nil where it shows lab time.
func newClock(p *Plan) (*clock, error) {
	if p.Clock == nil {
		return nil, nil
	}
	if p.Clock.Setup.Self != clocksync.Node(p.Host) {
		return nil, fmt.Errorf("its clock is of node %d", p.Clock.Setup.Self)
	}
	n, err := node.New(*p.Clock)
	if err != nil {
		return nil, err
	}
	return &clock{node: n, seed: p.Seed}, nil
}

// stamp is what the host's clock adds to the instant at which a packet of the transport arrived. What carries a stamp of
// another host has its one-way delay measured by it.
func (c *clock) stamp(in *transport.Incoming) units.Time {
	switch t, _ := wire.Peek(in.Header); t {
	case wire.TypeData, wire.TypeProbe:
		return c.node.Measured(in.At)
	}
	return c.node.Received(in.At)
}

// transmit writes the synchronization message that leaves now into out.
func (c *clock) transmit(now units.Time, out *transport.Outgoing) bool {
	if !c.node.Transmit(now, &c.out) {
		return false
	}
	m := &c.out
	out.Dst, out.SrcPort, out.DstPort = transport.HostID(m.To), c.port(m), m.Port
	out.ECT, out.Class = false, 1
	if c.node.Control() {
		out.Class = 0
	}
	out.Conn, out.Message, out.Offset, out.Payload = 0, 0, 0, 0
	out.Size, out.N = node.Size(m), copy(out.Header[:], m.Data[:m.N])
	return true
}

// port is the source port of a message, from the dynamic range (RFC 6335, section 6): switches hash it, so that messages
// of one flow to one node take one way.
func (c *clock) port(m *clocksync.Outgoing) uint16 {
	return 49152 + uint16(splitmix.Mix(splitmix.Mix(c.seed+uint64(m.Flow))+uint64(uint32(m.To)))>>50)
}

// receiveSync takes a synchronization message. One that is refused is the business of the protocol, which counts it; here
// only one that no plan foresees is an error.
func (h *Host) receiveSync(now units.Time, in *transport.Incoming) error {
	if h.clock == nil {
		return fmt.Errorf("host %s: a message on port %d, where nothing listens", h.plan.Name, in.Port)
	}
	_ = h.clock.node.Receive(now, in.At, clocksync.Node(in.Src), in.Port, in.Header)
	return nil
}

// Clock returns the truth about the host's clock up to the instant now, the end; false where it shows lab time.
func (h *Host) Clock(now units.Time) (node.Report, bool) {
	if h.clock == nil {
		return node.Report{}, false
	}
	return h.clock.node.Report(now), true
}

// Resting says whether nothing of the host's own work has an instant at which it goes on: neither its transport nor its
// items. What keeps its clock goes on for ever.
func (h *Host) Resting() bool {
	_, ok := h.work()
	return (!ok || h.halts.forGood()) && (h.passed || h.halts.forGood()) && (len(h.halts.left) == 0 || h.halts.forGood())
}
