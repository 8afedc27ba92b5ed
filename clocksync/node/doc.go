// Package node is the clocks of one host of a lab and what keeps them together with those of others: an imperfect
// oscillator (package clock), noisy stamps (noise), a synchronization protocol (ptp, huygens) with its faults, and the
// truth about its error.
//
// In come instants of true time, which no node of a real cluster knows, and messages; out go messages, what the
// synchronized clock shows when a packet leaves or arrives, and samples of its error on a grid of true time. It turns true
// time into what a protocol may know, so the protocol is the same machine in every engine. It is pure.
package node
