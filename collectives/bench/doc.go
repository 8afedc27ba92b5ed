// Package bench states the speed of a collective in the terms of nccl-tests (doc/PERFORMANCE.md).
//
//	algorithm bandwidth = size / time
//	bus bandwidth       = algorithm bandwidth · factor of the collective and the number of ranks
//
// The factor makes bus bandwidth comparable with the rate of a link, for all collectives and
// numbers of ranks. Rates are bits per second here; nccl-tests prints GB/s of 1e9 bytes, which is
// GBps.
//
// In come a collective, its size and its time. Out come bandwidths, and the table of nccl-tests:
// Table at once, or Header, Row.String and Footer line by line. Sizes, ParseSize and Fit implement
// the options of nccl-tests for the sizes of a benchmark. It is pure. Start reading at Bandwidth
// and NewRow.
package bench
