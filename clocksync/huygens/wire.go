package huygens

import (
	"encoding/binary"
	"errors"
	"math"

	"weft/clocksync"
	"weft/units"
)

// kind is the type of a message.
type kind uint8

// Kinds of message.
const (
	kindProbe    kind = 1 // one packet of a coded pair
	kindJoin     kind = 2 // asks a coordinator what time it is, roughly
	kindWelcome  kind = 3 // answers
	kindReport   kind = 4 // a node's edges, to a coordinator
	kindSolution kind = 5 // how wrong a node is, from a coordinator
)

// Layout.
const (
	magic      = 'H'
	version    = 2
	headSize   = 8 // magic, version, kind, index or flags, number
	toldSize   = 16
	probeSize  = headSize + 2*perProbe*toldSize
	timesSize  = headSize + 4*8
	reportHead = headSize + 14
	edgeSize   = 20
	// perReport is how many edges a report has room for.
	perReport    = (clocksync.MaxMessage - reportHead) / edgeSize
	solutionSize = headSize + 24

	// ProbeSize is a probe without what carries it, in bytes.
	ProbeSize = probeSize

	perProbe = 2 // pairs of each direction that a probe tells of

	maxApart = units.Time(math.MaxInt32) // of the two packets of a pair: 2 ms
	maxTime  = units.Time(1) << 60       // of a clock: 13 days
)

// Errors of the decoders.
var (
	ErrShort   = errors.New("huygens: message is cut short or too long")
	ErrMagic   = errors.New("huygens: not a message of this protocol, or of another version")
	ErrRange   = errors.New("huygens: field out of range")
	ErrForeign = errors.New("huygens: message from a node that may not send it")
	ErrStale   = errors.New("huygens: message comes twice, too late, or answers nothing that was asked")
)

// told is a pair as a probe tells of it.
type told struct {
	sequence uint32
	at       units.Time // of the first packet
	apart    units.Time // of the second from the first
}

// stamps returns the stamps of both packets.
func (t told) stamps() [2]units.Time { return [2]units.Time{t.at, t.at + t.apart} }

// probe is one packet of a pair. Both directions have probes of one size, so that they take the same time on a line.
type probe struct {
	index    uint8 // 0 or 1
	epoch    uint8 // 0 to 3: how often the sender's clock was stepped
	sequence uint32
	sent     [perProbe]told // earlier pairs of the sender; sequence 0 and at 0: none
	received [perProbe]told // pairs that the sender has received
	nsent    int
	nrecv    int
}

// times is a join or a welcome.
type times struct {
	kind   kind
	joined bool // the sender of a welcome knows the time; otherwise the times say nothing
	lone   bool // but not the reference's
	number uint32
	t      [4]units.Time // join: departure. welcome: that, arrival and departure in synchronized time, and how far that may be from the reference's
}

// report is what a node tells a coordinator at the end of a window.
type report struct {
	window uint32
	part   uint8      // of the report; the last has last set
	anchor bool       // the node may be the anchor
	lone   bool       // but its time is not the reference's
	x0     units.Time // reading of its clock at which it thought it was the middle of the window
	rate   float64    // of the line by which it thought so
	edges  []edgeFit  // at most perReport
	room   [perReport]edgeFit
}

// edgeFit is one edge: the other clock is ahead by beta at x0, and gains alpha.
type edgeFit struct {
	to     clocksync.Node
	points uint16
	beta   units.Time
	alpha  float64
	sigma  units.Time
}

// solution is what a coordinator tells a node.
type solution struct {
	window uint32
	lone   bool       // of time that is not the reference's
	err    units.Time // synchronized time that the node had at x0, less what it was
	skew   float64    // error of its rate
	sigma  units.Time
	adrift units.Time // how far the cluster's time may be from the reference's
}

// flags packs up to two of them into the index of a head.
func flags(first, second bool) (f uint8) {
	if first {
		f = 1
	}
	if second {
		f |= 2
	}
	return f
}

func putHead(b []byte, k kind, index uint8, number uint32) {
	b[0], b[1], b[2], b[3] = magic, version, byte(k), index
	binary.BigEndian.PutUint32(b[4:], number)
}

// peek returns the kind of a message.
func peek(b []byte) (kind, error) {
	if len(b) < headSize {
		return 0, ErrShort
	}
	if b[0] != magic || b[1] != version {
		return 0, ErrMagic
	}
	return kind(b[2]), nil
}

func putTime(b []byte, t units.Time) { binary.BigEndian.PutUint64(b, uint64(t)) }

// readTime returns a time and whether a clock can show it.
func readTime(b []byte) (units.Time, bool) {
	t := units.Time(binary.BigEndian.Uint64(b))
	return t, t < maxTime && t > -maxTime
}

// ppt is the unit of rates in messages: 10^-12.
const ppt = 1e-12

// putRate writes a rate, which lies within +-0.002.
func putRate(b []byte, rate float64) {
	v := math.Round(max(-math.MaxInt32, min(math.MaxInt32, rate/ppt)))
	binary.BigEndian.PutUint32(b, uint32(int32(v)))
}

func readRate(b []byte) float64 { return float64(int32(binary.BigEndian.Uint32(b))) * ppt }

func putSigma(b []byte, t units.Time) {
	binary.BigEndian.PutUint32(b, uint32(max(0, min(math.MaxUint32, t))))
}

