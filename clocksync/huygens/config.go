package huygens

import (
	"errors"
	"fmt"
	"math"

	"weft/clocksync"
	"weft/units"
)

// Config is how nodes probe and what they make of it. It is the same at every node.
type Config struct {
	Degree  int        // neighbours of each node in the mesh
	Window  units.Time // after which the edges are solved
	Pairs   int        // coded probes per window, edge and direction
	Spacing units.Time // of the two packets of a pair
	Epsilon units.Time // change of a pair's gap from which on it is impure

	Share      float64    // of the points that a fit rests on, of those that are left
	FewShare   float64    // the same, of a few points: of those, fewer are pure
	Few        int        // points below which FewShare counts
	Least      int        // points per direction without which an edge is not fitted
	SlopeTrust float64    // how far a slope may lie from what the last windows say, once there are enough; relative
	MaxSkew    float64    // how far two clocks' rates may differ at all, relative
	Sigma      units.Time // least standard deviation of an edge: no weight is larger

	Coordinators int // nodes that solve, from the reference on: at most 2
	// Memory is how many windows a slope has to be known for before it is trusted.
	Memory int
	// StepLimit is the change that makes a clock step, instead of being slewed into over the next window.
	StepLimit units.Time
	// StepAlarm is the change of the hardware clock against the monotonic one that is taken for a step of it; 0: none is. One
	// oscillator drives both, so that nothing else changes them.
	StepAlarm      units.Time
	AsymmetryBound units.Time // see ptp.Config
}

// maxParts bounds the messages of one report.
const maxParts = 64

// Default returns what the design proposes, for a window of 20 ms of lab time: ten neighbours, 500 pairs 200 ns
// apart, fits that rest on a tenth of the points, slopes within 50 ppb of what the last windows say.
func Default(s clocksync.Setup) Config {
	skew := s.Skew
	if skew <= 0 {
		skew = 100e-6
	}
	epsilon := max(50*units.Nanosecond, 4*s.Jitter, 4*s.Quantum/3) // a gap changes by less than a quantum
	return Config{
		Degree: 10, Window: 20 * units.Millisecond, Pairs: 500,
		// The gap has to be longer than what the filter can see, and short, so that the pair meets one state of a queue:
		// at 90 % load in bursts, 1 us leaves a quarter of the pairs that 200 ns does.
		Spacing: max(200*units.Nanosecond, 3*epsilon), Epsilon: epsilon,
		Share: 0.1, FewShare: 0.02, Few: 100, Least: 20,
		SlopeTrust: 50e-9, MaxSkew: min(1e-3, 2.2*skew), Sigma: units.Nanosecond / 2,
		Coordinators: 2, Memory: 4,
		StepLimit: 10 * units.Microsecond, StepAlarm: units.Nanosecond,
	}
}

// Check returns everything that is wrong with a configuration, joined.
func (c *Config) Check(s clocksync.Setup) error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(s.Nodes < 2 || s.Nodes > 1<<15 || s.Self < 0 || int(s.Self) >= s.Nodes || s.Reference < 0 || int(s.Reference) >= s.Nodes,
		"huygens: node %d of %d nodes with reference %d; there must be 2 to 32768", s.Self, s.Nodes, s.Reference)
	refuse(c.Degree < 1 || c.Degree > maxParts*perReport,
		"huygens: degree %d of the mesh is not between 1 and %d", c.Degree, maxParts*perReport)
	refuse(c.Pairs < 1 || c.Pairs > 1<<16 || c.Window <= 0 || c.Window > 100*units.Second,
		"huygens: %d pairs in a window of %v: at most 65536 in 100 s", c.Pairs, c.Window)
	apart := c.Window / units.Time(max(1, c.Pairs))
	refuse(c.Spacing < 0 || c.Spacing > maxApart/4 || 2*c.Spacing >= apart,
		"huygens: pairs of spacing %v do not fit into the %v from one to the next", c.Spacing, apart)
	refuse(c.Epsilon <= 0 || c.Sigma <= 0,
		"huygens: filter of %v and deviation of %v must be above 0", c.Epsilon, c.Sigma)
	refuse(!(c.Share > 0 && c.Share <= 1) || !(c.FewShare > 0 && c.FewShare <= 1) || c.Few < 0 || c.Least < 2,
		"huygens: a fit on %v or %v of the points, and at least %d of them", c.Share, c.FewShare, c.Least)
	refuse(!(c.SlopeTrust > 0) || !(c.MaxSkew > 0 && c.MaxSkew <= 0.002),
		"huygens: slopes within %v of the last, at most %v (0.002)", c.SlopeTrust, c.MaxSkew)
	refuse(c.Coordinators < 1 || c.Coordinators > 2 || c.Memory < 4,
		"huygens: %d coordinators (1 or 2), memory of %d windows (4 or more)", c.Coordinators, c.Memory)
	refuse(c.StepLimit < 0 || c.StepAlarm < 0 || c.AsymmetryBound < 0,
		"huygens: a limit is negative")
	return errors.Join(errs...)
}

// shares returns how many of n points a fit rests on: few where there are queues, since few points met none, and many where the
// noise of stamps is all there is. Few are as many as bring that noise down to fine.
func (c *Config) shares(n int, jitter units.Time) (few, many int) {
	s := c.Share
	if n < c.Few {
		s = c.FewShare
	}
	many = max(1, min(n, int(s*float64(n))))
	noise := float64(jitter) / float64(fine)
	return max(1, min(many, int(math.Ceil(max(4, min(float64(n), noise*noise)))))), many
}

// fine is a noise of an edge that is small enough: the mesh makes less of it.
const fine = 2 * units.Nanosecond

// Parts of a window, after its end: probes are still on their way, then reports are.
const (
	reportAfter = 16 // a 16th of the window
	solveAfter  = 6  // a 6th
)
