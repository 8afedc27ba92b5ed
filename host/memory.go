package host

import (
	"weft/collectives/schedule"
	"weft/units"
)

// Memory is the buffers of a host's ranks, real or symbolic. Items are named by Item.Index. Calls for an item
// come in the order Begin, any number of Send and Apply, End for each repetition, and Close after the last.
type Memory interface {
	// Begin readies the buffers of an item for a repetition, as schedule.Shape describes them.
	Begin(item, repeat, rank int, s schedule.Spec) error
	// Send is told that op was handed to the transport. key names the message, uniquely in the lab.
	Send(item int, op *schedule.Op, key uint64)
	// Apply puts bytes [from, to) of message key into the region of op, which receives it. data is those
	// bytes, or nil when they are in their place already or the memory holds none. A memory that holds bytes
	// is given a message in parts, in order, cut between elements; another gets it whole.
	Apply(item int, op *schedule.Op, key uint64, from, to units.Bytes, data []byte) error
	// End returns how many elements of the result were compared and how many of all are wrong.
	End(item int) (wrong, checked int64)
	// Close frees what the item holds.
	Close(item int)
}

// Finder is a Memory that knows which part of a result is wrong.
type Finder interface {
	// Wrong returns the first byte of Out that is not what the result of the repetition that End ended should be; false:
	// none is, or nothing came for it.
	Wrong(item int) (off units.Bytes, ok bool)
}

// Spoiler is a Memory without bytes that takes in that one of them is wrong.
type Spoiler interface {
	// Spoil makes byte off of what op has received something else.
	Spoil(item int, op *schedule.Op, off units.Bytes)
}

// Bytes is a Memory that holds real bytes.
type Bytes interface {
	Memory
	// Load returns n bytes of the region that op sends, from off on. They must not change before the send is
	// complete.
	Load(item int, op *schedule.Op, off, n units.Bytes) []byte
	// Place returns the region that op receives into. It is called only when op may start and replaces.
	Place(item int, op *schedule.Op) []byte
}
