// Package hpcc implements HPCC (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM
// 2019), Algorithm 1.
//
// The one idea: every switch writes into a packet what its port has sent and queued (in-band
// telemetry), and the receiver echoes it. From that the sender computes the bytes in flight on the
// busiest link, instead of probing for congestion. It sets its window so that this is η, a little
// less than the link's bandwidth-delay product.
//
//	U = queue / (B·T) + rate of the port / B          utilization of a hop
//	W = Wc · η/U + W_AI                               window
//	R = W / T                                         pacing rate
//
// In come acknowledgements with telemetry (cc.Ack.INT). Out come a window in bytes on the wire and
// a pacing rate. The window stays between the window of MinRate and the initial one.
//
// Where the paper leaves something open, this follows the authors' simulator,
// alibaba-edu/High-Precision-Congestion-Control, rdma-hw.cc: the first acknowledgement only stores
// telemetry, a window is never above the initial one, and maxStage is 0 ("5 in the paper's
// simulation section is a typo", issue 24). Two options of that simulator, off by default there,
// are left out: one window per hop (MULTI_RATE) and sampling (SAMPLE_FEEDBACK).
//
// The package reads no clock. Start reading at Sender.OnAck.
package hpcc
