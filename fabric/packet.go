package fabric

import "weft/units"

// HostID numbers the hosts of a network from 0.
type HostID int32

// ECN is the two-bit codepoint of the IP header (RFC 3168, section 5).
type ECN uint8

// Codepoints.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// Classes is the number of priorities.
const Classes = 2

// HeaderRoom is the number of header bytes a packet holds without storage of its own. It makes a Packet three
// cache lines.
const HeaderRoom = 102

// Packet is one packet on its way through the network. It comes from Network.Get and goes back with
// Network.Put. Between Inject and the sink's Deliver the network owns it.
type Packet struct {
	FlowHash uint64      // hash of the 5-tuple (FlowHash); ECMP choices are a function of it and each switch's seed
	Size     units.Bytes // bytes on the wire, every header and the frame check sequence included; at least 1
	Src, Dst HostID      // where they are one, it is for the station of the switch that the host is attached to: see Stations
	ECN      ECN
	Class    uint8      // priority: 0 is served before 1
	Hops     uint8      // switches passed so far
	INT      bool       // ports of switches write a Hop when they begin to send it: see Network.Telemetry
	number   uint32     // in the pool
	Queued   units.Time // time spent waiting behind other packets in switches so far
	SentAt   units.Time // when its first bit left the sending NIC

	// Payload is the number of bytes of the transport's payload, and Header the transport's header as it is
	// on the wire. The network reads neither. In emulation Header is the whole frame.
	Payload units.Bytes
	Header  []byte

	room    [HeaderRoom]byte // what Header starts on
	Tag     Tag              // coordination tag: see CCM
	SrcPort uint16           // UDP source port, which notifications name the flow by; without CCM nobody reads it
	Port    uint16           // UDP destination port where it is not the transport's: see Config.Stations
}

// Get returns a packet to fill in and inject: every field zero, Header empty with room for at least
// HeaderRoom bytes. It comes from a pool; in steady state nothing is allocated.
func (n *Network) Get() *Packet {
	l := &n.pool
	if len(l.free) == 0 {
		l.fill()
	}
	last := len(l.free) - 1
	p := l.packet(l.free[last])
	l.free = l.free[:last]
	return p
}

// Put takes back a packet that Get returned or Deliver handed over. The caller must not use it any more.
func (n *Network) Put(p *Packet) {
	p.FlowHash, p.Size, p.Src, p.Dst = 0, 0, 0, 0
	p.ECN, p.Class, p.Hops, p.Port, p.INT, p.Queued, p.SentAt = 0, 0, 0, 0, false, 0, 0
	p.Payload, p.Header = 0, p.Header[:0]
	p.Tag, p.SrcPort = Tag{}, 0
	n.pool.put(p.number)
}
