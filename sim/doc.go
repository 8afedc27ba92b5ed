// Package sim runs hosts over the modelled network in virtual time: it is the discrete-event
// engine.
//
//	Host.Transmit ──► fabric.Packet ──► fabric.Network ──► Host.Receive
//	      ▲                 events: arrivals, free NICs          │
//	      └──────── settle: pull a packet, arm the timer ◄───────┘
//
// It takes a fabric.Config and one Host for each of its hosts. It pulls a packet from a host
// whenever the host's NIC is free, hands over what arrives, and fires the hosts' timers. Out come
// the accessors of Sim, and calls of the functions in Options: samples, ticks, progress.
//
// The one idea: the engine decides nothing. The order of events is the event queue's, queues are
// the fabric's, and what to send is the hosts' business. So the same network, hosts and seeds give
// the same run, event for event, in one piece or in partitions that work concurrently
// (partitions.go).
//
// Invariants. Times are lab time in picoseconds from 0. The package reads no clock, does no I/O and
// starts no goroutine. Once storage has grown, nothing is allocated per packet. A run ends with an
// error if it makes no progress (StallError), and always checks that the network has accounted for
// every packet.
//
// Start reading at Sim.run and settle in run.go, then inject and Deliver in packet.go.
package sim
