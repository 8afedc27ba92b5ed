// Package swift implements Swift (Kumar et al., "Swift: Delay is Simple and Effective for
// Congestion Control in the Datacenter", SIGCOMM 2020), Algorithm 1.
//
// The one idea: a window follows a target delay. Below the target it grows by AI packets per RTT;
// above, it shrinks in proportion to the excess, at most once per RTT. The target grows with the
// hops of the path, and with the inverse square root of the window, so that many flows can share a
// queue (section 3.5):
//
//	target = base + hops·ħ + α/√cwnd + β, where the last two terms stay within 0 and fs_range
//
// In come acknowledgements with their RTT, and losses. Out comes a window in bytes, and below one
// packet a pacing rate. The window stays between MinWindow and MaxWindow. It is counted in packets
// of Link.Packet bytes on the wire.
//
// Only the fabric window of the paper is implemented. A host in a lab adds no delay of its own, so
// the endpoint window would never be the smaller one. The delay is the RTT of the packet
// acknowledged last, without smoothing.
//
// The numbers, and what the paper leaves open, follow the Swift in Google's public simulator of
// Bolt (serhatarslan-hub/bolt_cc_ns3), whose authors wrote both. Params.BoltCompat reproduces that
// simulator where it differs from the paper, because its results have been published as Swift's.
//
// The package reads no clock. Start reading at Sender.OnAck, then target.
package swift
