package huygens

import (
	"weft/clocksync"
	"weft/units"
)

// joining is how a node learns roughly what time it is, so that its windows are those of the others.
type joining struct {
	at     units.Time // of the next question, by the monotonic clock; Never: none
	number uint32     // of the last question
	asked  units.Time // when it left, by the hardware clock
	open   bool       // it is not answered
	tries  int
	best   units.Time // round trip of the best answer
	offset units.Time // that it says: synchronized time minus the hardware clock
	adrift units.Time // how far that may be from the reference's
	lone   bool       // the answers are of a node that never knew the reference's time
	count  int        // answers
	done   bool
}

const (
	joinEvery   = 200 * units.Microsecond
	joinAnswers = 8  // the one with the shortest round trip counts
	joinEnough  = 64 // questions after which one answer is enough: most are lost
	joinTries   = 16 // questions without any answer, after which a coordinator begins by itself; the second waits longer
	maxRound    = units.Second
	maxNoise    = 10 * units.Microsecond // of a stamp
)

// startJoining begins to ask.
func (a *Agent) startJoining(now clocksync.Now) {
	a.join = joining{at: now.Mono, number: a.join.number}
}

// advanceJoin asks once more, or ends asking.
func (a *Agent) advanceJoin(now clocksync.Now) {
	j := &a.join
	rank := a.rank(a.setup.Self)
	alone := j.count == 0 && j.tries >= joinTries<<(2*max(rank, 0)) || a.cfg.Coordinators == 1
	if rank >= 0 && alone && (a.correction.State == clocksync.Free || a.yielded) {
		a.lead(now, rank) // nobody is there
		return
	}
	if j.count > 0 && j.tries >= joinEnough {
		a.joined(now)
		return
	}
	j.number++
	j.tries++
	j.open = false
	to := a.coordinatorOf((j.tries / 2) % min(a.cfg.Coordinators, a.setup.Nodes))
	if to == a.setup.Self {
		to = a.coordinatorOf(1 - rank)
	}
	m := times{kind: kindJoin, number: j.number}
	a.post(to, true, m.encode)
	j.at = now.Mono + min(joinEvery, a.cfg.Window/joinAnswers)
}

// stampNow writes the time of departure to a join or welcome that leaves.
func (a *Agent) stampNow(now clocksync.Now, l *letter) {
	var m times
	if m.decode(l.b[:l.n]) != nil {
		return
	}
	if m.kind == kindJoin {
		m.t[0] = now.Hard
		if m.number == a.join.number {
			a.join.asked, a.join.open = now.Hard, true
		}
	} else {
		m.t[2], m.t[3] = a.correction.At(now.Hard), a.doubt(now)
	}
	m.encode(l.b[:])
}

// onJoin answers what time it is.
func (a *Agent) onJoin(_ clocksync.Now, in *clocksync.Message) error {
	if a.coordinator == nil {
		return ErrForeign
	}
	var m times
	if err := m.decode(in.Data); err != nil {
		return err
	}
	answer := times{kind: kindWelcome, joined: a.join.done, lone: a.lone, number: m.number, t: [4]units.Time{m.t[0], a.correction.At(in.Stamp)}}
	a.post(in.From, true, answer.encode)
	return nil
}

// onWelcome takes an answer.
func (a *Agent) onWelcome(now clocksync.Now, in *clocksync.Message) error {
	if a.rank(in.From) < 0 {
		return ErrForeign
	}
	var m times
	if err := m.decode(in.Data); err != nil {
		return err
	}
	j := &a.join
	if !j.open || m.number != j.number || m.t[0] != j.asked {
		return ErrStale
	}
	j.open = false
	if !m.joined || m.lone {
		if a.rank(a.setup.Self) == 0 && a.correction.State == clocksync.Free { // the other coordinator does not know the reference's time either
			a.lead(now, 0)
			return nil
		}
		if !m.joined {
			return nil
		}
	}
	stay := m.t[2] - m.t[1] // below 0 by the noise of a stamp, if it was answered at once
	round := (in.Stamp - m.t[0]) - stay
	if stay < -maxNoise || round < -maxNoise || round > maxRound || m.t[3] < 0 {
		return ErrRange
	}
	switch {
	case m.lone && !j.lone && j.count > 0:
		return nil // who knows the reference's time has answered
	case j.lone && !m.lone:
		j.count = 0
	}
	j.lone = m.lone
	round = max(round, 0)
	if j.count == 0 || round < j.best {
		j.best, j.adrift = round, m.t[3]
		j.offset = ((m.t[1] - m.t[0]) + (m.t[2] - in.Stamp)) / 2
	}
	j.count++
	if j.count == joinAnswers || j.tries >= joinEnough {
		a.joined(now)
	}
	return nil
}

