package wire

import "encoding/binary"

// Coordination is the tag of a data packet under coordinated congestion management
// (draft-lyu-rtgwg-coordinated-cm, section 6.1). It lies in a shim behind the header, which
// switches read and write:
//
//	0  1: the flow causes incast (1)   1  reserved, zero (1)   2  AR indicator (2)
//
// The AR indicator is 0 if no node upstream can choose another path, 0xffff if the source host can,
// and the number of a switch plus one if that switch can.
type Coordination struct {
	On bool   // the packet has a tag
	CC bool   // CC indicator: the flow causes incast
	AR uint16 // AR indicator
}

// CoordinationSize is the size of the shim in bytes.
const CoordinationSize = 4

// AskSource is the AR indicator of a source host that can choose another path.
const AskSource uint16 = 0xffff

// PeekCoordination returns the tag of the data packet with header b. On is false if it has none, or
// one that receivers refuse. Nothing else of the header is checked: this is for the simulator,
// whose hosts write valid headers.
func PeekCoordination(b []byte) Coordination {
	t, err := Peek(b)
	if err != nil || t != TypeData || Flags(b[3])&(Coordinated|Telemetry) != Coordinated || len(b) < int(DataSize) {
		return Coordination{}
	}
	c, err := readShim(b[DataSize:])
	if err != nil {
		return Coordination{}
	}
	return c
}

// putShim writes the shim to the beginning of s.
func putShim(s []byte, c Coordination) {
	s[0], s[1] = 0, 0
	if c.CC {
		s[0] = 1
	}
	binary.BigEndian.PutUint16(s[2:], c.AR)
}

// readShim reads the shim at the beginning of b.
func readShim(b []byte) (Coordination, error) {
	switch {
	case len(b) < CoordinationSize:
		return Coordination{}, ErrShort
	case b[0] > 1 || b[1] != 0:
		return Coordination{}, ErrRange
	}
	return Coordination{On: true, CC: b[0] == 1, AR: binary.BigEndian.Uint16(b[2:])}, nil
}
