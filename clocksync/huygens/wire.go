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
	kindJoin     kind = 2 // asks a coordinator for the approximate time
	kindWelcome  kind = 3 // answers a join
	kindReport   kind = 4 // a node's edges, to a coordinator
	kindSolution kind = 5 // a node's error, from a coordinator
)

// Layout of messages. Numbers are big-endian, times are 8 bytes of ps, rates 4 bytes of ppt. All
// messages begin with the same head:
//
//	0  magic
//	1  version
//	2  kind
//	3  probe: index, count of sent, count of received, epoch (2 bits each); otherwise flags
//	4  sequence number of the pair, number of the question, or window (4 bytes)
//
// After the head:
//
//	probe     two sent and two received pairs: sequence (4), time of the first packet (8), gap (4)
//	join      four times, of which the first is used
//	welcome   four times
//	report    x0 (8), rate (4), part (1), number of edges (1); then for each edge:
//	          peer (2), points (2), beta (8), alpha (4), sigma (4)
//	solution  err (8), skew (4), sigma (4), adrift (8)
const (
	magic      = 'H'
	version    = 2
	headSize   = 8 // magic, version, kind, index or flags, number
	pairSize   = 16
	probeSize  = headSize + 2*perProbe*pairSize
	timesSize  = headSize + 4*8
	reportHead = headSize + 14
	edgeSize   = 20
	// perReport is the number of edges that fit into one part of a report.
	perReport    = (clocksync.MaxMessage - reportHead) / edgeSize
	solutionSize = headSize + 24

	// ProbeSize is the size of a probe in bytes, without the headers below it.
	ProbeSize = probeSize

	perProbe = 2 // number of pairs of each direction that a probe carries

	maxApart = units.Time(math.MaxInt32) // of the two packets of a pair: 2 ms
	maxTime  = units.Time(1) << 60       // of a clock: 13 days
)

// Errors of the decoders.
var (
	ErrShort   = errors.New("huygens: message is cut short or too long")
	ErrMagic   = errors.New("huygens: not a message of this protocol, or of another version")
	ErrRange   = errors.New("huygens: field out of range")
	ErrForeign = errors.New("huygens: message from a node that may not send it")
	ErrStale   = errors.New("huygens: message is a duplicate, too late, or answers no open question")
)

// reportedPair is a pair of probes as a later probe reports it.
type reportedPair struct {
	sequence uint32     // number of the pair, as in the head of its probes
	at       units.Time // stamp of the first packet
	apart    units.Time // stamp of the second packet minus at
}

// stamps returns the stamps of both packets.
func (t reportedPair) stamps() [2]units.Time { return [2]units.Time{t.at, t.at + t.apart} }

// probe is one packet of a pair. All probes have the same size, so that they take the same time on
// a link in both directions.
type probe struct {
	index    uint8 // 0 or 1: first or second of the pair
	epoch    uint8 // number of steps of the sender's clock, modulo 4
	sequence uint32
	sent     [perProbe]reportedPair // earlier pairs of the sender, by its stamps
	received [perProbe]reportedPair // pairs that the sender has received, by its stamps
	nsent    int                    // number of pairs in sent
	nrecv    int                    // number of pairs in received
}

// times is a join or a welcome.
type times struct {
	kind   kind
	joined bool   // welcome: the sender knows the time; otherwise t is meaningless
	lone   bool   // welcome: that time is not the reference's
	number uint32 // of the question
	// t of a join is its departure. t of a welcome is that again, the arrival of the join and the
	// departure of the welcome in synchronized time, and the bound of that from the reference's
	// time.
	t [4]units.Time
}

// report is a part of what a node reports to a coordinator at the end of a window.
type report struct {
	window uint32
	part   uint8              // number of the part, from 0
	anchor bool               // the node can be the anchor
	lone   bool               // its time is not the reference's
	x0     units.Time         // its hardware clock in the middle of the window, by the line that it follows
	rate   float64            // rate of that line
	edges  []edgeFit          // at most perReport
	room   [perReport]edgeFit // storage for decoded edges
}

// edgeFit is the fit of one edge: the other clock is ahead by beta at x0, and gains alpha.
type edgeFit struct {
	to     clocksync.Node
	points uint16     // number of points of the fit
	beta   units.Time // in ps
	alpha  float64    // relative
	sigma  units.Time // standard deviation of beta
}

// solution is a node's error in a window, from a coordinator.
type solution struct {
	window uint32
	lone   bool       // the cluster's time is not the reference's
	err    units.Time // the node's time at x0 minus the cluster's
	skew   float64    // the same for its rate
	sigma  units.Time // standard deviation of err
	adrift units.Time // bound of the cluster's time from the reference's
}

// flags packs two flags into byte 3 of a head, lowest bit first.
func flags(first, second bool) (f uint8) {
	if first {
		f = 1
	}
	if second {
		f |= 2
	}
	return f
}

// putHead writes the head of a message.
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

// putTime writes a time.
func putTime(b []byte, t units.Time) { binary.BigEndian.PutUint64(b, uint64(t)) }

// readTime returns a time, and whether it is in the range of a clock.
func readTime(b []byte) (units.Time, bool) {
	t := units.Time(binary.BigEndian.Uint64(b))
	return t, t < maxTime && t > -maxTime
}

// ppt is the unit of rates in messages: 10^-12.
const ppt = 1e-12

// putRate writes a rate, clamped to ±0.002.
func putRate(b []byte, rate float64) {
	v := math.Round(max(-math.MaxInt32, min(math.MaxInt32, rate/ppt)))
	binary.BigEndian.PutUint32(b, uint32(int32(v)))
}

// readRate returns a rate. Each value of the four bytes is one.
func readRate(b []byte) float64 { return float64(int32(binary.BigEndian.Uint32(b))) * ppt }

// putSigma writes a standard deviation, clamped to 32 bits of ps.
func putSigma(b []byte, t units.Time) {
	binary.BigEndian.PutUint32(b, uint32(max(0, min(math.MaxUint32, t))))
}

// The encoders return the length of the message that they write into b, which has room for
// clocksync.MaxMessage bytes. The decoders return ErrShort for a wrong length and ErrRange for a
// field that no sender writes; the value is then undefined. peek has checked the head before.

func (p *probe) encode(b []byte) int {
	b = b[:probeSize]
	clear(b)
	putHead(b, kindProbe, p.index|uint8(p.nsent)<<2|uint8(p.nrecv)<<4|p.epoch<<6, p.sequence)
	for i, t := range p.sent[:p.nsent] {
		t.put(b[headSize+i*pairSize:])
	}
	for i, t := range p.received[:p.nrecv] {
		t.put(b[headSize+(perProbe+i)*pairSize:])
	}
	return probeSize
}

func (t reportedPair) put(b []byte) {
	binary.BigEndian.PutUint32(b, t.sequence)
	putTime(b[4:], t.at)
	binary.BigEndian.PutUint32(b[12:], uint32(int32(t.apart)))
}

func (t *reportedPair) get(b []byte) bool {
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
	*p = probe{index: b[3] & 3, sequence: binary.BigEndian.Uint32(b[4:]), nsent: int(b[3] >> 2 & 3),
		nrecv: int(b[3] >> 4 & 3), epoch: b[3] >> 6}
	if p.index > 1 || p.nsent > perProbe || p.nrecv > perProbe {
		return ErrRange
	}
	for i := range p.nsent {
		if !p.sent[i].get(b[headSize+i*pairSize:]) {
			return ErrRange
		}
	}
	for i := range p.nrecv {
		if !p.received[i].get(b[headSize+(perProbe+i)*pairSize:]) {
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
