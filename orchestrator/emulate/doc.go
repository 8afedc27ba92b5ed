// Package emulate runs an experiment in real time: it starts a process for every host and one for the fabric
// (package namespace), hands each its part, starts lab time for all at one instant, watches them, and puts
// together what they bring back, with a verdict on how far it can be trusted.
//
// It also measures what this machine can carry (Calibrate) and chooses the dilation by that.
//
// What comes in is pure data; times are lab picoseconds unless a name says otherwise. Whatever happens (a
// process dies, nothing moves any more, the caller gives up) what was collected by then is returned beside
// the error, and no process is left.
package emulate
