// Package schedule turns a collective into the programs of its ranks: which messages each rank sends and
// receives, in which regions of its buffers, and in which order. One algorithm, one file. It is pure.
package schedule
