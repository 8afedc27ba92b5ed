package swift

import "weft/units"

// How Bolt's simulator sends (bolt-l4-protocol.cc, SendDown), for Params.BoltCompat. It matters: in the incast of 5000 flows
// that it is known for the last flow takes 365 ms instead of 234; published are 57.4 Gb/s for 2.5 GB, 348 ms.
//
// It sends what fits into the window. When less than a packet is left of it, it waits for rtt/cwnd and then lets one more packet
// go. The wait counts from the decision, not from the last packet, and once begun lasts, even where acknowledgements
// bring a larger window or a shorter round trip: after a burst that took 25 ms to drain, a window of a tenth of
// a packet waits a quarter of a second. Before the first acknowledgement there is no rtt, and no wait.
type bolt struct {
	until units.Time // the end of the wait
}

// boltSent follows a packet that left; fits says that it was within the window, not the one more.
func (s *Sender) boltSent(now units.Time, fits bool) {
	s.bolt.until = now
	if !fits || s.left() < s.packet && s.left() > 0 {
		s.boltWait(now)
	}
}

// boltDecide decides anew when the window or what is in flight has changed, unless a wait is on.
func (s *Sender) boltDecide(now units.Time) {
	if s.params.BoltCompat && now >= s.bolt.until && s.left() < s.packet && s.left() > 0 {
		s.boltWait(now)
	}
}

func (s *Sender) boltWait(now units.Time) {
	if s.sampled {
		s.bolt.until = now + units.Time(min(float64(s.rtt)/s.cwnd, float64(maxWait)))
	}
}

// maxWait keeps a wait in range whatever a round trip was taken for; ours.
const maxWait = 1000 * units.Second

// left is what is left of the window, in bytes.
func (s *Sender) left() float64 { return float64(s.cwnd*s.packet) - float64(s.inFlight) }

// NotBefore returns when the next packet may leave. It is for Params.BoltCompat; otherwise the pacing rate rules.
func (s *Sender) NotBefore() units.Time { return s.bolt.until }
