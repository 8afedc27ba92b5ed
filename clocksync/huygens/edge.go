package huygens

import (
	"math"
	"slices"

	"weft/clocksync"
	"weft/clocksync/servo"
	"weft/units"
)

// neighbour is the state of an edge at one of its ends.
type neighbour struct {
	node  clocksync.Node // the other end
	owned bool           // this node computes the edge

	pairAt   units.Time // when the next probe leaves, by the monotonic clock
	slot     units.Time // when the time slot of its pair began
	second   bool       // it is the second of its pair
	sequence uint32     // of its pair
	queued   bool       // it waits for the NIC

	spacing units.Time // between the two packets of a pair
	apart   dispersion // of the pairs of this window
	trial   trial

	sent, received pairs
	heard          units.Time // arrival of the last probe, by the monotonic clock
	epoch          uint8      // of the neighbour's clock, from its probes

	// Only for an owned edge.
	upper, lower []point // forward and reverse points for the next fit
	slopes       servo.Regression
	fits         int                          // since the slope was reset
	halves       [rememberedHalves]units.Time // half of the shortest round trip of each window; a ring
	nhalves      int                          // number of windows in halves so far
	shorter      units.Time                   // half of a round trip too short to be believed at once; 0: none
	last         fitState
	all          extremes // of this window's points, pure or not
	ours, theirs habit    // usual gaps of the pairs that leave here, and there
}

// habit is the gap at departure of most pairs. The stamps of a pair with that gap confirm each
// other: if one of them were late, the gap would differ.
type habit struct {
	gap   units.Time
	votes int
}

// maxVotes bounds how long a gap counts after it was seen last, in pairs.
const maxVotes = 16

// vouches votes for or against the usual gap, and reports whether a pair left with it (Boyer and
// Moore, MJRTY, 1991).
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

// dispersion is how the path changes the gaps of pairs, over a window.
type dispersion struct {
	pairs   int        // number of pairs
	gap     units.Time // smallest gap at arrival
	stretch units.Time // smallest increase of a gap
}

// trial counts the trials of a neighbour whose gap was widened: pairs with a narrower gap, to find
// out whether that is enough again.
type trial struct {
	windows int // since the count began
	kept    int // trials whose gap did not grow
}

const (
	trialEvery   = 16 // one of this many pairs is a trial
	trialWindows = 8  // after this many windows the count begins again
	trialsKept   = 4  // trials to keep their gap before it is narrowed: late stamps alone cause fewer
)

// gap returns the time between the two packets of a pair at departure.
func (n *neighbour) gap(sequence uint32, cfg *Config) units.Time {
	if n.tries(sequence, cfg) {
		return n.narrower(cfg)
	}
	return n.spacing
}

// tries reports whether a pair is a trial.
func (n *neighbour) tries(sequence uint32, cfg *Config) bool {
	return n.spacing > cfg.Spacing && sequence%trialEvery == 0
}

// narrower returns the gap of trials.
func (n *neighbour) narrower(cfg *Config) units.Time { return max(cfg.Spacing, n.spacing/2) }

