package huygens

import (
	"weft/clocksync"
	"weft/units"
)

// joining is the state of a node that asks the coordinators for the time, so that its windows match
// those of the others.
type joining struct {
	at     units.Time // when the next question leaves, by the monotonic clock; Never: none
	number uint32     // of the last question
	asked  units.Time // when that left, by the hardware clock
	open   bool       // that has no answer yet
	tries  int        // number of questions
	best   units.Time // round trip of the best answer
	offset units.Time // from that answer: synchronized time minus hardware clock
	adrift units.Time // from that answer: bound of the distance from the reference's time
	lone   bool       // the answers are from a node that never knew the reference's time
	count  int        // number of answers
	done   bool
}

// Our choices.
const (
	joinEvery   = 200 * units.Microsecond // interval of questions
	joinAnswers = 8                       // enough answers; the one with the shortest round trip counts
	joinEnough  = 64                      // questions after which one answer is enough: most are lost
	joinTries   = 16                      // unanswered questions after which the first coordinator leads
	maxRound    = units.Second            // largest valid round trip
	maxNoise    = 10 * units.Microsecond  // largest noise of a stamp
)

// startJoining begins to ask for the time.
func (a *Agent) startJoining(now clocksync.Now) {
	a.join = joining{at: now.Mono, number: a.join.number}
}

