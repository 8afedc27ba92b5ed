package wire

import (
	"encoding/binary"

	"weft/units"
)

// ProbeSize is the size of the header of a probe in bytes.
const ProbeSize = CNPSize

// Probe requests a selective acknowledgement at once (STrack, section 3.3.2). It queues like data,
// so packets sent before it that have not arrived with it are lost or on a slower path.
type Probe struct {
	Conn     uint32
	PSN      uint32     // the packet whose segment of the bitmap is requested
	SentAt   units.Time // when it left the NIC, by the sender's clock
	Baseline units.Time // its delay on an idle path, 0 to MaxBaseline
	Path     uint16     // path of the connection that it was sent on
}

// Encode writes the header to the first ProbeSize bytes of b. Fields must be in range.
func (p *Probe) Encode(b []byte) {
	b = b[:ProbeSize]
	putPrefix(b, TypeProbe, 0, p.Conn, p.PSN, 0)
	binary.BigEndian.PutUint64(b[16:], uint64(p.SentAt))
	binary.BigEndian.PutUint64(b[24:], uint64(p.Baseline)<<16|uint64(p.Path))
	binary.BigEndian.PutUint16(b[12:], checkShort(b))
}

// Decode reads the header at the beginning of b. If it returns an error, p is undefined.
func (p *Probe) Decode(b []byte) error {
	if err := checkHead(b, TypeProbe, ProbeSize, 0, checkShort); err != nil {
		return err
	}
	if b[14] != 0 || b[15] != 0 {
		return ErrRange
	}
	last := binary.BigEndian.Uint64(b[24:])
	p.Conn = binary.BigEndian.Uint32(b[4:])
	p.PSN = binary.BigEndian.Uint32(b[8:])
	p.SentAt = units.Time(binary.BigEndian.Uint64(b[16:]))
	p.Baseline, p.Path = units.Time(last>>16), uint16(last)
	return nil
}
