// Package emulate runs an experiment in real time. It starts a process for every host and one for
// the fabric (package namespace or docker), gives each its configuration, starts lab time for all
// at one instant, watches them, and combines their results, with a verdict on how far they can be
// trusted.
//
// Input is an Experiment, which package run compiles from a lab: pure data, with times in
// picoseconds of lab time unless a name says otherwise. Output is an Outcome, or a Deployment
// that programs use until it is closed.
//
// The one idea is dilation: lab time passes Dilation times more slowly than real time, so that one
// machine keeps up with a cluster. Calibrate measures how many packets per second this machine
// carries and how late it is at that load. AutoDilation chooses the smallest dilation at which
// lateness stays within what the verdict allows (docs/adr/0020, 0022).
//
// Invariants: whatever happens (a process dies, nothing moves any more, the caller cancels), the
// results so far are returned beside the error, and no process is left. Everything that comes from
// a node is checked before use (answers.go).
//
// Start with Run in run.go: configure, start, watch, collect, judge. A kernel datapath (carrier.go)
// and deployed labs (deployment.go) are variations of it.
package emulate
