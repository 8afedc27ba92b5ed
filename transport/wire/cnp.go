package wire

import "encoding/binary"

// CNPSize is the length of the header of a congestion notification packet: with Overhead 78 bytes on the wire, as
// RoCEv2's are.
const CNPSize = 32

// CNP is a congestion notification packet.
type CNP struct {
	Conn uint32
	PSN  uint32 // of the packet that caused it
	Path uint16 // which that packet took
}

// Encode writes the header to the first CNPSize bytes of b.
func (c *CNP) Encode(b []byte) {
	b = b[:CNPSize]
	putPrefix(b, TypeCNP, 0, c.Conn, c.PSN, 0)
	binary.BigEndian.PutUint16(b[16:], c.Path)
	clear(b[18:])
	binary.BigEndian.PutUint16(b[12:], checkCNP(b))
}

// Decode reads the header that b begins with. c is undefined when it returns an error.
func (c *CNP) Decode(b []byte) error {
	t, err := Peek(b)
	switch {
	case err != nil:
		return err
	case t != TypeCNP:
		return ErrType
	case len(b) < CNPSize:
		return ErrShort
	case binary.BigEndian.Uint16(b[12:]) != checkCNP(b):
		return ErrCheck
	case b[3] != 0:
		return ErrFlags
	}
	for _, reserved := range [][]byte{b[14:16], b[18:CNPSize]} {
		for _, x := range reserved {
			if x != 0 {
				return ErrRange
			}
		}
	}
	c.Conn = binary.BigEndian.Uint32(b[4:])
	c.PSN = binary.BigEndian.Uint32(b[8:])
	c.Path = binary.BigEndian.Uint16(b[16:])
	return nil
}

// checkCNP is the check over a header of CNPSize, which is shorter than those check knows: as if zeros followed.
func checkCNP(b []byte) uint16 {
	var full [AckSize]byte
	copy(full[:], b[:CNPSize])
	return check(full[:])
}
