// Package wasm runs a congestion control that is a WebAssembly module, and not built into Weft.
//
//	bytes ──Load──► Module ──NewSender──► Sender (a cc.Controller for one connection)
//	                  │  what it says about itself: parameters, marks, telemetry
//	                  └─ Params: the values of a lab, checked against that
//
// The one idea: a module is a pure function of a connection's state and an event. The state is a
// block of bytes that the Sender owns. For each event it is copied into an instance of the module,
// with the event beside it, and copied back afterwards. So one instance serves all connections of a
// thread, a connection costs its state and little more, and results depend neither on the number of
// threads nor on which connections share one. Load tries that (probe.go).
//
// These must hold. A module gets the time with each event and knows no other. It cannot hang: see
// package internal/sandbox, which also bounds its memory. What it returns is checked before the
// endpoint sees it. The first error ends the Sender: it keeps the error for Err, and does not call
// the module again.
//
// docs/module-abi.md has the interface in bytes, abi.go in constants, and package sdk/cc the other
// side of it in Go. Start reading at Load and Sender.event.
package wasm
