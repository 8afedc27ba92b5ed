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
	Request  Request    // behind the header, of a sender that asks for credit (UEC: RTS)
}

// Len returns the size of the header with its request, in bytes.
func (p *Probe) Len() units.Bytes {
	if p.Request.On {
		return ProbeSize + RequestSize
	}
	return ProbeSize
}

// Encode writes the header to the first Len bytes of b. Fields must be in range.
func (p *Probe) Encode(b []byte) {
	f := Flags(0)
	if p.Request.On {
		f |= Trimmable
		binary.BigEndian.PutUint32(b[ProbeSize:], p.Request.Target)
	}
	b = b[:ProbeSize]
	putPrefix(b, TypeProbe, f, p.Conn, p.PSN, 0)
	binary.BigEndian.PutUint64(b[16:], uint64(p.SentAt))
	binary.BigEndian.PutUint64(b[24:], uint64(p.Baseline)<<16|uint64(p.Path))
	binary.BigEndian.PutUint16(b[12:], checkShort(b))
}

// Decode reads the header at the beginning of b. If it returns an error, p is undefined.
func (p *Probe) Decode(b []byte) error {
	if err := checkHead(b, TypeProbe, ProbeSize, Trimmable, checkShort); err != nil {
		return err
	}
	if b[14] != 0 || b[15] != 0 {
		return ErrRange
	}
	if p.Request = (Request{}); Flags(b[3]) == Trimmable {
		var err error
		if p.Request, err = readRequest(b[ProbeSize:]); err != nil {
			return err
		}
	}
	last := binary.BigEndian.Uint64(b[24:])
	p.Conn = binary.BigEndian.Uint32(b[4:])
	p.PSN = binary.BigEndian.Uint32(b[8:])
	p.SentAt = units.Time(binary.BigEndian.Uint64(b[16:]))
	p.Baseline, p.Path = units.Time(last>>16), uint16(last)
	return nil
}
