// Package ptp implements the Precision Time Protocol (IEEE 1588-2019) as pure state machines:
// ordinary and boundary clocks with the best master clock algorithm, and transparent clocks, all
// two-step, with the end-to-end or the peer delay mechanism.
//
//	master ── Sync ───────────────────► slave      t1 leaves, t2 arrives
//	       ── Follow_Up (t1) ─────────►
//	       ◄───────────── Delay_Req ───            t3 leaves, t4 arrives
//	       ── Delay_Resp (t4) ────────►
//
//	delay  = ((t2 - t1) + (t4 - t3)) / 2
//	offset = t2 - t1 - delay
//
// A slave filters the delay (package servo), feeds the offset into a servo, and publishes a
// clocksync.Correction: the map from its hardware clock to synchronized time, with a bound of the
// error. With the peer delay mechanism each link is measured by itself, and what passes on adds up
// in the correctionField.
//
// There are three machines. A Clock is one node's clocksync.Protocol: messages, stamps and instants
// go in, messages and a Correction come out. A Voter runs a Clock in each of several domains and
// follows the majority of their masters. A Bridge is the peer delay mechanism of a switch that is a
// transparent clock. None of them does I/O, reads a clock or is safe for concurrent use.
//
// The one idea is distrust. Messages may be lost, late, repeated or replayed, and clocks may step,
// stop or lie. A message that cannot be fresh is refused and counted; a measurement that no network
// can produce is filtered; a clock that no longer measures goes into holdover; and the published
// bound grows with everything that is not known. Comments say which fault each check is for.
//
// Messages have the formats of the standard and travel as unicast UDP to each neighbour, because
// the modelled network has no multicast. Times are picoseconds of the node's clocks. The standard
// carries nanoseconds; the fraction travels in the correctionField, so that times are exact.
//
// Not implemented: leap seconds and UTC (time is atomic), management, signalling, negotiation of
// unicast, authentication, and one-step masters (a one-step Sync is understood).
//
// Start reading at Clock in clock.go, then port.go (choosing a master) and slave.go (measuring it).
// dataset.go is the comparison of masters and wire.go the format of messages.
package ptp
