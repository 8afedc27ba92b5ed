package schedule

import "weft/units"

// Kind says whether an Op sends or receives.
type Kind uint8

// Kinds of Op.
const (
	Send Kind = iota + 1
	Recv
)

// Buf names one of the two buffers of a rank.
type Buf uint8

// Buffers of a rank. In place collectives use Out alone: it starts as a copy of the rank's input.
const (
	In Buf = iota
	Out
)

// Op is one step of a rank's program: send a region of a buffer to a peer, or receive a message of the same
// length from a peer into a region, replacing or adding to what is there.
type Op struct {
	Kind   Kind
	Peer   int         // rank
	Tag    uint32      // the same at both ends; unique among the messages from one rank to another
	Buf    Buf         // Send: read from; Recv: written to
	Off    units.Bytes // of the region in the buffer
	Len    units.Bytes // at least 1
	Reduce bool        // Recv: add to the region instead of replacing it
	After  []int32     // ops of the same program that must be complete before this one may start
}

// Program is what one rank does. A send is complete when every byte was acknowledged; a receive when the
// message is there and was applied to the buffer.
type Program []Op
