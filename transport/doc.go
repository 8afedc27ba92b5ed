// Package transport is a host's transport endpoint as a pure state machine: connections with
// sequence numbers, acknowledgements, retransmission and pacing, and for each connection a
// congestion controller (package cc) and a choice of paths (package path).
//
// A driver tells it the time and hands it packets. It returns packets, events and its next
// deadline. After any call, drain Transmit and Poll, then read Deadline again. It does no I/O and
// is not safe for concurrent use. Times are lab time in picoseconds, sizes are bytes on the wire
// unless a name says payload.
//
// A connection carries messages in one direction. Its sending half is in the endpoint of Src,
// its receiving half in that of Dst; both are opened with the same Spec. What differs between
// transports (controller, receiver, paths, recovery) is a scheme; the endpoint has no code for a
// named transport.
//
//	Send ─► sender.queue ─► schedule ─► round ─► Transmit ─► sender.send          (one host)
//	Receive ─► receiveData ─► reply ─► Transmit ─► transmitReply                  (its peer)
//	Receive ─► receiveAck ─► progress, controller ─► schedule                     (the first)
//
// Invariants: packet numbers are 64 bits inside and 32 on the wire; data before the cumulative
// acknowledgement is never sent again; a packet that is rejected changes only Counters.BadPackets;
// a connection whose retries are exhausted ends in the event ConnFailed, never in silence.
//
// Start with endpoint.go, which has all of these calls. Then:
//
//	kinds.go, scheme.go     every transport by name, and the parts that it gives an endpoint
//	section.go, spec.go     the keys of a transport in a lab file; the connection that they set up
//	sender.go, receiver.go  the state of one half of a connection, for both kinds of recovery
//	receive.go              Endpoint.receiveData, receiveAck, and what a loss or a timeout does
//	gobackn.go              sequence numbers of go-back-N, at both ends
//	selective.go            sequence numbers of selective repeat, at both ends
//	selective_receiver.go   what data does to a receiver under selective repeat
//	selective_sender.go     what acknowledgements do to a sender under selective repeat
//	coordinate.go           notices of switches (CCM)
package transport
