// Package pc4 is PC4, the congestion control of Qi et al., "PC4: Precision Collective Communication
// Congestion Control for AI Cluster": Algorithm 1 at the receiver, Algorithm 2 at the sender, Table I between.
//
// A receiver knows how many flows arrive at it and tells each its share of the line, the base rate. A sender
// jumps to a base rate that is new and otherwise tunes its rate once per interval, so that the queueing delay
// of its packets stays close to a target. What the paper leaves open is resolved here, each at its line; the
// numbers behind the defaults are in docs/adr/0010 and 0011.
//
// Rates are bits per second and windows packets of Link.MTU bytes; a packet's cost is its size on the wire.
// The package reads no clock.
package pc4
