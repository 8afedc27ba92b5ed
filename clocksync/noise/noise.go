// Package noise generates the errors of timestamps and of measured delays.
//
// Errors come from seeded generators: the same seed gives the same errors, one per call. Times are
// picoseconds. It is pure.
package noise

import (
	"fmt"
	"math"
	"math/rand/v2"

	"weft/internal/splitmix"
	"weft/units"
)

// Stamp describes how the stamp of a packet differs from the reading of the clock. The zero value
// is exact.
type Stamp struct {
	Jitter  units.Time // standard deviation of white Gaussian noise
	Quantum units.Time // resolution, to which stamps are rounded down; 0 or 1: picoseconds

	// Stalled is the fraction of sent packets that are stamped late, and Stall the mean of the
	// exponential time by which they are. Their delay looks too short: these are the points in
	// Huygens' forbidden zone.
	Stalled float64
	Stall   units.Time
}

// Check returns an error if a value is out of range.
func (s Stamp) Check() error {
	switch {
	case s.Jitter < 0 || s.Quantum < 0 || s.Stall < 0:
		return fmt.Errorf("noise: jitter %d, quantum %d, stall %d ps; none is below 0", s.Jitter, s.Quantum, s.Stall)
	case math.IsNaN(s.Stalled) || s.Stalled < 0 || s.Stalled > 1:
		return fmt.Errorf("noise: a share of %g of the packets is stamped late; expected 0 to 1", s.Stalled)
	}
	return nil
}

// Stamper generates stamps. It is not safe for concurrent use.
type Stamper struct {
	is   Stamp
	rand *rand.Rand
}

// NewStamper returns a generator of stamps.
func NewStamper(s Stamp, seed [2]uint64) *Stamper {
	return &Stamper{is: s, rand: rand.New(rand.NewPCG(seed[0], seed[1]))}
}

// Received returns the stamp of a packet that arrives when the clock shows hard.
func (s *Stamper) Received(hard units.Time) units.Time { return s.quantize(hard + s.white()) }

// Sent returns the stamp of a packet that leaves when the clock shows hard.
func (s *Stamper) Sent(hard units.Time) units.Time {
	hard += s.white()
	if s.is.Stalled > 0 && s.rand.Float64() < s.is.Stalled {
		hard += units.Time(s.rand.ExpFloat64() * float64(s.is.Stall))
	}
	return s.quantize(hard)
}

// white returns white Gaussian noise.
func (s *Stamper) white() units.Time {
	if s.is.Jitter == 0 {
		return 0
	}
	return units.Time(math.Round(s.rand.NormFloat64() * float64(s.is.Jitter)))
}

// quantize rounds t down to the resolution.
func (s *Stamper) quantize(t units.Time) units.Time {
	q := s.is.Quantum
	if q <= 1 {
		return t
	}
	r := t % q
	if r < 0 {
		r += q
	}
	return t - r
}

// Kind is a kind of distribution.
type Kind string

// Kinds of Delay.
const (
	Uniform     Kind = "uniform"     // from Low to High
	Normal      Kind = "normal"      // mean Low, standard deviation High
	Exponential Kind = "exponential" // Low plus an exponential time of mean High
)

// Delay is the distribution of an error that is added to measured one-way delays (PC4, section
// IV-F, Fig. 9). The zero value adds nothing.
type Delay struct {
	Kind      Kind
	Low, High units.Time
}

// Check returns an error if the distribution is invalid.
func (d Delay) Check() error {
	switch {
	case d.Kind == "":
		return nil
	case d.Kind == Uniform && d.Low > d.High:
		return fmt.Errorf("noise: uniform from %d to %d ps; expected the smaller one first", d.Low, d.High)
	case (d.Kind == Normal || d.Kind == Exponential) && d.High < 0:
		return fmt.Errorf("noise: %s with a scale of %d ps; expected at least 0", d.Kind, d.High)
	case d.Kind != Uniform && d.Kind != Normal && d.Kind != Exponential:
		return fmt.Errorf("noise: no distribution is called %q", d.Kind)
	}
	return nil
}

// Generator draws errors of delays. It is not safe for concurrent use.
type Generator struct {
	is   Delay
	rand *rand.Rand
}

// NewGenerator returns a generator of errors with distribution d.
func NewGenerator(d Delay, seed [2]uint64) *Generator {
	return &Generator{is: d, rand: rand.New(rand.NewPCG(seed[0], seed[1]))}
}

// Next returns the next error.
func (g *Generator) Next() units.Time {
	switch g.is.Kind {
	case Uniform:
		return g.is.Low + units.Time(g.rand.Int64N(int64(g.is.High-g.is.Low)+1))
	case Normal:
		return g.is.Low + units.Time(math.Round(g.rand.NormFloat64()*float64(g.is.High)))
	case Exponential:
		return g.is.Low + units.Time(math.Round(g.rand.ExpFloat64()*float64(g.is.High)))
	}
	return 0
}

// Seed returns the seed of a node's generator for one purpose, from the seed of the lab. Generators
// for different nodes and purposes are independent.
func Seed(lab uint64, node int, purpose string) [2]uint64 {
	h := uint64(0xcbf29ce484222325) // FNV-1a
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * 0x100000001b3
	}
	return [2]uint64{lab, splitmix.Mix(h + uint64(node-1)*splitmix.Gamma)}
}