// advanceJoin sends the next question, or ends joining. A coordinator without answers leads; the
// second one waits four times as long for the first.
func (a *Agent) advanceJoin(now clocksync.Now) {
	j := &a.join
	rank := a.rank(a.setup.Self)
	alone := j.count == 0 && j.tries >= joinTries<<(2*max(rank, 0)) || a.cfg.Coordinators == 1
	if rank >= 0 && alone && (a.correction.State == clocksync.Free || a.yielded) {
		a.lead(now, rank)
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

// stampNow writes the time of departure into a join or welcome that leaves.
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

// onJoin answers a question for the time.
func (a *Agent) onJoin(_ clocksync.Now, in *clocksync.Message) error {
	if a.coordinator == nil {
		return ErrForeign
	}
	var m times
	if err := m.decode(in.Data); err != nil {
		return err
	}
	answer := times{kind: kindWelcome, joined: a.join.done, lone: a.lone, number: m.number,
		t: [4]units.Time{m.t[0], a.correction.At(in.Stamp)}}
	a.post(in.From, true, answer.encode)
	return nil
}

// onWelcome handles an answer.
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
		// this node is the reference, and the other coordinator does not know its time
		if a.rank(a.setup.Self) == 0 && a.correction.State == clocksync.Free {
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
		return nil // a node that knows the reference's time has answered before
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

// joined ends joining with the best of the answers.
func (a *Agent) joined(now clocksync.Now) {
	j := &a.join
	// The shortest of eight round trips is too short by the noise of four stamps, about 1.5
	// deviations of their sum. The offset is wrong by up to half of that sum, here four deviations
	// of it. Each stamp is up to a quantum early.
	bound := j.best/2 + 8*a.setup.Jitter + a.setup.Quantum
	k := clocksync.Correction{From: now.Hard, Offset: j.offset}
	if a.correction.State != clocksync.Free { // it lost the others, but its own time may be as good as theirs
		k.Rate = a.correction.Rate
		d := k.At(now.Hard) - a.correction.At(now.Hard)
		if own := a.correction.BoundAt(now.Hard); own <= bound+j.adrift && max(d, -d) <= bound+own+j.adrift {
			k.Offset, bound = a.correction.At(now.Hard)-now.Hard, own
		}
	}
	a.anchor, a.yielded, a.lone, a.adrift, a.adriftAt = false, false, j.lone, j.adrift, now.Mono
	k.Bound, k.Drift = bound+a.cfg.AsymmetryBound+a.adrift, 2*a.cfg.MaxSkew
	a.off = bound
	if a.correction.State == clocksync.Free { // otherwise it knows its rate better
		a.away = k.Drift
	}
	a.begin(now, k, bound)
}

// lead makes this node the anchor. If it is not the reference, the only thing it knows of its
// distance from the reference's time is the initial offset of clocks (Setup.Offset), and the growth
// since.
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

// unknown bounds the offset of a clock if Setup.Offset does not. Ours.
const unknown = units.Second

// yield ends leading in place of the reference, which is back. From now on this node follows it.
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

// doubt returns a bound of the distance of this node's time from the reference's. It is that of the
// node's line while the reference is there, and grows with the error of its rate afterwards.
func (a *Agent) doubt(now clocksync.Now) units.Time {
	if a.anchor && !a.lone {
		return 0
	}
	drift := max(minDrift, a.away)
	if d, ok := a.track.drift(); ok {
		drift = max(drift, d)
	}
	if a.lone {
		drift = 2 * a.cfg.MaxSkew
	}
	d := units.Time(drift * float64(max(0, now.Mono-a.adriftAt)))
	if a.adrift == 0 { // it followed the reference's own time until adriftAt
		d += a.off
	}
	return a.adrift + d
}

// begin starts windows and probes with a first line, whose error is at most initial.
func (a *Agent) begin(now clocksync.Now, k clocksync.Correction, initial units.Time) {
	a.join.done, a.join.at, a.join.open = true, units.Never, false
	a.missed = 0
	if d := k.At(now.Hard) - a.correction.At(now.Hard); d != 0 {
		a.counters.Steps++
	}
	k.State = clocksync.Locked
	a.publish(k)
	a.track = track{target: clocksync.Correction{From: k.From, Offset: k.Offset, Rate: k.Rate}, initial: initial,
		slewEnd: units.Never}
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

// windowBase is the number of the window that begins at time 0: clocks may show negative times.
const windowBase = 1 << 31

// windowStart returns the beginning of a window, in synchronized time.
func (a *Agent) windowStart(w uint32) units.Time {
	return units.Time(int64(w)-windowBase) * a.cfg.Window
}

// monoAt returns the reading of the monotonic clock at the synchronized time t, which is in the
// future. It neglects the difference of their rates.
func (a *Agent) monoAt(now clocksync.Now, t units.Time) units.Time {
	return now.Mono + max(1, t-a.correction.At(now.Hard))
}

// armWindow sets the timer for the report of the current window.
func (a *Agent) armWindow(now clocksync.Now) {
	a.closeAt = a.monoAt(now, a.windowStart(a.window+1)+a.cfg.Window/reportAfter)
}

// armSolve sets the coordinator's timer for the solution of its window.
func (a *Agent) armSolve(now clocksync.Now) {
	a.coordinator.solveAt = a.monoAt(now, a.windowStart(a.coordinator.window+1)+a.cfg.Window/solveAfter)
}

// Windows without a solution after which a node changes its state. Ours.
const (
	holdoverAfter   = 3
	loneRejoinAfter = 4 // a lone node joins again sooner: its anchor may have found the reference
	rejoinAfter     = 16
)

// closeWindow fits the owned edges of the last window and reports them.
func (a *Agent) closeWindow(now clocksync.Now) {
	w := a.window
	middle := a.windowStart(w) + a.cfg.Window/2
	x0, until := a.track.readingAt(middle), a.track.readingAt(a.windowStart(w+1))
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
		a.startJoining(now) // probing continues meanwhile
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
	a.x0, a.reported, a.reportedOK = x0, w, true
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

// onSolution handles a result from a coordinator.
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

// apply corrects the line by a solution. Solutions of the second coordinator count only while the
// first is silent.
func (a *Agent) apply(now clocksync.Now, rank int, s *solution) error {
	if !a.reportedOK || s.window != a.reported || a.heardOK[rank] && a.heard[rank] == s.window {
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
	if a.lone && !s.lone || other { // the errors so far were relative to another time
		a.track.restart()
	}
	a.yielded, a.lone, a.adrift, a.adriftAt = a.yielded && s.lone, s.lone, s.adrift, now.Mono
	a.track.correct(a.x0, s.err, s.skew)
	a.follow(now, s.sigma)
	return nil
}

// apart is the number of deviations by which the time of a reference that is back must differ from
// the cluster's to restart the line. Ours.
const apart = 8

// follow publishes a correction toward the target: a slew that ends a window later, or a step above
// StepLimit.
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
	bound, drift, ok := a.track.bound.Last(minResults)
	if !ok {
		bound, drift = a.early(sigma), minDrift
	}
	bound = max(bound, 4*sigma)
	if a.track.results > 1 { // an error may occur again
		bound = max(bound, a.track.lastErr)
	}
	drift = max(drift, a.track.slope(bound, sigma, a.cfg.Window)) // matters if the next results are lost
	drift = max(drift, minDrift)
	if a.adrift == 0 {
		a.off, a.away = bound, drift
	}
	k.Bound, k.Drift = bound+max(gap, -gap)+a.cfg.AsymmetryBound+a.adrift, drift
	if a.adrift > 0 { // this line drifts, and so does the time that it follows
		k.Drift += max(drift, a.away)
	}
	k.State = clocksync.Locked
	a.publish(k)
}

// early returns the bound while there are too few results for servo.Bound. After the first result
// only sigma is known: the deviation of the line in the middle of a window, scaled by how much the
// edges contradict each other. The line is used until two and a half windows later, where an error
// of its slope (sqrt(12) sigma over a window) has grown to about nine sigma. From the second result
// on the last error counts, too.
func (a *Agent) early(sigma units.Time) units.Time {
	t := &a.track
	if t.results < 1 || sigma <= 0 {
		return max(t.initial, 4*sigma)
	}
	bound := 4*earlyGrowth*sigma + units.Time(float64(a.cfg.Window)*a.cfg.SlopeTrust)
	if t.results > 1 {
		bound += 2 * t.lastErr
	}
	return min(bound, max(t.initial, 4*sigma, t.lastErr))
}

// earlyGrowth is sqrt(1 + 12 * 2.5^2).
const earlyGrowth = 9

// minResults is the number of results, after warmUp, that servo.Bound needs. Ours.
const minResults = 3

// minDrift is the minimum growth of a bound: no rate is known better. Ours.
const minDrift = 20e-9
