// Package agent is the node of an emulated lab. It drives one host's state machine (package host)
// with real UDP sockets, or a bypass NIC (bypass.go), and the machine's clock.
//
// Inputs are the host's plan and the start of lab time, over the control connection, and packets
// from the network. Outputs are packets, progress reports, and at the end the host's records and
// the node's own lateness. Times are picoseconds of lab time unless a name ends in another unit.
//
// The package makes no decisions: the machine says what to send and when, and the modelled NIC says
// when it is free.
//
// One thread does everything, for one node or for several nodes that have lent their sockets
// (KindLend, KindAdopt). It wakes for input, for the machine's deadlines, and when the NIC becomes
// free. The last two happen a little early (Config.Ahead): packets carry their departure time, and
// the fabric holds them until then, so that a late wake-up does not make a late packet.
//
// Start with Run in run.go, then loop.go, the engine. protocol.go lists the messages.
package agent
