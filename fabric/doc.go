// Package fabric is the modelled network: the NICs of hosts, links, and switches with byte-limited
// queues or shared memory, ECN, PFC, in-band telemetry, ECMP and other choices of a path. Links may
// corrupt packets, deliver them late or twice, and fail and change during a run. The simulator
// (package sim) and the process that carries packets in real time (package realtime) run this same
// code.
//
//	driver                          Network                               driver
//	Inject ──► NIC ──link──► port of a switch ──link──► ... ──link──► Sink.Deliver
//	Idle   ◄── NIC is free        queues, marks, pauses
//
// A Config describes the network as plain data. New builds a Network of it and adds the network's
// entities to an event queue. The driver injects packets, pops the queue, and passes what the
// network Owns to Fire. Out come Sink.Deliver, Sink.Idle, Counters and what Observers see. During a
// run Links changes the network, by hand or by a Change.
//
// The one idea: a hop costs one event, the arrival of a packet at the far end of its link. When a
// transmission starts, its arrival is known; the end of a transmission is worked out only when
// something looks at the port (see Network).
//
// Invariants. Times are lab time in picoseconds. The package reads no clock and does no I/O.
// Results are a function of the Config, the injected packets and their instants, however the
// network is split into partitions (see Partitions). No packet disappears silently: each packet
// that was injected, or copied by a link, was delivered, dropped by a rule of the model, lost on a
// link, cut off by a link that went down, or is in a queue or on a link; CheckConservation finds
// them all.
//
// Words used here: a port is one direction of a link, with the queue at its start. Its far end is
// the node that it leads to. A switch that accounts for its memory has a shared buffer or PFC; its
// ports are accounted. A switch that balances chooses a port for each packet. In the code o is a
// port (an output), and e a packet in one of its queues or on its link.
//
// Start reading at Network, then Inject, Fire, arrive and join in network.go, and port.go. Each
// mechanism is a file: buffer.go and pfc.go, routing.go, adaptive.go, ccm.go, loss.go and
// disorder.go, link.go (changes), split.go and exchange.go (partitions). docs/adr/0205 lists them.
package fabric
