package measure

import (
	"fmt"
	"math"
)

// share is how many of some packets something befell that befalls packets by chance, and how many it should have: what examinations
// found is added up, since trying again until chance agrees would show nothing.
type share struct {
	what     string  // the property
	hits, of int     // packets
	expected float64 // of the hits
	low      float64 // the same, with what is known of each packet in favour of few
	high     float64 // and in favour of many
	variance float64 // of the hits
	points   float64 // by how much the share may be off besides, in 1
}

// add counts a packet, which has a probability between low and high.
func (s *share) add(hit bool, low, p, high float64) {
	if s.of++; hit {
		s.hits++
	}
	s.low += low
	s.expected += p
	s.high += high
	s.variance += p * (1 - p)
}

// pool adds what another examination counted.
func (s *share) pool(o share) {
	s.hits += o.hits
	s.of += o.of
	s.low += o.low
	s.expected += o.expected
	s.high += o.high
	s.variance += o.variance
}

// bounds are the least and the greatest share that is as asked: within three standard deviations and a packet.
func (s *share) bounds() (low, high float64) {
	n := float64(s.of)
	slack := shareSigmas*math.Sqrt(s.variance) + 1
	return max(0, (s.low-slack)/n-s.points), min(1, (s.high+slack)/n+s.points)
}

// finding is the share as a property.
func (s *share) finding() Finding {
	low, high := s.bounds()
	n := float64(s.of)
	got := float64(s.hits) / n
	return Finding{
		s.what, fmt.Sprintf("%.3g %% (%.3g to %.3g)", 100*s.expected/n, 100*low, 100*high),
		fmt.Sprintf("%.3g %% of %d", 100*got, s.of), got >= low && got <= high,
	}
}
