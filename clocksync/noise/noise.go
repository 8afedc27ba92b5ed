// Package noise makes the errors of time stamps and of measured delays, from seeded generators: the same seed gives the
// same errors, one for each that is asked for. Times are picoseconds. It is pure.
package noise

import (
	"fmt"
	"math"
	"math/rand/v2"

	"weft/internal/splitmix"
	"weft/units"
)

// Stamp is how a clock's reading becomes the stamp of a packet. The zero value is exact.
type Stamp struct {
	Jitter  units.Time // standard deviation of white Gaussian noise
	Quantum units.Time // stamps are rounded down to multiples of it; 0, 1: to picoseconds

	// A share of what is sent is stamped late, by an exponential time of mean Stall after it left, so that its way looks
	// too short: the points in Huygens' forbidden zone.
	Stalled float64
	Stall   units.Time
}

// Check reports values out of range.
func (s Stamp) Check() error {
	switch {
	case s.Jitter < 0 || s.Quantum < 0 || s.Stall < 0:
		return fmt.Errorf("noise: jitter %d, quantum %d, stall %d ps: none is negative", s.Jitter, s.Quantum, s.Stall)
	case math.IsNaN(s.Stalled) || s.Stalled < 0 || s.Stalled > 1:
		return fmt.Errorf("noise: a share of %g stalls", s.Stalled)
	}
	return nil
}

// Stamper stamps. Not safe for concurrent use.
type Stamper struct {
	is   Stamp
	rand *rand.Rand
}

// NewStamper returns a source of stamps.
func NewStamper(s Stamp, seed [2]uint64) *Stamper {
	return &Stamper{is: s, rand: rand.New(rand.NewPCG(seed[0], seed[1]))}
}

// Received stamps a packet that arrives when the clock shows hard.
func (s *Stamper) Received(hard units.Time) units.Time { return s.quantize(hard + s.white()) }

// Sent stamps a packet that leaves when the clock shows hard.
func (s *Stamper) Sent(hard units.Time) units.Time {
	hard += s.white()
	if s.is.Stalled > 0 && s.rand.Float64() < s.is.Stalled {
		hard += units.Time(s.rand.ExpFloat64() * float64(s.is.Stall))
	}
	return s.quantize(hard)
}

func (s *Stamper) white() units.Time {
	if s.is.Jitter == 0 {
		return 0
	}
	return units.Time(math.Round(s.rand.NormFloat64() * float64(s.is.Jitter)))
}

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

// Kind is the form of a distribution.
type Kind string

// Kinds of Delay.
const (
	Uniform     Kind = "uniform"     // from Low to High
	Normal      Kind = "normal"      // mean Low, standard deviation High
	Exponential Kind = "exponential" // Low, and an exponential time of mean High above
)

// Delay is an error that is added to measured one-way delays (PC4, section IV-F, Fig. 9). The zero value adds nothing.
type Delay struct {
	Kind      Kind
	Low, High units.Time
}

// Check reports a distribution that is none.
func (d Delay) Check() error {
	switch {
	case d.Kind == "":
		return nil
	case d.Kind == Uniform && d.Low > d.High:
		return fmt.Errorf("noise: uniform from %d to %d ps", d.Low, d.High)
	case (d.Kind == Normal || d.Kind == Exponential) && d.High < 0:
		return fmt.Errorf("noise: %s with a scale of %d ps", d.Kind, d.High)
	case d.Kind != Uniform && d.Kind != Normal && d.Kind != Exponential:
		return fmt.Errorf("noise: no distribution is called %q", d.Kind)
	}
	return nil
}

// Generator draws errors of delays. Not safe for concurrent use.
type Generator struct {
	is   Delay
	rand *rand.Rand
}

// NewGenerator returns a source of errors.
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

// Seed is the seed of a node's source of one kind of noise in a lab: sources of different purposes are independent.
func Seed(lab uint64, node int, purpose string) [2]uint64 {
	h := uint64(0xcbf29ce484222325) // FNV-1a
	for i := range len(purpose) {
		h = (h ^ uint64(purpose[i])) * 0x100000001b3
	}
	return [2]uint64{lab, splitmix.Mix(h + uint64(node-1)*splitmix.Gamma)}
}
