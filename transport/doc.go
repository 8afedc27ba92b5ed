// Package transport is a host's transport endpoint as a pure machine: connections with sequence numbers,
// acknowledgements, retransmission and pacing, a congestion controller and a path choice for each.
//
// What is lost is recovered by go-back-N (gobackn.go, receive.go) or by selective repeat (selective.go: the states; arrive.go: the
// receiver; sack.go: the sender). scheme.go names every transport and what it is made of.
//
// It is told the time and handed packets; it returns packets, events and its next deadline. After any call
// in, drain Transmit and Poll, then read Deadline again. It does no I/O and is not safe for concurrent use.
package transport