// joined begins by the best of the answers.
func (a *Agent) joined(now clocksync.Now) {
	j := &a.join
	// The least of eight round trips is too short by the noise of four stamps, some 1.5 deviations of their sum; so is the
	// offset wrong by half of that sum, here four deviations of it. Each stamp is up to a quantum early.
	bound := j.best/2 + 8*a.setup.Jitter + a.setup.Quantum
	k := clocksync.Correction{From: now.Hard, Offset: j.offset}
	if a.correction.State != clocksync.Free { // it lost the others, and perhaps its time is as good as theirs
		k.Rate = a.correction.Rate
		d := k.At(now.Hard) - a.correction.At(now.Hard)
		if own := a.correction.BoundAt(now.Hard); own <= bound+j.adrift && max(d, -d) <= bound+own+j.adrift {
			k.Offset, bound = a.correction.At(now.Hard)-now.Hard, own
		}
	}
	a.anchor, a.yielded, a.lone, a.adrift, a.adriftAt = false, false, j.lone, j.adrift, now.Mono
	k.Bound, k.Drift = bound+a.cfg.AsymmetryBound+a.adrift, 2*a.cfg.MaxSkew
	a.off = bound
	if a.correction.State == clocksync.Free { // whoever lost the others knows its rate
		a.away = k.Drift
	}
	a.begin(now, k, bound)
}

// lead begins as the node whose time is the cluster's. Only the reference's is the one that was asked for: a node in its
// place cannot know how far it is from that, but for what clocks are off by at first.
func (a *Agent) lead(now clocksync.Now, rank int) {
	k := a.correction.Rebase(now.Hard)
	a.anchor, a.yielded, a.lone, a.adrift, a.adriftAt = true, false, rank != 0, 0, now.Mono
	k.Bound, k.Drift = 0, 0
	if a.lone {
		a.adrift = unknown
		if a.setup.Offset > 0 {
			a.adrift = 2*a.setup.Offset + units.Time(2*a.cfg.MaxSkew*float64(now.Mono))
		}
		k.Bound, k.Drift = a.adrift, 2*a.cfg.MaxSkew
	}
	a.begin(now, k, 0)
}

// unknown is how far a clock may be off that nobody has set.
const unknown = units.Second

// yield ends leading in the reference's place: the reference is there. From now on this node follows it.
func (a *Agent) yield(now clocksync.Now) {
	if !a.anchor || !a.lone {
		return
	}
	a.anchor, a.yielded, a.missed = false, true, 0
	a.coordinator.nodes[a.setup.Self].anchor = false
	a.counters.Resets++
	k := a.correction.Rebase(now.Hard)
	k.State = clocksync.Holdover
	a.publish(k)
}

// doubt is how far the cluster's time, as this node knows it, may be from the reference's: as far as its own line while that is there, and
// what its rate was not known better than from when it is gone.
func (a *Agent) doubt(now clocksync.Now) units.Time {
	if a.anchor && !a.lone {
		return 0
	}
	drift := max(leastDrift, a.away)
	if d, ok := a.track.drift(); ok {
		drift = max(drift, d)
	}
	if a.lone {
		drift = 2 * a.cfg.MaxSkew
	}
	d := units.Time(drift * float64(max(0, now.Mono-a.adriftAt)))
	if a.adrift == 0 { // it has followed the reference's own time so far
		d += a.off
	}
	return a.adrift + d
}

