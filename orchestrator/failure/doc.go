// Package failure explains why a run failed, where faults of its lab can be why: which faults stood in the way of which flows, and
// what could be set for the run to survive them, by the lab's own keys. It is pure.
//
// Explain looks at the network as faults left it when the run ended, and when a connection that gave up made its last attempt
// (cause.go), and puts what it finds into sentences (advice.go).
package failure
