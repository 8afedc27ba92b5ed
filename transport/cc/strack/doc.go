// Package strack is STrack's congestion control (section 3.2: Algorithms 1, 2 and 4, Table 1): one window over all
// paths of a connection, steered by the queueing delay and the mark of each acknowledged packet.
//
// In come acknowledgements with round trips, which count packets of every size as if they were full ones, and the sum of
// what arrived; out goes a window in bytes. Windows are counted in packets on the wire, delays in picoseconds. Which path a
// packet takes is package path's business, what is lost the endpoint's: as printed, a loss alone moves no window.
//
// Where the paper leaves a choice the comment at the line names it; docs/adr/0040 lists all of them.
package strack
