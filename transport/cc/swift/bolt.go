package swift

import "weft/units"

// bolt is the state of sending as Bolt's simulator does (bolt-l4-protocol.cc, SendDown), for
// Params.BoltCompat. The difference matters: in its known incast of 5000 flows the last flow takes
// 365 ms instead of 234 ms; the published 57.4 Gb/s for 2.5 GB are 348 ms.
//
// The simulator sends what fits into the window. When less than a packet of the window is left, it
// waits rtt/cwnd and then sends one more packet. The wait counts from the decision, not from the
// last packet, and it is not shortened when acknowledgements bring a larger window or a shorter
// RTT: after a burst that took 25 ms to drain, a window of a tenth of a packet waits a quarter of a
// second. Before the first acknowledgement there is no RTT, and no wait.
type bolt struct {
	until units.Time // the end of the wait
}

// boltSent handles a packet that has left. fits says that it was within the window, not the extra
// one.
func (s *Sender) boltSent(now units.Time, fits bool) {
	s.bolt.until = now
	if !fits || s.left() < s.packet && s.left() > 0 {
		s.boltWait(now)
	}
}

// boltDecide begins a wait if a change of the window or of the bytes in flight requires one. A wait
// in progress continues.
func (s *Sender) boltDecide(now units.Time) {
	if s.params.BoltCompat && now >= s.bolt.until && s.left() < s.packet && s.left() > 0 {
		s.boltWait(now)
	}
}

// boltWait begins a wait of rtt/cwnd, if an RTT is known.
func (s *Sender) boltWait(now units.Time) {
	if s.sampled {
		s.bolt.until = now + units.Time(min(float64(s.rtt)/s.cwnd, float64(maxWait)))
	}
}

// maxWait bounds a wait, whatever RTT was measured. It is our choice.
const maxWait = 1000 * units.Second

// left returns the unused part of the window in bytes.
func (s *Sender) left() float64 { return float64(s.cwnd*s.packet) - float64(s.inFlight) }

// NotBefore implements cc.Held. It has an effect only with Params.BoltCompat; otherwise the pacing
// rate applies.
func (s *Sender) NotBefore() units.Time { return s.bolt.until }
