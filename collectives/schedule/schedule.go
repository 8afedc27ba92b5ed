package schedule

import "weft/units"

// Kind is the kind of an Op.
type Kind uint8

// Kinds of Op. Algorithms have only Send and Recv; the others are for Given.
const (
	Send Kind = iota + 1
	Recv
	Compute // takes a time: see Computation
	Call    // runs a whole collective, which is complete when this rank's part in it is
)

// String returns the kind as a word for messages, such as "send" or "receive".
func (k Kind) String() string {
	switch k {
	case Send:
		return "send"
	case Compute:
		return "computation"
	case Call:
		return "collective"
	}
	return "receive"
}

// Buf selects one of the two buffers of a rank.
type Buf uint8

// Buffers of a rank. In-place collectives use Out alone, which starts as a copy of the input.
const (
	In Buf = iota
	Out
)

// Op is one operation of a program. A send transmits a region of a buffer to a peer. A receive
// takes a message of the same length from a peer and writes it to a region, or reduces it into the
// region. A Compute and a Call have no region.
type Op struct {
	Kind Kind
	// Buf is the buffer that a send reads or a receive writes.
	Buf Buf
	// Reduce makes a receive combine the message with the region, by Spec.Op, instead of replacing
	// it.
	Reduce bool
	// Final marks a receive as the last write to its region, which can then be verified at once.
	Final bool
	// Credit marks a message whose bytes mean nothing: it permits its receiver to send.
	Credit bool
	// Stage groups receives by when they are expected: those of one stage arrive at about the same
	// time, after those of earlier stages.
	Stage uint8
	// Flow numbers the flow between the two ranks, from 0. Messages of different flows do not wait
	// for each other.
	Flow int32
	// Tag identifies the message among those from one rank to another. It is the same at both ends.
	// Of a Call, it is the number of the collective among those of the job.
	Tag uint32
	// Peer is the rank at the other end.
	Peer int
	// Off and Len are the region in the buffer. Len is at least 1.
	Off units.Bytes
	Len units.Bytes
	// After lists the ops of this program, by index, that must be complete before this op may
	// start. Callers must not change it: ops share the memory.
	After []int32
}

// Program is the list of the ops of one rank. A send is complete once all of its bytes are
// acknowledged, a receive once the message has arrived and is applied to the buffer.
type Program []Op

// Layout describes the buffers of a rank. The input ends at the last byte that a send or a Copy
// reads. The parts of Out that Result does not list are scratch space.
type Layout struct {
	// In and Out are the sizes of the buffers. In is 0 if sends read only Out.
	In, Out units.Bytes
	// Local lists the parts of Out that start as a copy of the rank's own input. They are sorted by
	// Off and do not overlap.
	Local []Copy
	// Result lists what Out must hold at the end. The parts are sorted by Off and do not overlap.
	Result []Want
}

// Copy is a part of Out that starts as a copy of the rank's own input.
type Copy struct {
	Off, Len units.Bytes // in Out
	From     units.Bytes // offset in the input
}

// All as Want.Rank stands for the elementwise reduction over all ranks.
const All = -1

// Want is a part of a result: the bytes of Out from Off equal the input of Rank from From, or the
// reduction of the inputs of all ranks from there.
type Want struct {
	Off, Len units.Bytes // in Out
	Rank     int         // a rank, or All
	From     units.Bytes // offset in the input
}

// Traffic is the amount that one rank sends and receives.
type Traffic struct {
	Sends, Receives int         // messages
	Sent, Received  units.Bytes // bytes of all messages
}
