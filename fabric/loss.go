package fabric

import (
	"fmt"
	"math"

	"weft/internal/splitmix"
	"weft/units"
)

// lineErrors is how a line corrupts packets: each with a probability of its own, and each of its bits with another
// one, independently. A corrupted packet is discarded at the far end (frame check sequence).
type lineErrors struct {
	packet float64 // logarithm of the probability that a packet is spared as a whole
	bit    float64 // and of that for one bit
	random uint64  // state of the draws, apart from those of marking

	loss, bitErrors float64 // as they were given
	disorder        Disorder
}

// newLineErrors returns nil when there are none.
func newLineErrors(loss, bitErrors float64, d Disorder, seed uint64) *lineErrors {
	if loss == 0 && bitErrors == 0 && d == (Disorder{}) {
		return nil
	}
	return &lineErrors{
		packet: math.Log1p(-loss), bit: math.Log1p(-bitErrors), random: splitmix.Mix(^seed), loss: loss, bitErrors: bitErrors, disorder: d,
	}
}

// probability that a packet is corrupted: 1 - (1-loss)(1-bitErrors)^bits.
func (l *lineErrors) probability(size units.Bytes) float64 {
	spared := l.packet
	if l.bit != 0 {
		spared += float64(l.bit * float64(8*size))
	}
	return -math.Expm1(spared)
}

// corrupts draws for a packet of so many bytes.
func (l *lineErrors) corrupts(size units.Bytes) bool {
	return (l.packet != 0 || l.bit != 0) && draw(&l.random) < l.probability(size)
}

// step returns corrupted or disordered for a packet of this size, or undecided when nothing happens to it.
func (l *lineErrors) step(size units.Bytes) step {
	switch {
	case l.corrupts(size):
		return corrupted
	case l.disorder != Disorder{}:
		return disordered
	}
	return undecided
}

// checkErrors returns what is wrong with the probabilities of a line.
func checkErrors(loss, bitErrors float64) error {
	if !(loss >= 0 && loss <= 1) || !(bitErrors >= 0 && bitErrors <= 1) {
		return fmt.Errorf("loss of %g and bit errors of %g", loss, bitErrors)
	}
	return nil
}
