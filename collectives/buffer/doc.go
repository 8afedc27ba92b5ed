// Package buffer is the memory of a rank as real bytes: elements of float32, bfloat16 or int32, little-endian,
// that are filled with the rank's input, sent, reduced, replaced and verified element by element against a closed
// form, bit by bit: inputs are chosen so that reductions are exact in any order (draw.go).
//
// An input is a function of (seed, item, repetition, rank, element), so no rank needs another's data to know
// the result, and what a wrong, missing, repeated or misplaced contribution leaves behind differs from it.
// Work is spread over the run: inputs are written a page at a time when they are first touched, and each part
// of a result is compared when it is written for the last time, so that no host stops for a whole buffer.
//
// Sizes and offsets are bytes. It is pure; a Memory belongs to one goroutine.
package buffer
