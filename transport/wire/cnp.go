package wire

import "encoding/binary"

// CNPSize is the size of the header of a congestion notification packet in bytes. With Overhead it
// is 78 bytes on the wire, like RoCEv2's.
const CNPSize = 32

// CNP is a congestion notification packet (DCQCN).
type CNP struct {
	Conn uint32
	PSN  uint32 // PSN of the packet that caused it
	Path uint16 // path of that packet
}

// Encode writes the header to the first CNPSize bytes of b.
func (c *CNP) Encode(b []byte) {
	b = b[:CNPSize]
	putPrefix(b, TypeCNP, 0, c.Conn, c.PSN, 0)
	binary.BigEndian.PutUint16(b[16:], c.Path)
	clear(b[18:])
	binary.BigEndian.PutUint16(b[12:], checkShort(b))
}

// Decode reads the header at the beginning of b. If it returns an error, c is undefined.
func (c *CNP) Decode(b []byte) error {
	if err := checkHead(b, TypeCNP, CNPSize, 0, checkShort); err != nil {
		return err
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