// begin starts probing by a first line, which is off by up to initial.
func (a *Agent) begin(now clocksync.Now, k clocksync.Correction, initial units.Time) {
	a.join.done, a.join.at, a.join.open = true, units.Never, false
	a.missed = 0
	if d := k.At(now.Hard) - a.correction.At(now.Hard); d != 0 {
		a.counters.Steps++
	}
	k.State = clocksync.Locked
	a.publish(k)
	a.track = track{target: clocksync.Correction{From: k.From, Offset: k.Offset, Rate: k.Rate}, initial: initial, slewEnd: units.Never}
	a.window = uint32(k.At(now.Hard)/a.cfg.Window) + windowBase
	a.armWindow(now)
	slot := a.cfg.Window / units.Time(a.cfg.Pairs)
	for i := range a.neighbours {
		n := &a.neighbours[i]
		n.slot = now.Mono + units.Time(a.random.Int64N(int64(slot)))
		n.pairAt = n.slot
	}
	a.nextProbe = now.Mono
	if c := a.coordinator; c != nil {
		c.begin(a.window)
		a.armSolve(now)
	}
}

// windowBase is the number of the window that begins at time 0: clocks may show less.
const windowBase = 1 << 31

// windowStart returns when a window begins, in synchronized time.
func (a *Agent) windowStart(w uint32) units.Time {
	return units.Time(int64(w)-windowBase) * a.cfg.Window
}

// monoAt returns when the monotonic clock will show that synchronized time is t.
func (a *Agent) monoAt(now clocksync.Now, t units.Time) units.Time {
	return now.Mono + max(1, t-a.correction.At(now.Hard)) // rates differ by too little to matter
}

func (a *Agent) armWindow(now clocksync.Now) {
	a.closeAt = a.monoAt(now, a.windowStart(a.window+1)+a.cfg.Window/reportAfter)
}

func (a *Agent) armSolve(now clocksync.Now) {
	a.coordinator.solveAt = a.monoAt(now, a.windowStart(a.coordinator.window+1)+a.cfg.Window/solveAfter)
}

// Windows without a solution.
const (
	holdoverAfter   = 3
	loneRejoinAfter = 4 // of a node that followed one in the reference's place: that one may have found the reference
	rejoinAfter     = 16
)

// closeWindow fits the edges of the window that is over and reports them.
func (a *Agent) closeWindow(now clocksync.Now) {
	w := a.window
	middle := a.windowStart(w) + a.cfg.Window/2
	x0, until := a.track.before(middle), a.track.before(a.windowStart(w+1))
	a.window = max(w+1, uint32(a.correction.At(now.Hard)/a.cfg.Window+windowBase))
	a.armWindow(now)
	a.again.begin(a.lossy())
	a.missed++
	if !a.anchor && a.missed > holdoverAfter && a.correction.State == clocksync.Locked {
		k := a.correction
		k.State = clocksync.Holdover
		a.publish(k)
	}
	if !a.anchor && (a.missed == rejoinAfter || a.lone && a.missed == loneRejoinAfter) {
		a.counters.Lost++
		a.startJoining(now) // goes on probing with the time it has
	}
	var fits []edgeFit
	for i := range a.neighbours {
		n := &a.neighbours[i]
		n.adapt(&a.cfg)
		if !n.owned {
			continue
		}
		if e, ok := n.fit(&a.fitter, x0, until, &a.cfg, a.noise); ok {
			e.beta -= a.lie
			fits = append(fits, e)
		} else {
			a.counters.Filtered++
		}
	}
	a.x0, a.told, a.toldOK = x0, w, true
	r := report{window: w, anchor: a.anchor, lone: a.lone, x0: x0, rate: a.track.target.Rate}
	for {
		r.edges = fits[:min(len(fits), perReport)]
		fits = fits[len(r.edges):]
		for rank := range min(a.cfg.Coordinators, a.setup.Nodes) {
			if to := a.coordinatorOf(rank); to != a.setup.Self {
				a.post(to, false, r.encode)
				a.again.keep(now, to, a.cfg.Window, r.encode)
			} else if a.coordinator != nil {
				a.coordinator.take(a.setup.Self, &r)
			}
		}
		r.part++
		if len(fits) == 0 {
			return
		}
	}
}

// onSolution takes a result of a coordinator.
func (a *Agent) onSolution(now clocksync.Now, in *clocksync.Message) error {
	rank := a.rank(in.From)
	if rank < 0 {
		return ErrForeign
	}
	var s solution
	if err := s.decode(in.Data); err != nil {
		return err
	}
	return a.apply(now, rank, &s)
}

