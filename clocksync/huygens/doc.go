// Package huygens implements Huygens (Geng et al., NSDI 2018) as a pure state machine. Nodes probe
// each other over a sparse mesh. The loops of the mesh show errors that a single pair of nodes
// cannot see, because the differences of the clocks around a loop must add up to 0.
//
// An Agent is one node's clocksync.Protocol. In every window of time,
//
//  1. neighbours send each other coded probes: pairs of packets with a small gap. A pair whose gap
//     changed on the path met a queue, and is dropped (coded.go);
//  2. one end of each edge, its owner, bounds the difference of the two clocks by the probes of
//     both directions and fits the line in the middle: a support vector machine in closed form
//     (edge.go, fit.go);
//  3. every node reports its edges to the coordinators. These make the edges agree around loops by
//     weighted least squares, drop outliers, and send each node its error (mesh.go, coordinator.go,
//     solve.go, normal.go);
//  4. each node follows the line through its last results, without steps (track.go, window.go).
//
// The first coordinator is the reference: its clock is the anchor that the others follow. If it is
// silent, the second coordinator leads with its own clock; such a node and its followers are lone,
// and add to their bounds how far they may be from the reference's time (adrift). A node joins by
// asking the coordinators for the time (window.go).
//
// Times are picoseconds of hardware clocks, or of synchronized time; rates are relative. The
// minimum delay of a path is assumed to be the same in both directions; half of any difference is
// an error that no measurement shows. Messages are in wire.go, keys of the lab file in params.go.
package huygens
