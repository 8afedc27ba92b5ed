package run

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/results/expect"
	"weft/results/record"
)

// extremes are the names of what is the largest of samples of clocks, or the first of them from
// which on all are close.
var extremes = []string{"clock_error.max", "clock_reference.max", "clock_bound.max", "clock_stability.max",
	"clock_stability.0.mtie", "clock_converged"}

// Samples of clocks that are farther apart than the protocol's corrections, or few, have lower
// bounds of the largest errors and of the time to converge: no upper bound is met. Dense ones
// measure them, and percentiles are measured by both.
func TestSparseSamplesOfClocks(t *testing.T) {
	const ptp = "sync: ptp, preset: ideal, ptp: {interval: 1ms}, limit: 1s"
	for _, c := range []struct{ clocks, why string }{
		{ptp + ", sample: 100us, for: 60ms", ""},
		{ptp + ", sample: 1ms, for: 60ms", ""},
		{ptp + ", sample: 1001us, for: 60ms", "clocks are corrected every 1ms (clocks.ptp.interval)"},
		{ptp + ", sample: 9ms, for: 300ms", "clocks are corrected every 1ms (clocks.ptp.interval)"},
		{"sync: huygens, limit: 1s, huygens: {window: 2ms, pairs: 50}, sample: 2ms, for: 60ms", ""},
		{"sync: huygens, limit: 1s, huygens: {window: 2ms, pairs: 50}, sample: 3ms, for: 90ms",
			"clocks are corrected every 2ms (clocks.huygens.window)"},
		{"sync: none, limit: 1s, sample: 1ms, for: 19ms", ""},
		{"sync: none, limit: 1s, sample: 1ms, for: 18ms", "of 19 instants (clocks.sample is 1ms), and it takes 20"},
		{"sync: none, limit: 1s, sample: 5ms, for: 24ms", "of 5 instants (clocks.sample is 5ms), and it takes 20"},
	} {
		s := mustSimulate(t, star+"clocks: {"+c.clocks+"}\n")
		for _, name := range append(slices.Clone(extremes), "clock_error.p50", "clock_error.rms") {
			for line, upper := range map[string]bool{name + " <= 2s": true, name + " >= 0ns": false} {
				got := evaluate(t, s, line)
				if got.Unmeasured && !strings.Contains(got.Note, "lower bound") {
					continue // not measured at all: no bounds without a protocol
				}
				sparse := c.why != "" && upper && slices.Contains(extremes, name)
				if got.OK == sparse || sparse && !strings.Contains(got.Note, c.why) {
					t.Errorf("%s: %s: %+v", c.clocks, line, got)
				}
			}
		}
	}
}

// A sample of the start alone says nothing of the run.
func TestSampleOfTheStartAlone(t *testing.T) {
	for _, c := range []struct {
		clocks string
		valued bool
	}{{"sample: 5ms, for: 4.9ms", false}, {"sample: 5ms, for: 5ms", true}, {"sample: 10us, for: 4.9ms", true}} {
		s := mustSimulate(t, star+"clocks: {sync: none, preset: bad, limit: 1s, "+c.clocks+"}\n")
		for _, name := range []string{"clock_error.p50", "clock_error.max", "clock_error.p999", "clock_error.rms",
			"clock_reference.mean", "clock_reference.max", "clock_converged"} {
			got := evaluate(t, s, fmt.Sprintf("%s >= 0ns", name))
			if got.OK != c.valued || !c.valued && !strings.Contains(got.Note, "the only sample is that of the start") {
				t.Errorf("%s: %+v", c.clocks, got)
			}
		}
	}
}

// evaluate returns the result of an expectation for a run.
func evaluate(t *testing.T, s *record.Summary, line string) record.Expect {
	t.Helper()
	e, err := expect.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	return e.Eval(s, expect.Scope{})
}
