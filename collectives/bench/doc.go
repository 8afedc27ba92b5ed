// Package bench states how fast a collective was, in the terms of nccl-tests (doc/PERFORMANCE.md):
// algorithm bandwidth is size over time, and bus bandwidth is that times a factor which makes collectives and
// rank counts comparable with the speed of a link. Rates are bits per second; nccl-tests prints GB/s of 1e9
// bytes, which is GBps.
//
// In come a collective, its size and its time; out come bandwidths, and the table of nccl-tests (Table, or Header,
// Row.String and Footer as rows come). Sizes, ParseSize and Fit are its options for the sizes to go through. It is
// pure.
package bench
