// Package ccm implements the source host of coordinated congestion management
// (draft-lyu-rtgwg-coordinated-cm, section 6.4): it wraps a congestion control and withholds
// congestion signals from it while switches can still relieve congestion by choosing another path.
//
//	switch notices ──► Sender: is the CC indicator set?
//	                     yes: marks, delays and CNPs pass ──► DCQCN, Swift or PC4
//	                     no:  they are removed from ACKs  ──► sees an uncongested path
//
// In come the inputs of any congestion control and the notices of switches. Out come the window and
// rate of the inner congestion control, and whether packets carry the CC indicator. The indicator
// says that the flow causes incast, which no other path relieves. Losses always pass. The switches'
// part is in package fabric.
//
// The draft calls a path light if it is not congested; the comments say uncongested. It leaves open
// what happens if a notice is lost, and contradicts itself about flows without an uncongested path:
// see Params.Timeout and Sender.active.
//
// Times are lab time, sizes bytes on the wire. Start reading at Sender.OnNotice and Sender.OnAck.
package ccm
