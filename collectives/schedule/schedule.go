package schedule

import "weft/units"

// Kind says whether an Op sends or receives.
type Kind uint8

// Kinds of Op.
const (
	Send Kind = iota + 1
	Recv
)

// String returns "send" or "receive".
func (k Kind) String() string {
	if k == Send {
		return "send"
	}
	return "receive"
}

// Buf names one of the two buffers of a rank.
type Buf uint8

// Buffers of a rank. In place collectives use Out alone: it starts as a copy of the rank's input.
const (
	In Buf = iota
	Out
)

// Op is one step of a rank's program: send a region of a buffer to a peer, or receive a message of the same
// length from a peer into a region, replacing what is there or reducing into it.
type Op struct {
	Kind   Kind
	Buf    Buf         // Send: read from; Recv: written to
	Reduce bool        // Recv: combine with the region, by Spec.Op, instead of replacing it
	Final  bool        // Recv: nothing writes to the region later; the result can be verified there and then
	Credit bool        // the message says that its receiver may go on; its bytes mean nothing
	Stage  uint8       // Recv: what comes in one stage comes at about the same time, after the stages before it
	Flow   int32       // between the two ranks, from 0: messages of different flows do not wait for each other
	Tag    uint32      // the same at both ends; unique among the messages from one rank to another
	Peer   int         // rank
	Off    units.Bytes // of the region in the buffer
	Len    units.Bytes // at least 1
	After  []int32     // ops of the same program that must be complete before this one may start; not to be changed
}

// Program is what one rank does. A send is complete when every byte was acknowledged; a receive when the
// message is there and was applied to the buffer.
type Program []Op

// Layout is what a rank's two buffers are and what they hold. Its input is as long as the furthest byte that
// a program or a Copy reads of it. What Result does not name of Out is room to work in.
type Layout struct {
	In, Out units.Bytes // sizes; In is 0 when sends read only Out
	Local   []Copy      // parts of Out that start as parts of the rank's own input, by Off, not overlapping
	Result  []Want      // what Out must hold in the end, by Off, not overlapping
}

// Copy is a part of Out that starts as a part of the rank's own input.
type Copy struct {
	Off, Len units.Bytes // in Out
	From     units.Bytes // in the input
}

// All as the Rank of a Want stands for the elementwise reduction over every rank.
const All = -1

// Want is a part of a result: the bytes of Out at Off are the input of Rank at From, or the reduction of the
// inputs of all ranks at From.
type Want struct {
	Off, Len units.Bytes
	Rank     int
	From     units.Bytes
}

// Traffic is how much one rank sends and receives.
type Traffic struct {
	Sends, Receives int         // messages
	Sent, Received  units.Bytes // bytes of all messages
}
