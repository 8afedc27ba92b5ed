// Package pc4 implements PC4, the receiver-assisted congestion control of Qi et al., "PC4:
// Precision Collective Communication Congestion Control for AI Cluster".
//
// The one idea: the receiver of a collective knows how many flows share its link. It sends each
// sender that flow's fair share, the base rate. A sender jumps to a new base rate at once, and
// otherwise adjusts its rate once per interval to hold the one-way queueing delay at a target.
//
//	       sender (Algorithm 2)                        receiver (Algorithm 1)
//	┌────────────────────────────────┐   data    ┌───────────────────────────────┐
//	│ base rate is new: jump to it   │ ────────► │ base rate = line / flows      │
//	│ else every adjust_interval:    │           │   (Table I, by collective)    │
//	│   delay = 0       rate + hai   │ ◄──────── │ one-way delay = arrival       │
//	│   delay < target  rate + ai    │    ACK:   │   - departure - baseline      │
//	│   delay ≥ target  rate cut, β  │ base rate,└───────────────────────────────┘
//	│ timeout: rate · (1 - max_mdf)  │ delay
//	└────────────────────────────────┘
//
// Sender implements cc.Controller and Receiver implements cc.Receiver; both receive the time and
// read no clock. In go what the topology knows (cc.Link), acknowledgements, losses and arriving
// data. Out come a window in bytes and a pacing rate, and for the receiver the feedback that an ACK
// carries. One-way delays need synchronized clocks; Params.Epsilon is the error they may have.
//
// What holds after every call: the rate is between 0.0001 packets per RTT (and 1 bit/s) and the
// line rate, the line rate wins if they conflict, and the window is at least one byte.
//
// Rates are bits per second, windows are packets of Link.MTU bytes, and the cost of a packet is its
// size on the wire. Comments cite the paper by section, algorithm line and table. Where the paper
// leaves something open, the comment says what was chosen; the measurements behind the choices are
// in docs/adr/0010 (pacing) and 0011 (defaults).
//
// Start reading at Sender.OnAck and Receiver.OnData.
package pc4
