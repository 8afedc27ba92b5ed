// Package swift is Swift, Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter",
// SIGCOMM 2020: a window that follows a target delay (Algorithm 1), where the target grows with the length of the path
// and, so that many flows can share a queue, with the inverse root of the window (section 3.5).
//
// Only the fabric's window is here: a host in a lab adds no delay of its own, so the endpoint window would never be the
// smaller one. The delay is the round trip of the packet acknowledged last, without smoothing.
//
// The numbers and what the paper leaves open follow the Swift in Google's public simulator of Bolt
// (serhatarslan-hub/bolt_cc_ns3), whose authors wrote both. Params.BoltCompat also takes over where that simulator
// differs from the paper: its numbers have been published as Swift's.
//
// Windows are counted in packets of Link.Packet bytes on the wire. The package reads no clock.
package swift
