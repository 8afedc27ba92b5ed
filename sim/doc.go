// Package sim runs hosts over a modelled network in virtual time: the discrete-event engine.
//
// It takes a fabric.Config and one Host for each of its hosts, pulls a packet from a host whenever its NIC is
// free, hands over what arrives, and fires the hosts' timers. It decides nothing: order is the event queue's,
// queues are the fabric's, what to send is the hosts'. The same network, hosts and seeds give the same run,
// event for event.
//
// Times are lab time in picoseconds from 0. It reads no clock, does no I/O and starts no goroutine; progress
// and samples go to functions of the caller. Nothing is allocated per packet.
package sim
