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

// Classes is the number of priority classes. Class 0 is served before class 1.
const Classes = 2

// dataClass is the class of data, which switches with CCM choose paths for.
const dataClass = 1

// HeaderRoom is the number of header bytes that a Packet holds without storage of its own. With it
// a Packet takes three cache lines.
const HeaderRoom = 64

// Packet is one packet in the network. It comes from Network.Get and returns with Network.Put.
// Between Inject and Sink.Deliver the network owns it.
//
// The fields that a hop reads and writes come first and fill one cache line. The others are used
// where packets enter and leave.
type Packet struct {
	at       units.Time  // in a queue: when it joined; on a link: when its last bit reaches the far end
	behind   *Packet     // next packet in the queue or on the link
	behindAt units.Time  // cached behind.at, so that arming a port does not load the next packet
	Size     units.Bytes // bytes on the wire, with all headers and the frame check sequence; at least 1
	Queued   units.Time  // total time spent waiting in the queues of switches

	Dst     HostID // where it goes; if it is Src, to the station of the switch that Src is attached to (Stations)
	flow    uint32 // the part of FlowHash that ECMP hashes
	next    step   // on a link: what happens at its far end
	ingress int32  // in a queue of a switch that accounts for its memory: the port it arrived by
	number  uint32 // index in the pool
	ECN     ECN
	Class   uint8 // priority: 0 is served before 1
	Hops    uint8 // number of switches passed
	flags   uint8

	FlowHash uint64     // hash of the 5-tuple (FlowHash); ECMP choices are a function of it and each switch's seed
	SentAt   units.Time // when the sending NIC started to send it

	// Context is for the driver. Header is the transport's header as it is on the wire; in
	// emulation it is the whole frame. The network reads neither, and copies both with a packet.
	Context int64
	Header  []byte

	Src     HostID
	Tag     Tag              // coordination tag, see CCM
	SrcPort uint16           // UDP source port, by which notifications name the flow; read with CCM only
	Port    uint16           // UDP destination port, 0 for that of the transport; see Config.Stations
	INT     bool             // switch ports append a Hop when they start to send it; see Network.Telemetry
	Keep    uint8            // bytes on the wire that remain if a switch trims it; 0: it must not
	room    [HeaderRoom]byte // initial storage of Header
}

// Values of Packet.flags.
const (
	asksINT     uint8 = 1 << iota // switch ports append in-band telemetry
	passed                        // the stations of switches on the path see it: see Stations
	local                         // it is for the station at the end of its link
	trimmed                       // a switch has cut its payload off
	trimmedLast                   // that was the last switch on its path
)

// Trimmed reports whether a switch has cut the payload off, and whether that was the last switch on
// the path. It is valid until Put.
func (p *Packet) Trimmed() (cut, last bool) {
	return p.flags&trimmed != 0, p.flags&trimmedLast != 0
}

// enter derives the fields that hops read from those that the sender of p has set.
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

// Get returns a packet to fill in and inject. Every field is zero and Header is empty with room for
// at least HeaderRoom bytes. Packets come from a pool: in steady state nothing is allocated.
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

// Put returns a packet to the pool: one that came from Get or was handed over by Deliver. The
// caller must not use it afterwards.
func (l *ledger) Put(p *Packet) {
	p.Size, p.Queued, p.SentAt, p.Src, p.Dst = 0, 0, 0, 0, 0
	p.ECN, p.Class, p.Hops, p.FlowHash, p.Context = 0, 0, 0, 0, 0
	p.Header, p.Tag, p.SrcPort, p.Port, p.INT, p.Keep = p.Header[:0], Tag{}, 0, 0, false, 0
	l.pool.put(p)
}
