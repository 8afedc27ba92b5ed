package fabric

import (
	"weft/internal/splitmix"
	"weft/units"
)

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
const HeaderRoom = 65

// Packet is one packet on its way through the network. It comes from Network.Get and goes back with
// Network.Put. Between Inject and the sink's Deliver the network owns it.
//
// What a hop reads and writes comes first and is one line of the cache; the rest is for where packets enter and leave.
type Packet struct {
	at     units.Time  // when it joined the queue, or when its last bit reaches the far end of the line
	behind *Packet     // the next in the queue or on the line
	then   units.Time  // its at: to arm a port for the next packet that one is not fetched
	Size   units.Bytes // bytes on the wire, every header and the frame check sequence included; at least 1
	Queued units.Time  // time spent waiting behind other packets in switches so far

	Dst     HostID // Src: it is for the station of the switch that this host is attached to, see Stations
	flow    uint32 // the part of FlowHash that ECMP hashes
	next    step   // on a link: what happens at its far end
	ingress int32  // in a queue of a switch that accounts for its memory: the port it came by
	number  uint32 // in the pool
	ECN     ECN
	Class   uint8 // priority: 0 is served before 1
	Hops    uint8 // switches passed so far
	flags   uint8

	FlowHash uint64     // hash of the 5-tuple (FlowHash); ECMP choices are a function of it and each switch's seed
	SentAt   units.Time // when its first bit left the sending NIC

	// Context is what the driver knows of the packet, and Header the transport's header as it is on the wire; in
	// emulation it is the whole frame. The network reads neither; copies of a packet have both.
	Context int64
	Header  []byte

	Src     HostID
	Tag     Tag              // coordination tag: see CCM
	SrcPort uint16           // UDP source port, which notifications name the flow by; without CCM nobody reads it
	Port    uint16           // UDP destination port where it is not the transport's: see Config.Stations
	INT     bool             // ports of switches write a Hop when they begin to send it: see Network.Telemetry
	room    [HeaderRoom]byte // what Header starts on
}

// Flags of a packet.
const (
	asksINT uint8 = 1 << iota // ports write in-band telemetry
	passed                    // stations of switches look at it: see Stations
	local                     // it is for the station at the end of the line
)

// enter derives what hops read of a packet that is injected.
func (n *Network) enter(p *Packet) {
	p.flow, p.flags = uint32(splitmix.Mix(p.FlowHash)), 0
	if p.INT {
		p.flags = asksINT
	}
	if w := n.stations; w != nil {
		if p.Port == w.port {
			p.flags |= passed
		}
		if p.Src == p.Dst {
			p.flags |= local
		}
	}
}

// Get returns a packet to fill in and inject: every field zero, Header empty with room for at least
// HeaderRoom bytes. It comes from a pool; in steady state nothing is allocated.
func (n *Network) Get() *Packet {
	l := &n.pool
	if len(l.free) == 0 {
		l.fill()
	}
	last := len(l.free) - 1
	p := l.free[last]
	l.free = l.free[:last]
	return p
}

// Put takes back a packet that Get returned or Deliver handed over. The caller must not use it any more.
func (l *ledger) Put(p *Packet) {
	p.Size, p.Queued, p.SentAt, p.Src, p.Dst = 0, 0, 0, 0, 0
	p.ECN, p.Class, p.Hops, p.FlowHash, p.Context = 0, 0, 0, 0, 0
	p.Header, p.Tag, p.SrcPort, p.Port, p.INT = p.Header[:0], Tag{}, 0, 0, false
	l.pool.put(p)
}