// disperse records how the gaps of sent pairs arrived, as a probe reports them.
func (n *neighbour) disperse(p *probe, cfg *Config) {
	for _, t := range p.received[:p.nrecv] {
		g := n.sent.find(t.sequence)
		if g == nil || g.gapKnown {
			continue
		}
		g.gapKnown = true
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

// adapt widens the gap of pairs if none kept it in a window: on a slow link the second packet waits
// for the first, and the filter would drop every pair. It narrows a widened gap again if the trials
// keep theirs.
func (n *neighbour) adapt(cfg *Config) {
	if n.apart.pairs >= cfg.MinPoints && n.apart.stretch >= cfg.Epsilon {
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

// extremes are the lowest forward point and the highest reverse one, relative to the last line.
type extremes struct {
	upper, lower     units.Time
	haveUp, haveDown bool
}

// half returns half of the shortest round trip; ok is false if it is not known.
func (e *extremes) half() (h units.Time, ok bool) {
	return (e.upper - e.lower) / 2, e.haveUp && e.haveDown
}

// see updates the extremes by a point of a pair that may be impure: the fastest packet may belong
// to a pair that the filter drops because of the other packet. Its stamp of departure must not be
// late, which would make it look faster than possible.
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

// fitState is the line of an edge through its last fits.
type fitState struct {
	fit   servo.Fit
	sigma units.Time // standard deviation of the last offset
	ok    bool       // fit is valid
}

// deviation returns the standard deviation of the slope through the offsets of the fit's windows.
func (s *fitState) deviation(window units.Time) float64 {
	n := float64(s.fit.Points)
	return float64(s.sigma) / float64(window) * math.Sqrt(12/(n*n*n))
}

// rememberedHalves is the number of windows over which the shortest round trip is searched: a path
// that became longer for good is believed after that many. Ours.
const rememberedHalves = 32

// maxPoints bounds the points of a direction in memory, as a multiple of those of a window.
const maxPoints = 3

// keep keeps the points of a pair with stamps of both ends, if it is pure. forward is true for
// pairs that this node sent. The y of a point is how far the other clock seems ahead.
func (n *neighbour) keep(forward bool, own, other [2]units.Time, cfg *Config, jitter units.Time,
	c *clocksync.Counters) {
	to, sent, by := &n.upper, own, &n.ours
	if !forward {
		to, sent, by = &n.lower, other, &n.theirs
	}
	if by.vouches(sent[1]-sent[0], 6*jitter+2*cfg.Sigma) { // both gaps have the noise of two stamps
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

// take keeps the pairs that a probe completes: ours that arrived there, and theirs that arrived
// here.
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

// cut splits points into those up to a reading of the own clock and those after it. It reorders
// them.
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

// fit computes the edge at the end of a window, for the reading x0 of the own clock. ok is false if
// there are too few points, or if all met queues.
func (n *neighbour) fit(f *fitter, x0, until units.Time, cfg *Config, jitter units.Time) (e edgeFit, ok bool) {
	upper, later := cut(n.upper, until)
	lower, laterLow := cut(n.lower, until)
	points := min(len(upper), len(lower))
	if points < cfg.MinPoints { // with those of the next window there may be enough
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
	on := func(k int) line { // the same share of the larger cloud
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
			n.forget() // one of the clocks was stepped, or the path changed
			return edgeFit{}, false
		}
	}
	n.last.fit, n.last.ok = n.slopes.Add(x0, l.beta)
	n.fits++
	sigma := max(cfg.Sigma, l.sigma, units.Time(float64(jitter)/math.Sqrt(float64(rest))))
	// A round trip that is longer than the shortest met queues, in an unknown direction: the offset
	// may be off by half of the excess, up or down. Excess within the noise of stamps is no queue.
	queued := float64(max(0, excess-2*jitter)) / 2
	sigma = units.Time(math.Hypot(float64(sigma), queued))
	n.last.sigma = sigma
	return edgeFit{to: n.node, points: uint16(min(points, math.MaxUint16)), beta: l.beta, alpha: l.alpha,
		sigma: sigma}, true
}

// patience is the number of windows that points are kept until there are enough.
const patience = 4

// forgetBefore drops the points before a reading of the own clock.
func forgetBefore(p []point, x units.Time) []point {
	_, after := cut(p, x)
	return p[:copy(p, after)]
}

// gate returns the excess of half a round trip over the shortest of recent windows, or of any
// packets of this window. ok is false if the excess is too large: then both directions met queues,
// and the offset may be off by that much.
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
		n.shorter = half // a shorter path in one window alone may be a clock that was set in its middle
		return 0, false
	}
	n.shorter = 0
	n.halves[n.nhalves%rememberedHalves] = half
	n.nhalves++
	excess = half - least
	return excess, excess <= most
}

// shortest returns half of the shortest round trip of the remembered windows.
func (n *neighbour) shortest() units.Time {
	return slices.Min(n.halves[:min(n.nhalves, rememberedHalves)])
}

// forget discards all measurements of the edge.
func (n *neighbour) forget() {
	n.sent.forget()
	n.received.forget()
	n.upper, n.lower = n.upper[:0], n.lower[:0]
	n.slopes.Reset()
	n.fits, n.nhalves, n.shorter, n.last, n.all = 0, 0, 0, fitState{}, extremes{}
}
