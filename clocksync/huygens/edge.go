package huygens

import (
	"math"
	"slices"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// neighbour is the other end of an edge.
type neighbour struct {
	node  clocksync.Node
	owned bool // the edge is computed here

	pairAt   units.Time // when the next probe leaves, by the monotonic clock
	slot     units.Time // when the slot of its pair began
	second   bool       // it is the second of its pair
	sequence uint32
	queued   bool // it waits for the NIC

	spacing units.Time // of the two packets of a pair
	apart   dispersion // of the pairs of this window
	trial   trial

	sent, received pairs
	heard          units.Time // when a probe of it was taken last, by the monotonic clock
	epoch          uint8      // of its clock

	// Of an edge that is computed here.
	upper, lower []point
	slopes       servo.Regression
	fits         int // since the slope was forgotten
	halves       [rememberedHalves]units.Time
	nhalves      int
	shorter      units.Time // half of a round trip that was too short to be believed at once; 0: none
	last         fitState
	all          extremes // of this window's points, pure or not
	ours, theirs habit    // gap of the pairs that leave here, and there
}

// habit is the gap by which most pairs leave. The stamps of a pair that has it vouch for each other: one that was late by itself
// would have made the gap another one.
type habit struct {
	gap   units.Time
	votes int
}

// maxVotes bounds for how long a gap counts that is seen no longer.
const maxVotes = 16

// vouches tells whether a pair left by the usual gap, which it is a vote for or against (Boyer and Moore, MJRTY, 1991).
func (u *habit) vouches(gap, tolerance units.Time) bool {
	if d := gap - u.gap; d <= tolerance && d >= -tolerance {
		u.votes = min(u.votes+1, maxVotes)
		return u.votes > 1
	}
	if u.votes--; u.votes < 0 {
		*u = habit{gap, 1}
	}
	return false
}

// dispersion is what pairs came to on their way.
type dispersion struct {
	pairs   int
	gap     units.Time // the least when they arrived
	stretch units.Time // the least by which one was longer then than when it left
}

// trial is what pairs came to that were sent closer together than the others, where those were widened.
type trial struct{ windows, kept int }

const (
	trialEvery   = 16 // one of so many pairs is a trial
	trialWindows = 8  // after which trials are counted anew
	trialsKept   = 4  // of these, which have to keep their gap: more than stamps that were late make look so
)

// gap is how far apart the packets of a pair leave.
func (n *neighbour) gap(sequence uint32, cfg *Config) units.Time {
	if n.tries(sequence, cfg) {
		return n.narrower(cfg)
	}
	return n.spacing
}

// tries tells whether a pair is a trial.
func (n *neighbour) tries(sequence uint32, cfg *Config) bool {
	return n.spacing > cfg.Spacing && sequence%trialEvery == 0
}

// narrower is the gap of trials.
func (n *neighbour) narrower(cfg *Config) units.Time { return max(cfg.Spacing, n.spacing/2) }

// disperse notes what the other end tells of pairs that were sent to it.
func (n *neighbour) disperse(p *probe, cfg *Config) {
	for _, t := range p.received[:p.nrecv] {
		g := n.sent.find(t.sequence)
		if g == nil || g.told {
			continue
		}
		g.told = true
		stretch := t.apart - (g.at[1] - g.at[0])
		if n.tries(t.sequence, cfg) {
			if stretch < cfg.Epsilon {
				n.trial.kept++
			}
			continue
		}
		if n.apart.pairs == 0 {
			n.apart.gap, n.apart.stretch = t.apart, stretch
		}
		n.apart.pairs++
		n.apart.gap, n.apart.stretch = min(n.apart.gap, t.apart), min(n.apart.stretch, stretch)
	}
}

// adapt makes the gap of pairs longer where not one of a window kept it: the second packet waits for the first at a link that takes
// longer for a packet than the gap is, and the filter would leave nothing but pairs that queued. It makes a gap that is longer than
// configured shorter again when pairs keep half of it.
func (n *neighbour) adapt(cfg *Config) {
	if n.apart.pairs >= cfg.Least && n.apart.stretch >= cfg.Epsilon {
		n.spacing = max(n.spacing, min(n.apart.gap+2*cfg.Epsilon, maxApart/4, cfg.Window/units.Time(cfg.Pairs)/4))
		n.trial = trial{}
	}
	n.apart = dispersion{}
	n.trial.windows++
	switch {
	case n.trial.kept >= trialsKept:
		n.spacing, n.trial = n.narrower(cfg), trial{}
	case n.trial.windows >= trialWindows:
		n.trial = trial{}
	}
}

// extremes are the lowest of the forward points and the highest of the reverse ones, against the line so far.
type extremes struct {
	upper, lower     units.Time
	haveUp, haveDown bool
}

// half is half of the least round trip; ok is false where it is not known.
func (e *extremes) half() (h units.Time, ok bool) {
	return (e.upper - e.lower) / 2, e.haveUp && e.haveDown
}

// see notes a point, of a pair that may have queued: a packet that the filter leaves out for its fellow's sake may be the fastest. It must
// not be one whose stamp of departure was late, which looks faster than any can be.
func (n *neighbour) see(forward bool, x, y units.Time) {
	if !n.last.ok {
		return
	}
	was, e := n.last.fit, &n.all
	y -= was.Base + units.Time(was.Above+was.Slope*float64(x-was.At))
	switch {
	case forward && (!e.haveUp || y < e.upper):
		e.upper, e.haveUp = y, true
	case !forward && (!e.haveDown || y > e.lower):
		e.lower, e.haveDown = y, true
	}
}

// fitState is what the fits so far say of an edge.
type fitState struct {
	fit   servo.Fit
	sigma units.Time // of the last offset
	ok    bool
}

// deviation is the standard deviation of a slope through the offsets of that many windows.
func (s *fitState) deviation(window units.Time) float64 {
	n := float64(s.fit.Points)
	return float64(s.sigma) / float64(window) * math.Sqrt(12/(n*n*n))
}

// rememberedHalves is how many windows the least round trip is looked for in: a path that became longer for good is
// believed after that many.
const rememberedHalves = 32

// maxPoints bounds the points of a direction in memory, as a multiple of what a window has.
const maxPoints = 3

// keep takes a pair of ours (forward) or of theirs that is known at both ends, if it is pure. y is how far the other clock seems ahead.
func (n *neighbour) keep(forward bool, own, other [2]units.Time, cfg *Config, jitter units.Time, c *clocksync.Counters) {
	to, sent, by := &n.upper, own, &n.ours
	if !forward {
		to, sent, by = &n.lower, other, &n.theirs
	}
	if by.vouches(sent[1]-sent[0], 6*jitter+2*cfg.Sigma) { // a gap has the noise of two stamps, and so has the usual one
		for i := range own {
			n.see(forward, own[i], other[i]-own[i])
		}
	}
	if !pure(own, other, cfg.Epsilon) {
		c.Filtered++
		return
	}
	if len(*to) > maxPoints*2*cfg.Pairs {
		c.Filtered++
		return
	}
	for i := range own {
		*to = append(*to, point{x: own[i], y: other[i] - own[i]})
	}
}

// take learns what a probe tells: pairs of ours that have arrived there, and stamps of theirs that we have received.
func (n *neighbour) take(p *probe, cfg *Config, jitter units.Time, c *clocksync.Counters) {
	for _, t := range p.received[:p.nrecv] {
		if g := n.sent.find(t.sequence); g != nil {
			g.used = true
			n.keep(true, g.at, t.stamps(), cfg, jitter, c)
		}
	}
	for _, t := range p.sent[:p.nsent] {
		if g := n.received.find(t.sequence); g != nil {
			g.used = true
			n.keep(false, g.at, t.stamps(), cfg, jitter, c)
		}
	}
}

// cut splits points into those up to a reading of the own clock and those after.
func cut(p []point, until units.Time) (before, after []point) {
	n := 0
	for i := range p {
		if p[i].x <= until {
			p[n], p[i] = p[i], p[n]
			n++
		}
	}
	return p[:n], p[n:]
}

// fit computes the edge at the end of a window, for the reading x0 of the own clock. ok is false when too little is
// known, or what is known met a queue.
func (n *neighbour) fit(f *fitter, x0, until units.Time, cfg *Config, jitter units.Time) (e edgeFit, ok bool) {
	upper, later := cut(n.upper, until)
	lower, laterLow := cut(n.lower, until)
	points := min(len(upper), len(lower))
	if points < cfg.Least { // with the next window's there may be enough
		n.upper = forgetBefore(n.upper, until-patience*cfg.Window)
		n.lower = forgetBefore(n.lower, until-patience*cfg.Window)
		return edgeFit{}, false
	}
	defer func() {
		n.upper = n.upper[:copy(n.upper, later)]
		n.lower = n.lower[:copy(n.lower, laterLow)]
	}()
	low, high := -cfg.MaxSkew, cfg.MaxSkew
	if n.last.ok && n.fits >= cfg.Memory {
		trust := cfg.SlopeTrust + 4*n.last.deviation(cfg.Window)
		low, high = max(low, n.last.fit.Slope-trust), min(high, n.last.fit.Slope+trust)
	}
	few, many := cfg.shares(points, jitter)
	on := func(k int) line { // as large a share of the larger cloud
		return f.fit(upper, lower, k*len(upper)/points, k*len(lower)/points, x0, low, high)
	}
	l, rest := on(many), many
	if few < many {
		if sharp := on(few); l.half-sharp.half > 2*jitter+cfg.Sigma { // more than noise: queues
			l, rest = sharp, few
		}
	}
	excess, ok := n.gate(l.half, cfg, jitter)
	n.all = extremes{}
	if !ok {
		return edgeFit{}, false
	}
	if n.last.ok {
		was := n.last.fit
		expected := was.Base + units.Time(was.Above+was.Slope*float64(x0-was.At))
		if d := l.beta - expected; n.fits >= cfg.Memory && (d > cfg.StepLimit || d < -cfg.StepLimit) {
			n.forget() // one of the clocks was stepped, or the path is another one
			return edgeFit{}, false
		}
	}
	n.last.fit, n.last.ok = n.slopes.Add(x0, l.beta, 1)
	n.fits++
	sigma := max(cfg.Sigma, l.sigma, units.Time(float64(jitter)/math.Sqrt(float64(rest))))
	// A round trip that is longer than the shortest met queues, nobody knows in which direction: the offset is off by up to half of
	// that, either way. What the noise of stamps makes of the shortest is no queue.
	queued := float64(max(0, excess-2*jitter)) / 2
	sigma = units.Time(math.Hypot(float64(sigma), queued))
	n.last.sigma = sigma
	return edgeFit{to: n.node, points: uint16(min(points, math.MaxUint16)), beta: l.beta, alpha: l.alpha, sigma: sigma}, true
}

// patience is how many windows points may wait for others.
const patience = 4

// forgetBefore drops the points before a reading of the own clock.
func forgetBefore(p []point, x units.Time) []point {
	_, after := cut(p, x)
	return p[:copy(p, after)]
}

// gate returns by how much half a round trip is longer than the shortest of late, or of any packets of this window, and whether that
// is so little that the edge can be used: if not, both directions met queues. The offset may be off by as much.
func (n *neighbour) gate(half units.Time, cfg *Config, jitter units.Time) (excess units.Time, ok bool) {
	least := half
	if h, ok := n.all.half(); ok && n.fits >= cfg.Memory {
		least = min(least, h)
	}
	if n.nhalves > 0 {
		least = min(least, n.shortest())
	}
	most := 4*jitter + cfg.Epsilon
	if n.nhalves > 0 && half < n.shortest()-most && max(half-n.shorter, n.shorter-half) > most {
		n.shorter = half // what one window alone shows of a shorter path may be a clock that was set, or told wrong, in its midst
		return 0, false
	}
	n.shorter = 0
	n.halves[n.nhalves%rememberedHalves] = half
	n.nhalves++
	excess = half - least
	return excess, excess <= most
}

// shortest returns the least half of a round trip of late.
func (n *neighbour) shortest() units.Time {
	return slices.Min(n.halves[:min(n.nhalves, rememberedHalves)])
}

// forget throws away what was measured of the edge.
func (n *neighbour) forget() {
	n.sent.forget()
	n.received.forget()
	n.upper, n.lower = n.upper[:0], n.lower[:0]
	n.slopes.Reset()
	n.fits, n.nhalves, n.shorter, n.last, n.all = 0, 0, 0, fitState{}, extremes{}
}
