// Package clocksync says how a node's clock is kept together with others: the interface between a protocol, which is
// a pure machine (packages ptp and huygens), and what drives it (package node, under the simulator and the node agent).
//
// A node has two clocks that one imperfect oscillator drives. The monotonic clock is what timers run on; it never
// steps. The hardware clock is what stamps packets; its stamps are noisy, and a fault may step it. A protocol is told
// both, and the stamps of what it sends and receives. It publishes a Correction: what the time of the cluster is when
// the hardware clock shows a given time, and how far from the truth that may be. It never sees true time, and never
// touches a clock.
//
// Times are picoseconds: of lab time where a name says true, of the node's clocks elsewhere.
package clocksync
