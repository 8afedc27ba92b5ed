package wasm

import (
	"encoding/binary"
	"math"
	"sync/atomic"

	"weft/internal/sandbox"
	"weft/units"
)

// Version is the version of the interface. docs/module-abi.md describes it, with the numbers below.
const Version = 1

// The header, at the address that weft_cc returns: six numbers of 32 bits.
const (
	headerVersion = 4 * iota
	headerMail
	headerState
	headerStateSize
	headerText
	headerTextSize
	headerSize
)

// The mailbox: numbers of 64 bits. The module writes the first four, Weft the others.
const (
	mailWindow    = 0  // float64, bytes
	mailRate      = 8  // float64, b/s
	mailTimer     = 16 // ps
	mailNotBefore = 24 // ps
	mailNow       = 32 // ps
	mailArgs      = 40
	mailSize      = 1024
)

// Events, the parameter of weft_event, with the number of their arguments.
const (
	eventInit  = 0 // 8, and one for each parameter of the module
	eventStart = 1 // 0
	eventSent  = 2 // 3
	eventAck   = 3 // 9, and four for each hop
	eventLoss  = 4 // 3
	eventCNP   = 5 // 0
	eventTimer = 6 // 0
)

// Bits of the argument flags of eventAck.
const (
	flagMarked = 1 << iota
	flagAppLimited
	flagProbe
)

// Bounds of the interface. maxHops is what fits the mailbox behind the other arguments of eventAck.
const (
	maxParams = 64
	maxHops   = (mailSize - mailArgs - 9*8) / 32
	maxState  = 64 << 10 // bytes
	maxText   = 64 << 10 // bytes
)

// Limits of a module. Our own choice: a Go program has 2.4 MB of memory at the start, which takes
// 0.5 million units of fuel. An event takes 10 to 100 units, and 50,000 if it runs the garbage
// collector.
const (
	memoryPages = 256 // of 64 KiB
	startFuel   = 50_000_000
	callFuel    = 1_000_000
)

// instance is a running module with the places of its memory that the interface names. It is free
// or busy: acquire makes it busy for one sender, release makes it free, and discard leaves it busy
// for ever. Between two events it remembers nothing that counts.
type instance struct {
	running *sandbox.Instance
	busy    atomic.Bool      // a sender uses it, or it was discarded
	event   sandbox.Function // weft_event
	mail    *[mailSize]byte  // view of the module's memory: answers and arguments of an event
	state   []byte           // view of the module's memory: the state of the busy sender's connection
	text    []byte           // copy of the description, as JSON
	args    int              // bytes of arguments that the last event wrote
	stack   [1]uint64        // argument and result of a call, so that none allocates
}

// begin clears what is left of the last event, and writes now. So a module sees zeros where an
// event has fewer arguments than the one before, whichever connection that belonged to.
func (in *instance) begin(now units.Time) {
	clear(in.mail[:mailArgs+in.args])
	in.args = 0
	in.word(mailNow, uint64(now))
}

// word writes a number of the mailbox.
func (in *instance) word(at int, v uint64) { binary.LittleEndian.PutUint64(in.mail[at:], v) }

// arg appends an argument. The events of this interface fit the mailbox: see maxParams and maxHops.
func (in *instance) arg(v uint64) {
	in.word(mailArgs+in.args, v)
	in.args += 8
}

// float appends an argument that is a float64.
func (in *instance) float(v float64) { in.arg(math.Float64bits(v)) }

// read returns a number of the mailbox.
func (in *instance) read(at int) uint64 { return binary.LittleEndian.Uint64(in.mail[at:]) }

// call passes an event to the module. An error is a trap of the module, such as an empty fuel
// counter or an access outside of its memory.
func (in *instance) call(event uint64) error {
	in.stack[0] = event
	return in.event.Call(callFuel, in.stack[:])
}
