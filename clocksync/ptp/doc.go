// Package ptp is the Precision Time Protocol (IEEE 1588-2019) as a pure machine: two-step, with the end-to-end or the
// peer delay mechanism; ordinary and boundary clocks with the best master clock algorithm, transparent clocks, and the
// servos of package servo.
//
// A Clock is one node's clocksync.Protocol: messages, stamps and instants come in, messages and a Correction come out.
// The messages have the formats of the standard and travel as unicast UDP to each neighbour, since the modelled
// network has no multicast. Times are picoseconds of the node's clocks. What the standard carries in nanoseconds is
// made exact by the fraction that goes to the correctionField.
//
// Left out: leap seconds and UTC (time is atomic), management, signalling and negotiation of unicast, authentication,
// one-step masters (one-step Sync is understood).
package ptp
