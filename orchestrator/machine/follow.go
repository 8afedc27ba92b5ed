package machine

import (
	"math"
	"slices"

	"weft/clocksync/labtime"
)

// clockSample is a measurement of an agent's clock.
type clockSample struct {
	at     int64 // CLOCK_MONOTONIC of this machine in the middle of the measurement, in nanoseconds
	offset int64 // the agent's CLOCK_MONOTONIC minus this machine's
	trip   int64 // the round trip of the measurement: its error is at most half of that
}

const (
	// clockSamples is the number of measurements of a clock before a run, and the number of the
	// latest that count: as in NTP's clock filter (RFC 5905, section 10).
	clockSamples = 8
	// clockAnchors is the number of old measurements that give the rate of a clock. Ours: with one
	// for each clockSamples beats, those of a minute.
	clockAnchors = 15
	// unknownRate is the largest difference of rates of two clocks before it was measured, and
	// knownRate its error afterwards. Ours: the 500 ppm that adjtimex allows is for clocks that are
	// being set, and crystals differ by up to 100 ppm.
	unknownRate = 200e-6
	knownRate   = 5e-6
	// clockStep is the least change between two measurements, in nanoseconds beyond their errors,
	// that counts as a step of a clock. Ours: it takes the slack of a link at dilation 1000.
	clockStep = 1e6
	// slewTime is the time in which lab time of a machine is brought into line, in nanoseconds, and
	// maxSlew the largest change of its rate for that. Ours.
	slewTime = 2 * int64(beat)
	maxSlew  = 2e-3
)

// follower estimates the clock of a machine from measurements, and keeps lab time there in line
// with that of this machine. Only a step of the clock makes it late; the caller holds a lock.
type follower struct {
	latest  []clockSample
	anchors []clockSample // one in clockSamples, that with the shortest round trip
	seen    int
	stepped int64 // sum of the steps, in nanoseconds

	dilation float64
	started  bool
	t0       labtime.Scale // lab time in this machine's clock
	used     labtime.Scale // lab time in the agent's clock
}

// add takes a measurement.
func (f *follower) add(s clockSample) {
	if len(f.latest) > 0 {
		last := f.latest[len(f.latest)-1]
		expected, bound := f.offset(s.at)
		away := s.offset - expected
		if off := float64(abs(away)-s.trip/2) - bound - unknownRate*float64(s.at-last.at); off > clockStep {
			f.stepped += away
			f.latest, f.anchors, f.seen = nil, nil, 0
		}
	}
	f.latest = append(f.latest, s)
	if extra := len(f.latest) - clockSamples; extra > 0 {
		f.latest = slices.Delete(f.latest, 0, extra)
	}
	if f.seen++; f.seen%clockSamples == 0 {
		best := slices.MinFunc(f.latest, func(a, b clockSample) int { return int(a.trip - b.trip) })
		f.anchors = append(f.anchors, best)
		if extra := len(f.anchors) - clockAnchors; extra > 0 {
			f.anchors = slices.Delete(f.anchors, 0, extra)
		}
	}
}

func abs(x int64) int64 { return max(x, -x) }

// rate returns by how much the agent's clock is faster than this machine's, and a bound on the
// error.
func (f *follower) rate() (rate, bound float64) {
	if len(f.anchors) < 2 {
		return 0, unknownRate
	}
	a, b := f.anchors[0], f.anchors[len(f.anchors)-1]
	span := float64(b.at - a.at)
	bound = float64(a.trip+b.trip) / 2 / span
	if span <= 0 || bound > unknownRate {
		return 0, unknownRate
	}
	return float64(b.offset-a.offset) / span, bound + knownRate
}

// offset returns the agent's clock minus this machine's at an instant, and a bound on the error, in
// nanoseconds. Of the latest measurements that with the least error counts, which grows with age.
func (f *follower) offset(at int64) (offset int64, bound float64) {
	rate, off := f.rate()
	bound = math.Inf(1)
	for _, s := range f.latest {
		age := float64(at - s.at)
		if e := float64(s.trip)/2 + off*math.Abs(age); e < bound {
			bound, offset = e, s.offset+int64(rate*age)
		}
	}
	return offset, bound
}

// start begins lab time at t0 of this machine's clock, and returns the same in the agent's. All
// processes of a machine get the same value.
func (f *follower) start(t0 int64) int64 {
	if !f.started {
		offset, _ := f.offset(t0)
		f.started = true
		f.t0 = labtime.Scale{T0: t0, Dilation: f.dilation}
		f.used = labtime.Scale{T0: t0 + offset, Dilation: f.dilation}
	}
	return f.used.T0 + t0 - f.t0.T0
}

// steer returns the scale with which the agent's machine agrees with lab time slewTime after now.
// ok is false before lab time has begun.
func (f *follower) steer(now int64) (s labtime.Scale, ok bool) {
	if f.dilation == 0 || !f.started || now <= f.t0.T0 {
		return s, false
	}
	offset, _ := f.offset(now)
	rate, _ := f.rate()
	there := now + offset
	done := float64(there-f.used.T0) / f.used.Dilation // lab time, in nanoseconds
	target := float64(now+slewTime-f.t0.T0) / f.t0.Dilation
	most := f.t0.Dilation * (1 + maxSlew)
	s.Dilation = most // lab time there is ahead by more than slewTime
	if target > done {
		s.Dilation = float64(slewTime) * (1 + rate) / (target - done)
	}
	s.Dilation = min(max(s.Dilation, f.t0.Dilation*(1-maxSlew)), most)
	s.T0 = there - int64(done*s.Dilation)
	f.used = s
	return s, true
}
