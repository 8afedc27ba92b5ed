// Package buffer is the memory of a rank with real bytes, for emulation: elements of float32,
// bfloat16 or int32, little-endian. They are filled with the rank's input, sent, reduced, replaced,
// and verified bit by bit against a closed form: inputs are chosen so that reductions are exact in
// any order (draw.go).
//
// An input is a function of (seed, item, repetition, rank, element). So every rank can compute the
// result without the data of others, and a wrong, missing, repeated or misplaced contribution
// changes it. Work is spread over the run: an input that nothing is received into is computed as it
// leaves, others are written a page at a time when they are first touched (store.go), and each part
// of a result is compared after its last write, so that no host stops for a whole buffer.
//
// Memory in memory.go implements host.Bytes: Begin, Load, Place, Apply, Check, End, Close for each
// item. Values in values.go are inputs and results; a Shelf shares them between the memories of a
// process.
//
// Sizes and offsets are bytes. It is pure; a Memory belongs to one goroutine.
package buffer
