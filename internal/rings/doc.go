// Package rings moves frames between two processes through a region of memory that both have
// mapped, without system calls.
//
//	region: | to B: indices, descriptors | to A: indices, descriptors | slots to B | slots to A |
//	A: Slot, fill it, Push ──► B: Next, use it, Release
//
// A region (Layout) has a ring for each direction. A ring has one producer and one consumer, in
// different processes. The producer writes a frame into a slot of its slab and publishes a
// descriptor; the consumer reads the frame where it is and releases the slot. The slot released
// last is used first, since its memory is still in a cache.
//
// The one idea: neither side believes the other. All state that decides anything is private (the
// own index, which slots are free, which slot a descriptor got). What the other side writes is read
// once, by an atomic load, and checked before it is used: an index that moved further than it can,
// or a descriptor that points outside of the slab, is ErrLie. A frame in shared memory may change
// at any time, so a consumer that does not trust the producer copies it before it parses it.
//
// Invariants. No content of the region makes an operation panic, hang, or touch memory outside of
// the region. Nothing is allocated after New. The package makes no system calls; package bypass
// makes regions and wakes sleepers.
//
// Start reading at Producer and Consumer in rings.go.
package rings
