// Package strack implements the congestion control of STrack (section 3.2: Algorithms 1, 2 and 4,
// Table 1).
//
// The one idea: one window covers all paths of a connection, and reacts to each packet by the
// queueing delay and the ECN mark that it met. Together they tell when to
// increase, hold or decrease:
//
//	                delay < target          target to high      > high
//	not marked      + α(target - delay)     as marked, or hold  + β, per window acknowledged
//	marked          hold                    decrease            decrease, or what was achieved
//
// In come acknowledgements with their RTT, mark and size. They count packets of every size as full
// ones, and sum up the bytes that arrived (Algorithm 2). Out comes a window in bytes. It stays
// between one packet and MaxCWND bandwidth-delay products of the network. Windows are counted in
// packets on the wire, delays in picoseconds.
//
// Package path chooses the path of a packet, and the endpoint recovers losses: as printed, a loss
// alone does not change the window.
//
// Where the paper leaves a choice, the comment says which one was made; docs/adr/0040 lists all of
// them. The package reads no clock. Start reading at Sender.adjust.
package strack
