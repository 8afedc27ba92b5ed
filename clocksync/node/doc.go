// Package node is the clocks of one host of a lab and their synchronization: an imperfect
// oscillator (package clock), noisy stamps (noise), a protocol (ptp, huygens) with its faults, and
// the true error.
//
// Its input are instants of true time, which no node of a real cluster knows, and messages. Its
// output are messages, the synchronized clock's readings for packets that leave or arrive, and
// samples of its error at regular instants of true time. It translates true time into the readings
// that a protocol may have, so that protocols are the same in every engine. It is pure.
//
// Instants must not decrease. A Sync is registered in kinds.go, with everything that the rest of
// Weft asks of it; no other package compares its names. Start reading at Node in node.go.
package node
