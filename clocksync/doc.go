// Package clocksync defines how a node's clock is synchronized with others: the interface between a
// synchronization protocol, which is a pure state machine (packages ptp and huygens), and its
// driver (package node, under the simulator and the node agent).
//
//	                  Now: both clocks
//	hardware clock ──────────────┐
//	monotonic clock ─────────────▼
//	network ── Message, stamp ─► Protocol ── Outgoing ──► network
//	                                 └────── Correction ─► readers of synchronized time
//
// One imperfect oscillator drives two clocks of a node. Timers run on the monotonic clock, which
// never steps. Packets are stamped by the hardware clock; its stamps are noisy, and a fault may
// step it. A protocol gets both readings, and the stamps of what it sends and receives. It
// publishes a Correction: the map from a reading of the hardware clock to the time of the cluster,
// with a bound of the error. It never sees true time, and never sets a clock.
//
// Times are picoseconds: of lab time where a name says true, of the node's clocks elsewhere. Start
// reading at Protocol in sync.go; example_test.go is a complete protocol.
package clocksync
