package wire

import (
	"encoding/binary"

	"weft/units"
)

// NoticeSize is the length of the header of a notice.
const NoticeSize = 40

// NoticeKind is a type of notification (draft-lyu-rtgwg-coordinated-cm, section 6.2).
type NoticeKind uint8

// Kinds of notices.
const (
	NeedsCC   NoticeKind = 1 // to the source: the flow causes incast
	Released  NoticeKind = 2 // to the source: it does not any more
	NeedsPath NoticeKind = 3 // to who can choose: no path of the flow is light at the switch that sends this
)

// Notice is a notification from a switch about the flow from Src to Dst, hosts by their numbers, with a UDP source port.
//
//	16  kind (1)  17  1: last resort (1)  18  source port (2)  20  src (4)  24  dst (4)  28  switch (4)  32  at (8)
type Notice struct {
	Kind    NoticeKind
	Last    bool // NeedsCC: not for incast, but since no path is light
	SrcPort uint16
	Src     uint32
	Dst     uint32
	Switch  uint32     // that sent it, by its number among all nodes
	At      units.Time // when; at least 0
}

// Encode writes the header to the first NoticeSize bytes of b.
func (n *Notice) Encode(b []byte) {
	b = b[:NoticeSize]
	putPrefix(b, TypeNotice, 0, 0, 0, 0)
	b[16], b[17] = byte(n.Kind), 0
	if n.Last {
		b[17] = 1
	}
	binary.BigEndian.PutUint16(b[18:], n.SrcPort)
	binary.BigEndian.PutUint32(b[20:], n.Src)
	binary.BigEndian.PutUint32(b[24:], n.Dst)
	binary.BigEndian.PutUint32(b[28:], n.Switch)
	binary.BigEndian.PutUint64(b[32:], uint64(n.At))
	binary.BigEndian.PutUint16(b[12:], checkNotice(b))
}

// Decode reads the header that b begins with. n is undefined when it returns an error.
func (n *Notice) Decode(b []byte) error {
	t, err := Peek(b)
	switch {
	case err != nil:
		return err
	case t != TypeNotice:
		return ErrType
	case len(b) < NoticeSize:
		return ErrShort
	case binary.BigEndian.Uint16(b[12:]) != checkNotice(b):
		return ErrCheck
	case b[3] != 0:
		return ErrFlags
	}
	for _, x := range b[4:12] {
		if x != 0 {
			return ErrRange
		}
	}
	n.Kind, n.Last = NoticeKind(b[16]), b[17] == 1
	n.SrcPort = binary.BigEndian.Uint16(b[18:])
	n.Src = binary.BigEndian.Uint32(b[20:])
	n.Dst = binary.BigEndian.Uint32(b[24:])
	n.Switch = binary.BigEndian.Uint32(b[28:])
	n.At = units.Time(binary.BigEndian.Uint64(b[32:]))
	if n.Kind < NeedsCC || n.Kind > NeedsPath || b[17] > 1 || n.Last && n.Kind != NeedsCC || b[14] != 0 || b[15] != 0 || n.At < 0 {
		return ErrRange
	}
	return nil
}

// checkNotice is the check over a header of NoticeSize: as if zeros followed.
func checkNotice(b []byte) uint16 {
	var full [AckSize]byte
	copy(full[:], b[:NoticeSize])
	return check(full[:])
}
