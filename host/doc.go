// Package host is one host of a lab as a pure machine: its transport endpoint and its ranks' programs,
// driven by whoever owns time and packets. The simulator and the node agent run this same code.
//
// In come a Plan, packets and instants; out come packets, flow records, and one Done per repetition with the
// verdict on its data. A driver does, for every packet that arrives,
//
//	pl, err := h.Receive(now, &in) // err: refused, and counted by the endpoint
//	copy(h.Place(pl), payload)     // with a Memory that holds bytes; nil otherwise
//	h.Placed(now, pl)              // likewise
//
// and after any call in it drains Transmit (with Payload for each packet, if bytes are moved) as its NIC
// takes packets, then arms its timer for Deadline and calls Advance when it fires.
//
// A host runs the items of its plan. Each repetition is the program of its rank: sends are handed to the
// transport as soon as the ops before them are complete; a message that comes before its receive may start,
// even from a repetition ahead, is staged. The next repetition begins when this host's part of the last one
// is done, whatever the other hosts do.
//
// A message's tag says which op of which repetition of which item it belongs to (see use); what does not
// match the plan is an error of the run, never part of a result.
//
// Times are lab time in picoseconds, sizes are bytes. It reads no clock and does no I/O.
package host