// apply corrects the line by a solution. That of the first coordinator counts as long as it is there.
func (a *Agent) apply(now clocksync.Now, rank int, s *solution) error {
	if !a.toldOK || s.window != a.told || a.heardOK[rank] && a.heard[rank] == s.window {
		return ErrStale
	}
	a.heard[rank], a.heardOK[rank] = s.window, true
	first := rank == 0 || !a.heardOK[0] || s.window-a.heard[0] > holdoverAfter
	if !first || a.appliedOK && a.applied == s.window {
		return nil
	}
	a.applied, a.appliedOK, a.missed = s.window, true, 0
	if a.join.at != units.Never {
		a.join.at, a.join.done = units.Never, true
	}
	if a.anchor && s.lone {
		return nil
	}
	a.yield(now)
	if a.anchor {
		return nil
	}
	other := a.adrift > 0 && s.adrift == 0 && max(s.err, -s.err) > apart*s.sigma
	if a.lone && !s.lone || other { // what the line was wrong by so far was against another time
		a.track.restart()
	}
	a.yielded, a.lone, a.adrift, a.adriftAt = a.yielded && s.lone, s.lone, s.adrift, now.Mono
	a.track.correct(a.x0, s.err, s.skew)
	a.follow(now, s.sigma)
	return nil
}

// apart is by how many deviations the reference's time has to differ from that of the others, when it is back, to be another one.
const apart = 8

// follow publishes the way to the target: a slew that ends a window later, or a step when that is far.
func (a *Agent) follow(now clocksync.Now, sigma units.Time) {
	k := a.correction.Rebase(now.Hard)
	k.Rate, k.Slew = a.track.target.Rate, 0
	gap := a.track.target.At(now.Hard) - k.At(now.Hard)
	if max(gap, -gap) > a.cfg.StepLimit {
		k.Offset += gap
		a.counters.Steps++
		a.track.slewEnd = units.Never
		gap = 0
	} else {
		k.Slew = float64(gap) / float64(a.cfg.Window)
		k.Rate += k.Slew
		a.track.slewEnd = now.Mono + a.cfg.Window
	}
	bound, drift, ok := a.track.bound.Last(leastResults)
	if !ok {
		bound, drift = a.early(sigma), leastDrift
	}
	bound = max(bound, 4*sigma)
	if a.track.results > 1 { // what it was wrong by it may be wrong by again
		bound = max(bound, a.track.off)
	}
	drift = max(drift, a.track.slope(bound, sigma, a.cfg.Window)) // counts when the next results do not come
	drift = max(drift, leastDrift)
	if a.adrift == 0 {
		a.off, a.away = bound, drift
	}
	k.Bound, k.Drift = bound+max(gap, -gap)+a.cfg.AsymmetryBound+a.adrift, drift
	if a.adrift > 0 { // of this line, and of what it is held against
		k.Drift += max(drift, a.away)
	}
	k.State = clocksync.Locked
	a.publish(k)
}

// early is the bound while there are too few results to tell how wrong a line usually is when the next one comes. After the
// first, all that is known is how exactly the mesh fixes a line in the middle of a window, with what its edges contradict each other
// by: sigma. It is used up to two windows and a half later, where an error of its slope (sqrt(12) sigma over a window) has
// grown to some nine times that. From the second on what they were wrong by counts too.
func (a *Agent) early(sigma units.Time) units.Time {
	t := &a.track
	if t.results < 1 || sigma <= 0 {
		return max(t.initial, 4*sigma)
	}
	bound := 4*earlyGrowth*sigma + units.Time(float64(a.cfg.Window)*a.cfg.SlopeTrust)
	if t.results > 1 {
		bound += 2 * t.off
	}
	return min(bound, max(t.initial, 4*sigma, t.off))
}

// earlyGrowth is sqrt(1 + 12 * 2.5^2).
const earlyGrowth = 9

// leastResults is how many results after the first ones it takes to state a bound of their own.
const leastResults = 3

// leastDrift is the least growth of a bound: what a rate is not known better than.
const leastDrift = 20e-9
