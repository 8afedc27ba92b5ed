// Package uec implements the congestion control of Ultra Ethernet (Ultra Ethernet Specification
// 1.0, section 3.6.13, "UET congestion control"): NSCC at the sender, RCCC at the receiver, or
// both.
//
// NSCC (network signal-based) keeps a window. Each acknowledgement falls into one of four quadrants
// of its queueing delay and its mark:
//
//	             delay < target                       delay >= target
//	not marked   proportional increase, or fast       fair increase
//	             increase after a window without
//	             queueing
//	marked       nothing: another path will do        multiplicative decrease
//
// The increases add up and are applied every few packets (fulfill adjustment), with a small
// addition for fairness once per round trip. When much less arrives than the window allows, because
// packets were trimmed or the delay is far above the target, the window becomes what has arrived in
// the last round trip (quick adapt).
//
// RCCC (receiver credit-based) has no window: receivers grant credit, at the rate of their link.
// transport/credit.go has the credits; here are its parameters.
//
// The source of rules and defaults is the reference simulator, ultraethernet/uet-htsim, of which
// the comments name files and symbols. Its NSCC follows STrack (package strack), whose Algorithm 4
// has the same quadrants; docs/uec.md lists the differences.
//
// In come acknowledgements and losses, out comes a window. It is between one packet and 1.5
// bandwidth-delay products. Start reading at Sender.OnAck.
package uec
