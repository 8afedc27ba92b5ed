// Package agent is the node of an emulated lab: it drives one host's machine (package host) with real UDP
// sockets and the machine's clock.
//
// In come the host's plan and the start of lab time over the control connection, and packets from the
// network. Out go packets, progress, and at the end the host's records and how well the node kept to its
// schedule. Times are lab picoseconds unless a name ends in another unit. It decides nothing: when a packet
// leaves is what the machine says and when the modelled NIC is free.
//
// One thread does all of it, for one node or for several that have lent their sockets (KindLend, KindAdopt). It
// wakes for input, for the machine's deadlines and when the NIC becomes free, the last two a little early
// (Config.Ahead): packets carry the instant at which they leave, and the fabric holds what comes before, so that a
// late wake-up does not make a late packet.
package agent
