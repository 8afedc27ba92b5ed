// Package realtime runs the modelled network of package fabric in real time: the fabric process of an
// emulated lab. It holds one descriptor per host NIC (a TAP device or a packet socket on a veth), stamps
// every frame it reads with lab time, lets the model carry it, and writes it to its destination's descriptor
// when its lab time has come. Any IPv4 traffic is carried; ARP is answered by the fabric, which knows every
// address.
//
// In come frames, and over the control connection the network, the addresses and the moment of lab time 0.
// Out go frames, and a report: how late every delivery was, what the model did not order (frames that a
// kernel queue refused), processor time, and the model's own counters. Times are lab picoseconds unless a
// name ends in another unit. It never decides anything about the network: that is package fabric's.
package realtime
