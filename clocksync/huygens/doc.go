// Package huygens is clock synchronization after Huygens (Geng et al., NSDI 2018) as a pure machine: nodes probe each
// other over a sparse mesh, and what a single pair cannot know is found from the loops of the mesh.
//
// An Agent is one node's clocksync.Protocol. Per window of time,
//
//  1. neighbours send each other coded probes: pairs of packets with a small gap. Pairs whose gap changed on the way met
//     a queue, and are dropped (coded.go);
//  2. one end of each edge of the mesh bounds the difference of the two clocks by the probes of both directions and fits
//     the line in the middle: a support vector machine in closed form (fit.go);
//  3. every node reports its edges to the coordinators, who make them agree around loops by weighted least squares, drop
//     those that do not fit, and tell each node how wrong it is (mesh.go, solve.go, coordinator.go);
//  4. each node goes on along the line through its last results, without a step (track.go).
//
// Times are picoseconds of hardware clocks, or of synchronized time. The least delay of a path is assumed to be the
// same both ways; half of any difference is an error that nobody sees.
package huygens
