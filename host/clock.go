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

// clock is the host's clock and the protocols that synchronize it. They share the NIC with the
// transport, and the clock stamps the packets that the transport sends and receives.
type clock struct {
	node *node.Node
	seed uint64             // of source ports
	out  clocksync.Outgoing // storage of the message that is sent
}

// newClock returns the clock of a plan, or nil if the host's clock shows lab time.
func newClock(p *Plan) (*clock, error) {
	if p.Clock == nil {
		return nil, nil
	}
	if p.Clock.Setup.Self != clocksync.Node(p.Host) {
		return nil, fmt.Errorf("its clock is of node %d; expected %d", p.Clock.Setup.Self, p.Host)
	}
	n, err := node.New(*p.Clock)
	if err != nil {
		return nil, err
	}
	return &clock{node: n, seed: p.Seed}, nil
}

// stamp returns the error of the host's clock at the arrival of a packet of the transport. A packet
// with a stamp of another host is also used to measure its one-way delay.
func (c *clock) stamp(in *transport.Incoming) units.Time {
	switch t, _ := wire.Peek(in.Header); t {
	case wire.TypeData, wire.TypeProbe:
		return c.node.Measured(in.At)
	}
	return c.node.Received(in.At)
}

// transmit writes the synchronization message that leaves now into out. It returns false if there
// is none.
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

// port returns the source port of a message, in the dynamic range (RFC 6335, section 6). Switches
// hash it, so that messages of one flow to one node take one path.
func (c *clock) port(m *clocksync.Outgoing) uint16 {
	return 49152 + uint16(splitmix.Mix(splitmix.Mix(c.seed+uint64(m.Flow))+uint64(uint32(m.To)))>>50)
}

// receiveSync handles a synchronization message. A message that the protocol rejects is counted by
// the protocol; here only a message to a host without a clock is an error.
func (h *Host) receiveSync(now units.Time, in *transport.Incoming) error {
	if h.clock == nil {
		return fmt.Errorf("host %s: a message on port %d, where nothing listens", h.plan.Name, in.Port)
	}
	_ = h.clock.node.Receive(now, in.At, clocksync.Node(in.Src), in.Port, in.Header)
	return nil
}

// Clock returns the truth about the host's clock up to now, the end of the run. ok is false if the
// clock shows lab time.
func (h *Host) Clock(now units.Time) (node.Report, bool) {
	if h.clock == nil {
		return node.Report{}, false
	}
	return h.clock.node.Report(now), true
}

// Correction returns the current correction of the host's clock, which adds nothing if the clock
// shows lab time.
func (h *Host) Correction() (c clocksync.Correction) {
	if h.clock != nil {
		c = h.clock.node.Correction()
	}
	return c
}

// Resting reports whether nothing of the host's own work is scheduled: neither of its transport nor
// of its items. Clock synchronization never ends and does not count.
func (h *Host) Resting() bool {
	_, ok := h.work()
	return h.halts.forGood() || !ok && h.passed && len(h.halts.left) == 0
}
