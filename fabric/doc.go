// Package fabric is the modelled network: host NICs, links and switches with byte-limited queues or shared
// memory, ECN, PFC, in-band telemetry and ECMP, as one pure machine driven by an event queue. Lines may corrupt packets,
// or deliver them late or twice, and links may fail and change during a run. The simulator and the real-time fabric
// process run this same code.
//
// Times are lab time in picoseconds. It reads no clock, does no I/O and never drops a packet silently:
// what was injected, or doubled by a line, was delivered, dropped by a rule of the model, lost on a line, cut off by a
// link that went down, or is still in a queue or on a link.
package fabric
