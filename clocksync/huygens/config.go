package huygens

import (
	"errors"
	"fmt"
	"math"

	"weft/clocksync"
	"weft/params"
	"weft/units"
)

// Config is how nodes probe and what they make of it. It is the same at every node. Params.Config
// makes it.
type Config struct {
	Params

	FewShare float64    // Share of a few points, of which fewer are pure
	Few      int        // the number of points below which FewShare counts
	Least    int        // points per direction without which an edge is not fitted
	MaxSkew  float64    // the largest difference of two clocks' rates; relative
	Sigma    units.Time // the smallest standard deviation of an edge: it bounds weights
	Memory   int        // the number of windows that a slope must be known for before it is trusted
	// StepAlarm is the change of the hardware clock against the monotonic clock that counts as a
	// step of the hardware clock; 0: none does. One oscillator drives both.
	StepAlarm units.Time
}

// maxParts bounds the messages of one report.
const maxParts = 64

// Default returns the default configuration of a node.
func Default(s clocksync.Setup) Config {
	var p Params
	params.SetDefaults(&p)
	return p.Config(s)
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
