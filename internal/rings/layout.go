package rings

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// Sizes in bytes.
const (
	line       = 128 // what two processors never share: a cache line, and the one that is fetched with it
	indices    = 2 * line
	descriptor = 32
)

// Limits of a layout. Ours.
const (
	// MinFrame is the smallest size of a slot: an acknowledgement fits.
	MinFrame = 256
	// MaxFrame is the size of the longest frame: the longest IP packet with its Ethernet header.
	MaxFrame = 1<<16 + 13
	// minSlots and maxSlots bound the number of slots, and slab the size of all in bytes.
	minSlots, maxSlots = 64, 1024
	slab               = 8 << 20
)

// Layout is where the parts of a region are. It follows from the size of the longest frame, so that
// both sides compute the same.
type Layout struct {
	Slots int // of each direction, a power of two
	Size  int // of a slot, in bytes
}

// For returns the layout for frames of up to frame bytes.
func For(frame int) (Layout, error) {
	if frame < 1 || frame > MaxFrame {
		return Layout{}, fmt.Errorf("rings: frames of %d bytes; expected 1 to %d", frame, MaxFrame)
	}
	size := (max(frame, MinFrame) + 63) &^ 63
	slots := 1 << (bits.Len(uint(slab/size)) - 1)
	return Layout{Slots: min(max(slots, minSlots), maxSlots), Size: size}, nil
}

// Bytes returns the size of a region.
func (l Layout) Bytes() int { return 2 * (l.control() + l.Slots*l.Size) }

// control returns the size of the indices and descriptors of one direction.
func (l Layout) control() int { return indices + l.Slots*descriptor }

// part returns the memory of a direction: its indices and descriptors, and its slots.
func (l Layout) part(region []byte, direction int) (control, slots []byte) {
	c, s := l.control(), l.Slots*l.Size
	control = region[direction*c:][:c:c]
	return control, region[2*c+direction*s:][:s:s]
}

// check returns an error unless region is memory for the layout.
func (l Layout) check(region []byte) error {
	if l.Slots < 1 || l.Slots > maxSlots || l.Slots&(l.Slots-1) != 0 || l.Size < MinFrame || l.Size > MaxFrame+64 {
		return fmt.Errorf("rings: layout of %d slots of %d bytes", l.Slots, l.Size)
	}
	if len(region) < l.Bytes() {
		return fmt.Errorf("rings: a region of %d bytes; the layout takes %d", len(region), l.Bytes())
	}
	if uintptr(unsafe.Pointer(&region[0]))%8 != 0 {
		return fmt.Errorf("rings: the region is not aligned to 8 bytes")
	}
	return nil
}
