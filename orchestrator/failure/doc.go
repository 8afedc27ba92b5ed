// Package failure explains the failure of a run by the faults of its lab. It is pure.
//
// Input: the experiment, its outcome and its error. Output: an error that also says which faults
// affected which flows, and with which settings, by the lab's own keys, the run would survive them.
//
// Explain is the entry point. It looks at the network at the end of the run, and at the time when a
// connection that gave up made its last attempt (cause.go: scenes and causes). It groups unfinished
// flows by cause, most certain causes first, and turns them into sentences (advice.go). Halted and
// Untold add hosts that were killed (halts.go).
//
// Invariant: an error that faults do not explain is returned as it is, and an explanation contains
// the original error.
package failure
