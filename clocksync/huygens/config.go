package huygens

import (
	"errors"
	"fmt"
	"math"

	"weft/clocksync"
	"weft/params"
	"weft/units"
)

// Config configures an agent. It is the same at every node. Params.Config makes it.
type Config struct {
	Params

	FewShare  float64    // Share for fewer than Few points, since fewer of them are pure
	Few       int        // number of points below which FewShare applies
	MinPoints int        // minimum number of points per direction for a fit
	MaxSkew   float64    // largest difference of two clocks' rates; relative
	Sigma     units.Time // smallest standard deviation of an edge: it bounds weights
	Memory    int        // number of windows after which the slope of an edge is trusted
	// StepAlarm is the change of the hardware clock against the monotonic clock that counts as a
	// step of the hardware clock; 0: none does. One oscillator drives both.
	StepAlarm units.Time
}

// maxParts bounds the messages of one report.
const maxParts = 64

// Check returns everything that is wrong with a configuration, joined. Keys declares the ranges of
// Params; the rules here are about several values, and about those that no lab sets.
func (c *Config) Check(s clocksync.Setup) error {
	if err := params.Check("huygens", &c.Params); err != nil {
		return err
	}
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(s.Nodes < 2 || s.Nodes > 1<<15 || s.Self < 0 || int(s.Self) >= s.Nodes || s.Reference < 0 ||
		int(s.Reference) >= s.Nodes,
		"huygens: node %d of %d nodes with reference %d; there must be 2 to 32768", s.Self, s.Nodes, s.Reference)
	refuse(c.Window == 0 || c.Pairs == 0 || c.Epsilon == 0 || c.Sigma <= 0 || c.StepAlarm < 0,
		"huygens: window, pairs, filter or deviation is not set, or the step alarm %v is negative", c.StepAlarm)
	apart := c.Window / units.Time(max(1, c.Pairs))
	refuse(c.Spacing > maxApart/4 || 2*c.Spacing >= apart,
		"huygens: pairs of spacing %v do not fit into the %v from one to the next", c.Spacing, apart)
	refuse(!(c.FewShare > 0 && c.FewShare <= 1) || c.Few < 0 || c.MinPoints < 2,
		"huygens: a fit on %v of few points, and at least %d of them", c.FewShare, c.MinPoints)
	refuse(c.SlopeTrust == 0 || !(c.MaxSkew > 0 && c.MaxSkew <= 0.002) || c.Memory < 4,
		"huygens: slopes within %v of the last (above 0), at most %v (0.002); memory of %d windows (4 or more)",
		c.SlopeTrust, c.MaxSkew, c.Memory)
	return errors.Join(errs...)
}

// shares returns the numbers of points, out of n, that a fit uses under load (few) and on an idle
// path (many). With queues, few points met none; without, the noise of stamps averages out over
// many. few is large enough to reduce that noise to fine.
func (c *Config) shares(n int, jitter units.Time) (few, many int) {
	s := c.Share
	if n < c.Few {
		s = c.FewShare
	}
	many = max(1, min(n, int(s*float64(n))))
	noise := float64(jitter) / float64(fine)
	return max(1, min(many, int(math.Ceil(max(4, min(float64(n), noise*noise)))))), many
}

// fine is an acceptable noise of an edge: the mesh averages it further. Ours.
const fine = 2 * units.Nanosecond

// Delays after the end of a window, as divisors of the window: probes are still in flight, then
// reports are. Ours.
const (
	reportAfter = 16
	solveAfter  = 6
)
