// Package qdisc plans the Linux queueing disciplines for one direction of a link. Input: a
// Direction and the Capabilities of a kernel. Output: a Tree of disciplines, or an error that names
// what the kernel cannot provide. It is pure. Package tcnl applies trees to devices, reads them
// back and reads their counters.
//
// All times and rates are real: callers that dilate time have already converted them. Sizes are in
// bytes as the kernel counts them in a queue, with the Ethernet header and without the frame check
// sequence.
//
// A direction becomes two trees of disciplines (ADR 122, ADR 233):
//
//	near end, egress:   htb (rate)  <-  class of control packets  <-  bfifo (bytes)
//	                                <-  class of data  <-  red (marks), none to two  <-  bfifo
//	far end, ingress:   netem (propagation, jitter, loss, copies), on an ifb
//
// RED counts everything below it as queue, so packets in flight must never be below it. With this
// split a packet leaves its queue, then takes its transmission time, then the propagation delay, as
// in the modelled fabric.
//
// Start with Direction (direction.go), Plan (plan.go) and the model of sch_red in marks.go. Compare
// tells a tree that was read back from the requested one.
package qdisc
