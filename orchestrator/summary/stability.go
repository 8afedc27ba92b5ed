package summary

import (
	"math"

	"weft/clocksync/metrics"
	"weft/clocksync/node"
	"weft/results/record"
	"weft/units"
)

// Averaging times are the sampling interval times powers of longer, as long as the measured span
// has more than minTaus of them.
const (
	longer  = 10
	minTaus = 4
)

// stability returns the stability of the hosts' clocks against the reference from an instant on:
// that of the worst host at each averaging time. It returns nil if there are too few samples or no
// host to measure. A host whose protocol was down in that time is left out, because nothing kept
// its clock. If stopped returns true, some hosts are left out.
func stability(
	all []node.Report, reference int, every, since units.Time, stopped func() bool,
) *record.Stability {
	clocks := atInterval(all, every)
	first, grid := 0, shortest(clocks)
	for first < grid && clocks[0].Samples[first].At < since {
		first++
	}
	if grid-first <= minTaus {
		return nil
	}
	span := func(h int) []node.Sample { return clocks[h].Samples[first:grid] }
	if wasDown(span(reference)) {
		return nil
	}
	tau0 := span(reference)[1].At - span(reference)[0].At
	s := &record.Stability{Classes: classes()}
	for h := range clocks {
		if h == reference || stopped() || wasDown(span(h)) {
			continue
		}
		s.Hosts++
		x := metrics.Series{X: make([]float64, grid-first), Tau0: tau0.Nanoseconds()}
		mean := 0.0
		for k, p := range span(h) {
			x.X[k] = (p.Error - span(reference)[k].Error).Nanoseconds()
			mean += x.X[k]
		}
		s.MaxTE = max(s.MaxTE, farthest(all, h, reference, since).Nanoseconds())
		s.Constant = max(s.Constant, math.Abs(mean)/float64(len(x.X)))
		widen(s, x, stopped)
	}
	if s.Hosts == 0 {
		return nil
	}
	return s
}

// widen includes a host's clock, in nanoseconds, in the worst of all.
func widen(s *record.Stability, x metrics.Series, stopped func() bool) {
	for i, m := 0, 1; minTaus*m < len(x.X) && !stopped(); i, m = i+1, m*longer {
		if i == len(s.At) {
			s.At = append(s.At, record.Averaged{TauUS: float64(m) * x.Tau0 / 1e3})
		}
		a := &s.At[i]
		a.ADEV = max(a.ADEV, x.OADEV(m))
		a.MDEV = max(a.MDEV, x.MDEV(m))
		a.TDEV = max(a.TDEV, x.TDEV(m))
		a.MTIE = max(a.MTIE, x.MTIE(m))
	}
}

// wasDown reports whether the protocol of a host was down at a sample.
func wasDown(samples []node.Sample) bool {
	for i := range samples {
		if samples[i].Down {
			return true
		}
	}
	return false
}

// classes returns the limits that reports show beside the measured values.
func classes() (of []record.Class) {
	for _, c := range metrics.Classes {
		of = append(of, record.Class{Name: c.Name, MaxTE: c.MaxTE.Nanoseconds(), Constant: c.Constant.Nanoseconds(),
			MTIE: c.MTIE.Nanoseconds(), TDEV: c.TDEV.Nanoseconds()})
	}
	return of
}
