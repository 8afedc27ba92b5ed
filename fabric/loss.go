package fabric

import (
	"fmt"
	"math"

	"weft/internal/splitmix"
	"weft/units"
)

// linkErrors is how a link corrupts packets: each packet with one probability, and each of its bits
// with another, independently. The far end discards a corrupted packet (frame check sequence). It
// is also how the link delivers the others late and twice.
type linkErrors struct {
	packet float64 // logarithm of the probability that a packet is spared as a whole
	bit    float64 // the same for one bit
	random uint64  // state of the draws, independent of those for marking

	loss, bitErrors float64 // the probabilities, see PortConfig
	disorder        Disorder
	// shuffle is the state of the draws for disorder. They are made at the far end, which may be in
	// another process than the draws of random.
	shuffle uint64
}

// newLinkErrors returns nil for a link without errors.
func newLinkErrors(loss, bitErrors float64, d Disorder, seed uint64) *linkErrors {
	if loss == 0 && bitErrors == 0 && d == (Disorder{}) {
		return nil
	}
	l := &linkErrors{
		packet: math.Log1p(-loss), bit: math.Log1p(-bitErrors), random: splitmix.Mix(^seed),
		loss: loss, bitErrors: bitErrors, disorder: d,
	}
	if l.shuffle = l.random; d != (Disorder{}) {
		l.random = splitmix.Mix(l.random)
	}
	return l
}

// probability returns the probability that a packet is corrupted: 1 - (1-loss)(1-bitErrors)^bits.
func (l *linkErrors) probability(size units.Bytes) float64 {
	spared := l.packet
	if l.bit != 0 {
		spared += float64(l.bit * float64(8*size))
	}
	return -math.Expm1(spared)
}

// corrupts draws whether a packet is corrupted.
func (l *linkErrors) corrupts(size units.Bytes) bool {
	return (l.packet != 0 || l.bit != 0) && draw(&l.random) < l.probability(size)
}

// step returns corrupted or disordered for a packet of this size, or undecided if the link does
// nothing to it.
func (l *linkErrors) step(size units.Bytes) step {
	switch {
	case l.corrupts(size):
		return corrupted
	case l.disorder != Disorder{}:
		return disordered
	}
	return undecided
}

// checkErrors returns an error unless the probabilities of a link are in [0, 1].
func checkErrors(loss, bitErrors float64) error {
	if !(loss >= 0 && loss <= 1) || !(bitErrors >= 0 && bitErrors <= 1) {
		return fmt.Errorf("loss of %g and bit errors of %g; expected probabilities in [0, 1]", loss, bitErrors)
	}
	return nil
}
