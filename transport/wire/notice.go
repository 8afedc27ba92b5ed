package wire

import (
	"encoding/binary"

	"weft/units"
)

// NoticeSize is the size of the header of a notice in bytes.
const NoticeSize = 40

// NoticeKind is the kind of a notice (draft-lyu-rtgwg-coordinated-cm, section 6.2).
type NoticeKind uint8

// Kinds of notices.
const (
	NeedsCC   NoticeKind = 1 // to the source: the flow causes incast
	Released  NoticeKind = 2 // to the source: the flow no longer causes incast
	NeedsPath NoticeKind = 3 // to a node that can choose a path: the sending switch has no uncongested one
)

// Notice is a notification of a switch about the flow from host Src to host Dst with UDP source
// port SrcPort.
//
//	16  kind (1)    17  1: last resort (1)    18  source port (2)    20  src (4)
//	24  dst (4)     28  switch (4)            32  at (8)
type Notice struct {
	Kind    NoticeKind
	Last    bool // NeedsCC: the reason is not incast, but that no path is uncongested
	SrcPort uint16
	Src     uint32
	Dst     uint32
	Switch  uint32     // number of the sending switch among all nodes
	At      units.Time // when it was sent, at least 0
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
	binary.BigEndian.PutUint16(b[12:], checkShort(b))
}

// Decode reads the header at the beginning of b. If it returns an error, n is undefined.
func (n *Notice) Decode(b []byte) error {
	if err := checkHead(b, TypeNotice, NoticeSize, 0, checkShort); err != nil {
		return err
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
	if n.Kind < NeedsCC || n.Kind > NeedsPath || b[17] > 1 || n.Last && n.Kind != NeedsCC ||
		b[14] != 0 || b[15] != 0 || n.At < 0 {
		return ErrRange
	}
	return nil
}
