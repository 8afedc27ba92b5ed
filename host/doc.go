// Package host is one host of a lab as a pure state machine: its transport endpoint, the programs
// of its ranks, and its clock. A driver owns time and packets: the simulator and the node agent run
// this same code.
//
//	Plan ──► Host ◄── Receive, Advance(now)
//	          │
//	          └──► Transmit, Deadline; in the end Flows, Dones, Counters
//
// In come a Plan, packets and instants. Out come packets, a Flow for every message, and a Done for
// each repetition with the verdict on its data. A driver does, for every packet that arrives,
//
//	pl, err := h.Receive(now, &in) // err: refused, and counted by the endpoint
//	copy(h.Place(pl), payload)     // with a Memory that holds bytes; nil otherwise
//	h.Placed(now, pl)              // likewise
//
// After any such call it drains Transmit (with Payload for each packet, if bytes are moved) as the
// host's NIC takes packets, then arms its timer for Deadline and calls Advance when the timer
// fires.
//
// A host runs the items of its plan. Each repetition is the program of its rank: a send is handed
// to the transport as soon as the ops before it are complete; a message that arrives before its
// receive may start, even from a later repetition, is staged. The next repetition begins when this
// host's part of the last one is done, whatever the other hosts do.
//
// The one idea: the tag of a message names the op, repetition and item that it belongs to
// (see use). A message that does not match the plan is an error of the run, never part of a result.
//
// Times are lab time in picoseconds, sizes are bytes. The package reads no clock and does no I/O.
//
// Start reading at plan.go, then Host.Receive in host.go, startItems and runOps in run.go, and
// inbound.go. flow.go announces flows to the receiver of a congestion control; lane.go spreads
// messages over connections; halt.go, clock.go and background.go are what their names say.
package host
