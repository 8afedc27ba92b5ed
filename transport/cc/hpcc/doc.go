// Package hpcc is HPCC, Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Algorithm 1: every switch
// writes into a packet what its port has sent and holds (in-band telemetry), the receiver echoes it, and the sender computes
// from it how much is in flight on the busiest link and sets its window so that this is a little less than the link's
// bandwidth-delay product. Packets are paced at a window per base RTT.
//
// What the paper leaves open follows the authors' simulator, alibaba-edu/High-Precision-Congestion-Control,
// rdma-hw.cc: the first acknowledgement only stores telemetry, a window is never above the initial one, and
// maxStage is 0 ("5 in the paper's simulation section is a typo", issue 24). Left out of it: one window per hop
// (MULTI_RATE, off by default) and sampling (SAMPLE_FEEDBACK, off).
//
// Windows are bytes on the wire. The package reads no clock.
package hpcc
