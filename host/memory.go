package host

import (
	"weft/collectives/schedule"
	"weft/units"
)

// Memory is the buffers of a host's ranks, real or symbolic. item is Item.Index. The calls for an
// item come in this order: Begin, any number of Send and Apply, and End for each repetition; Close
// after the last.
type Memory interface {
	// Begin prepares the buffers of an item for a repetition, as schedule.Shape describes them.
	Begin(item, repeat, rank int, s schedule.Spec) error
	// Send reports that op was handed to the transport. key identifies the message in the whole
	// lab.
	Send(item int, op *schedule.Op, key uint64)
	// Apply puts bytes [from, to) of message key into the region of op, which receives it. data is
	// those bytes, or nil if they are in place already or the memory holds none. A memory that
	// holds bytes gets a message in parts, in order, cut between elements; others get it whole.
	Apply(item int, op *schedule.Op, key uint64, from, to units.Bytes, data []byte) error
	// End returns the number of elements of the result that were compared, and the number of wrong
	// ones among all.
	End(item int) (wrong, checked int64)
	// Close frees the buffers of the item.
	Close(item int)
}

// Finder is a Memory that can locate a wrong result.
type Finder interface {
	// Wrong returns the first byte of Out that is wrong in the result of the repetition that End
	// ended. ok is false if no byte is wrong, or if nothing was received for it.
	Wrong(item int) (off units.Bytes, ok bool)
}

// Spoiler is a Memory without bytes that can record that one of them is wrong.
type Spoiler interface {
	// Spoil corrupts byte off of the data that op has received.
	Spoil(item int, op *schedule.Op, off units.Bytes)
}

// Bytes is a Memory that holds real bytes.
type Bytes interface {
	Memory
	// Load returns n bytes of the region that op sends, starting at off, valid until the next call.
	// They are the same each time before the send is complete. They may be written to room, which
	// has n bytes or none.
	Load(item int, op *schedule.Op, off, n units.Bytes, room []byte) []byte
	// Place returns the region that op receives into. It is called only if op may start and
	// replaces what is there.
	Place(item int, op *schedule.Op) []byte
	// Check is Apply for bytes of a final op that replaces what is there, if nothing reads them
	// afterwards: they are verified, and need not be kept.
	Check(item int, op *schedule.Op, from, to units.Bytes, data []byte)
}
