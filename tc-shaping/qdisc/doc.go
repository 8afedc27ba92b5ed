// Package qdisc turns what a lab says of one direction of a link into queueing disciplines of Linux. It is pure: settings
// and what a kernel can do come in, a tree of disciplines or an error that names what cannot be honoured goes out. Package
// tcnl puts trees on devices, reads them back and reads their counters.
//
// All times and rates are real ones: who emulates with dilated time has multiplied and divided already. Sizes are
// bytes as the kernel counts them in a queue, the Ethernet header included and the frame check sequence not.
//
// A direction becomes two rows of disciplines (docs/adr/0110):
//
//	near end, on what leaves:    tbf (rate)  <-  red (marks), of which there may be two  <-  bfifo (bytes)
//	far end, on what arrives:    netem (propagation, jitter, loss, copies), on an ifb that arriving packets are sent through
//
// so that nothing in flight is ever below RED, which would count it as queue, and that a packet leaves its queue,
// then takes the time of its transmission, then that of the line, as in the modelled fabric.
package qdisc
