// Package transport is a host's transport endpoint as a pure machine: connections with sequence
// numbers, acknowledgements, retransmission and pacing, and for each connection a congestion
// controller (package cc) and a choice of paths (package path).
//
// A driver tells it the time and hands it packets. It returns packets, events and its next deadline.
// After any call, drain Transmit and Poll, then read Deadline again. It does no I/O and is not safe
// for concurrent use.
//
//	Send ─► sender.queue ─► schedule ─► round ─► Transmit ─► sender.send          (one host)
//	Receive ─► receiveData ─► reply ─► Transmit ─► transmitReply                  (the other)
//	Receive ─► receiveAck ─► progress, controller ─► schedule                     (the one again)
//
// Start with endpoint.go, which has all of these calls. Then:
//
//	kinds.go, scheme.go     every transport by name, and the parts that it gives an endpoint
//	section.go, spec.go     the keys of a transport in a lab file; a connection that they come to
//	sender.go, receiver.go  the state of one half of a connection, for both kinds of recovery
//	receive.go              Endpoint.receiveData, receiveAck, and what a loss or a timeout does
//	gobackn.go              sequence numbers of go-back-N, at both ends
//	selective.go            sequence numbers of selective repeat, at both ends
//	selective_receiver.go   what data does to a receiver under selective repeat
//	selective_sender.go     what acknowledgements do to a sender under selective repeat
//	coordinate.go           notices of switches (CCM)
package transport
