package measure

import (
	"fmt"
	"math"
)

// share counts packets that met a random event, such as a loss, against the expected number.
// Examinations pool their counts: repeating a random trial until it passes would prove nothing.
type share struct {
	what     string  // the property
	hits, of int     // packets with the event, and all packets
	expected float64 // expected hits
	low      float64 // expected hits with each packet's lowest probability
	high     float64 // expected hits with each packet's highest probability
	variance float64 // of the hits
	points   float64 // additional tolerance of the share, 0 to 1
}

// add counts a packet whose probability of the event is p, and certainly between low and high.
func (s *share) add(hit bool, low, p, high float64) {
	if s.of++; hit {
		s.hits++
	}
	s.low += low
	s.expected += p
	s.high += high
	s.variance += p * (1 - p)
}

// pool adds the counts of another examination.
func (s *share) pool(o share) {
	s.hits += o.hits
	s.of += o.of
	s.low += o.low
	s.expected += o.expected
	s.high += o.high
	s.variance += o.variance
}

// bounds returns the smallest and the largest acceptable share: within three standard deviations
// and one packet.
func (s *share) bounds() (low, high float64) {
	n := float64(s.of)
	slack := shareSigmas*math.Sqrt(s.variance) + 1
	return max(0, (s.low-slack)/n-s.points), min(1, (s.high+slack)/n+s.points)
}

// finding returns the share as a Finding.
func (s *share) finding() Finding {
	low, high := s.bounds()
	n := float64(s.of)
	got := float64(s.hits) / n
	return Finding{
		s.what, fmt.Sprintf("%.3g %% (%.3g to %.3g)", 100*s.expected/n, 100*low, 100*high),
		fmt.Sprintf("%.3g %% of %d", 100*got, s.of), got >= low && got <= high,
	}
}