func (p *probe) encode(b []byte) int {
	b = b[:probeSize]
	clear(b)
	putHead(b, kindProbe, p.index|uint8(p.nsent)<<2|uint8(p.nrecv)<<4|p.epoch<<6, p.sequence)
	for i, t := range p.sent[:p.nsent] {
		t.put(b[headSize+i*toldSize:])
	}
	for i, t := range p.received[:p.nrecv] {
		t.put(b[headSize+(perProbe+i)*toldSize:])
	}
	return probeSize
}

func (t told) put(b []byte) {
	binary.BigEndian.PutUint32(b, t.sequence)
	putTime(b[4:], t.at)
	binary.BigEndian.PutUint32(b[12:], uint32(int32(t.apart)))
}

func (t *told) get(b []byte) bool {
	var ok bool
	t.sequence = binary.BigEndian.Uint32(b)
	t.at, ok = readTime(b[4:])
	t.apart = units.Time(int32(binary.BigEndian.Uint32(b[12:])))
	return ok && t.apart != math.MinInt32
}

func (p *probe) decode(b []byte) error {
	if len(b) != probeSize {
		return ErrShort
	}
	*p = probe{index: b[3] & 3, sequence: binary.BigEndian.Uint32(b[4:]), nsent: int(b[3] >> 2 & 3), nrecv: int(b[3] >> 4 & 3), epoch: b[3] >> 6}
	if p.index > 1 || p.nsent > perProbe || p.nrecv > perProbe {
		return ErrRange
	}
	for i := range p.nsent {
		if !p.sent[i].get(b[headSize+i*toldSize:]) {
			return ErrRange
		}
	}
	for i := range p.nrecv {
		if !p.received[i].get(b[headSize+(perProbe+i)*toldSize:]) {
			return ErrRange
		}
	}
	return nil
}

func (m *times) encode(b []byte) int {
	putHead(b, m.kind, flags(m.joined, m.lone), m.number)
	for i, t := range m.t {
		putTime(b[headSize+8*i:], t)
	}
	return timesSize
}

func (m *times) decode(b []byte) error {
	if len(b) != timesSize {
		return ErrShort
	}
	if b[3] > 3 {
		return ErrRange
	}
	*m = times{kind: kind(b[2]), joined: b[3]&1 == 1, lone: b[3]&2 == 2, number: binary.BigEndian.Uint32(b[4:])}
	for i := range m.t {
		var ok bool
		if m.t[i], ok = readTime(b[headSize+8*i:]); !ok {
			return ErrRange
		}
	}
	return nil
}

func (r *report) encode(b []byte) int {
	putHead(b, kindReport, flags(r.anchor, r.lone), r.window)
	b = b[headSize:]
	putTime(b, r.x0)
	putRate(b[8:], r.rate)
	b[12], b[13] = r.part, uint8(len(r.edges))
	for i, e := range r.edges {
		c := b[reportHead-headSize+i*edgeSize:]
		binary.BigEndian.PutUint16(c, uint16(e.to))
		binary.BigEndian.PutUint16(c[2:], e.points)
		putTime(c[4:], e.beta)
		putRate(c[12:], e.alpha)
		putSigma(c[16:], e.sigma)
	}
	return reportHead + len(r.edges)*edgeSize
}

func (r *report) decode(b []byte) error {
	if len(b) < reportHead {
		return ErrShort
	}
	n := int(b[headSize+13])
	if n > perReport || len(b) != reportHead+n*edgeSize {
		return ErrShort
	}
	x0, ok := readTime(b[headSize:])
	if !ok || b[3] > 3 || b[headSize+12] >= maxParts {
		return ErrRange
	}
	r.window, r.anchor, r.lone, r.part = binary.BigEndian.Uint32(b[4:]), b[3]&1 == 1, b[3]&2 == 2, b[headSize+12]
	r.x0, r.rate = x0, readRate(b[headSize+8:])
	r.edges = r.room[:n]
	for i := range r.edges {
		c := b[reportHead+i*edgeSize:]
		e := &r.edges[i]
		*e = edgeFit{to: clocksync.Node(binary.BigEndian.Uint16(c)), points: binary.BigEndian.Uint16(c[2:]),
			alpha: readRate(c[12:]), sigma: units.Time(binary.BigEndian.Uint32(c[16:]))}
		if e.beta, ok = readTime(c[4:]); !ok || e.sigma == 0 {
			return ErrRange
		}
	}
	return nil
}

func (s *solution) encode(b []byte) int {
	putHead(b, kindSolution, flags(s.lone, false), s.window)
	putTime(b[headSize:], s.err)
	putRate(b[headSize+8:], s.skew)
	putSigma(b[headSize+12:], s.sigma)
	putTime(b[headSize+16:], s.adrift)
	return solutionSize
}

func (s *solution) decode(b []byte) error {
	if len(b) != solutionSize {
		return ErrShort
	}
	var ok bool
	s.window, s.lone = binary.BigEndian.Uint32(b[4:]), b[3] == 1
	if s.err, ok = readTime(b[headSize:]); !ok || b[3] > 1 {
		return ErrRange
	}
	if s.adrift, ok = readTime(b[headSize+16:]); !ok || s.adrift < 0 {
		return ErrRange
	}
	s.skew, s.sigma = readRate(b[headSize+8:]), units.Time(binary.BigEndian.Uint32(b[headSize+12:]))
	return nil
}
