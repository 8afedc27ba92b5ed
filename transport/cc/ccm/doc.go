// Package ccm is what source hosts do for coordinated congestion management (draft-lyu-rtgwg-coordinated-cm, section 6.4): it holds a congestion
// control back while switches can still do better by choosing another path.
//
// What comes in: what any congestion control hears, and the notifications of switches. What goes out: window and
// rate of the congestion control inside, and whether packets carry the CC indicator. Times are lab time, sizes
// bytes on the wire. Switches' part of it is in package fabric.
//
// The draft leaves open what happens when a notification is lost, and contradicts itself about flows for which no path is light:
// see Params.Timeout and Sender.OnNotice.
package ccm
