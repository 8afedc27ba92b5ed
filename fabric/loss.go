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

	link Link // its Rate and Delay are the port's
	// shuffle is the state of the draws for late and duplicate packets. They are made at the far
	// end, which may be in another process than the draws of random.
	shuffle uint64
}

// newLinkErrors returns nil for a link without errors.
func newLinkErrors(k Link, seed uint64) *linkErrors {
	if !k.Loses() && !k.Disturbs() {
		return nil
	}
	l := &linkErrors{
		packet: math.Log1p(-k.Loss), bit: math.Log1p(-k.BitErrors), random: splitmix.Mix(^seed), link: k,
	}
	if l.shuffle = l.random; k.Disturbs() {
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
	case l.link.Disturbs():
		return disordered
	}
	return undecided
}

// Check returns an error if a property of the link is outside its range.
func (l *Link) Check() error {
	share := func(p float64) bool { return p >= 0 && p <= 1 }
	switch {
	case l.Rate <= 0 || l.Delay < 0:
		return fmt.Errorf("rate of %d b/s, delay of %d ps", l.Rate, l.Delay)
	case !share(l.Loss) || !share(l.BitErrors):
		return fmt.Errorf("loss of %g and bit errors of %g; expected probabilities in [0, 1]", l.Loss, l.BitErrors)
	case !share(l.Reorder) || !share(l.Duplicate), l.ReorderBy < 0 || l.Jitter < 0 || l.Jitter > maxJitter,
		l.Reorder > 0 && l.ReorderBy == 0:
		return fmt.Errorf("a share of %g packets arrives up to %d ps late, %g arrive twice, all have a jitter of %d ps",
			l.Reorder, l.ReorderBy, l.Duplicate, l.Jitter)
	}
	return nil
}
