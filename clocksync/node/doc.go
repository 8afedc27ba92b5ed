// Package node models the clocks of one host of a lab and their synchronization: an imperfect
// oscillator (package clock), noisy stamps (noise), a protocol (ptp, huygens) with its faults, and
// the true error.
//
// Its inputs are messages and instants of true time, which no node of a real cluster knows. It
// translates true time into the clock readings that a protocol may see, so that protocols are the
// same in every engine. Its outputs are messages, the synchronized clock's readings for packets
// that leave or arrive, and samples of the clock's error at regular instants of true time. It is
// pure.
//
// Instants must not decrease. A Sync is registered in kinds.go, with everything that the rest of
// Weft asks of it; no other package compares its names. Start reading at Node in node.go.
package node
