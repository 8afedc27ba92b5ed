package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weft/fabric"
	"weft/timeline"
	"weft/units"
)

// ErrLimit is wrapped by the error of a run that lab time passed Options.Limit in.
var ErrLimit = errors.New("lab time limit reached")

// StallError is a run that does not get on although hosts are not done. Nothing is left to happen: a packet was lost
// that nobody sends again, or hosts wait for each other, or switches do. Or ports have been paused for longer than
// Options.Stall.
type StallError struct {
	At      units.Time
	Paused  units.Time // since when a port that holds packets has been paused; -1: nothing was left to happen
	Waiting []string   // names of the hosts that are not done
	Network []string   // who waits for whom in the network, a line each
}

func (e *StallError) Error() string {
	why := "nothing left to happen"
	if e.Paused >= 0 {
		why = fmt.Sprintf("packets wait in a port that has been paused since %.3f µs", e.Paused.Microseconds())
	}
	text := fmt.Sprintf("sim: %s at %.3f µs, but not done: %s", why, e.At.Microseconds(), some(e.Waiting, ", "))
	if len(e.Network) > 0 {
		text += "\n  " + some(e.Network, "\n  ")
	}
	return text
}

// some joins the first of a list.
func some(list []string, separator string) string {
	const most = 8
	if len(list) <= most {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], separator), len(list)-most)
}

// checkEvery is how many events pass between looks at the context and the progress.
const checkEvery = 4096

// Run runs until every host is done, and checks that the network lost count of nothing. It returns an error
// when a host fails, when nothing is left to happen (StallError), when lab time passes the limit (ErrLimit) or
// when ctx is done; what the accessors return then is how far it came. Run may be called once.
func (s *Sim) Run(ctx context.Context) error {
	if s.started {
		return errors.New("sim: run twice")
	}
	s.started = true
	err := s.run(ctx)
	return errors.Join(err, s.net.CheckConservation())
}

func (s *Sim) run(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	for s.working > 0 {
		id, now, ok := s.timeline.Pop()
		if !ok {
			return s.stall(-1)
		}
		if now > s.opts.Limit {
			return fmt.Errorf("sim: %w: %.3f µs", ErrLimit, s.opts.Limit.Microseconds())
		}
		for now >= s.nextLook {
			s.look()
		}
		s.events++
		if id < s.timers {
			s.net.Fire(now, id)
		} else if id < s.script {
			s.timer(now, int(id-s.timers))
		} else {
			s.act(now)
		}
		if s.failure != nil {
			return s.failure
		}
		if s.events%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("sim: stopped at %.3f µs: %w", now.Microseconds(), err)
			}
			s.progress(now)
		}
	}
	return nil
}

// start starts every host, in order.
func (s *Sim) start() error {
	for h := range s.hosts {
		s.hosts[h].host.Start(0)
		s.settle(0, h)
	}
	for h := range s.hosts {
		s.checkFailed(h)
	}
	return s.failure
}

// timer is host h's entity firing. A timer that the host has moved ahead since is left where it was, and moved
// here: most are moved many times before they come.
func (s *Sim) timer(now units.Time, h int) {
	st := &s.hosts[h]
	st.timer = units.Never
	if at, ok := st.host.Deadline(); !ok || at > now {
		s.arm(now, h)
		return
	}
	if st.advanced != now {
		st.advanced, st.spins = now, 0
	}
	st.spins++
	st.host.Advance(now)
	s.settle(now, h)
	s.checkFailed(h)
}

// settle follows every call into host h: it pulls a packet if the NIC is free, and arms the timer.
func (s *Sim) settle(now units.Time, h int) {
	st := &s.hosts[h]
	if s.net.NICFree(fabric.HostID(h)) {
		if st.host.Transmit(now, &s.out) {
			s.inject(now, fabric.HostID(h))
		}
	} else if s.controls != nil {
		s.answer(now, h)
	}
	if !st.done && st.host.Done() {
		st.done = true
		if s.working--; s.working == 0 {
			s.end = now
		}
	}
	s.arm(now, h)
}

// answer pulls a packet of class 0 if the NIC of host h is free for it, being paused for others.
func (s *Sim) answer(now units.Time, h int) {
	c := s.controls[h]
	if c != nil && s.net.NICFreeFor(fabric.HostID(h), 0) && c.TransmitControl(now, &s.out) {
		s.inject(now, fabric.HostID(h))
	}
}

// act does the next action.
func (s *Sim) act(now units.Time) {
	a := s.actions[0]
	s.actions = s.actions[1:]
	if err := a.Do(now, s.net); err != nil {
		s.fail(fmt.Errorf("sim: action at %.3f µs: %w", now.Microseconds(), err))
	}
	s.armScript()
}

// maxSpins is how often a host may ask to be advanced at one instant without sending anything.
const maxSpins = 1000

// arm makes sure that host h's entity fires when its deadline comes, or before.
func (s *Sim) arm(now units.Time, h int) {
	st := &s.hosts[h]
	at, ok := st.host.Deadline()
	if !ok || at >= st.timer {
		return
	}
	if at <= now {
		if st.advanced == now {
			if !s.net.NICFree(fabric.HostID(h)) {
				return // it has been told, and waits for its NIC: Idle looks again
			}
			if st.spins > maxSpins {
				s.fail(fmt.Errorf("sim: %s does not get past its deadline at %d ps, advanced %d times at %d ps",
					s.name(h), at, st.spins, now))
				return
			}
		}
		at = now
	}
	st.timer = at
	s.timeline.Set(s.timers+timeline.ID(h), at)
}

func (s *Sim) stall(paused units.Time) error {
	e := &StallError{At: s.timeline.Last(), Paused: paused, Network: s.Waiting()}
	for h := range s.hosts {
		if !s.hosts[h].done {
			e.Waiting = append(e.Waiting, s.name(h))
		}
	}
	return e
}

func (s *Sim) fail(err error) {
	if s.failure == nil {
		s.failure = err
	}
}

func (s *Sim) checkFailed(h int) {
	if err := s.hosts[h].host.Failed(); err != nil {
		s.fail(fmt.Errorf("sim: %s: %w", s.name(h), err))
	}
}

// look does what is due at regular instants, of which the next is nextLook.
func (s *Sim) look() {
	if s.nextStall == s.nextLook {
		if since, stuck := s.net.Stuck(); stuck && s.nextStall-since >= s.opts.Stall {
			s.fail(s.stall(since))
		} else if s.resting() {
			s.fail(s.stall(-1))
		}
		s.nextStall += s.opts.Stall
	}
	if s.nextTick == s.nextLook {
		s.opts.Tick(s.nextTick)
		s.nextTick += s.opts.TickEvery
	}
	if s.nextSample == s.nextLook {
		s.sample()
	}
	s.nextLook = min(s.nextSample, s.nextStall, s.nextTick)
}

// resting says whether all hosts rest, and rested at the last look with no progress since: between two looks packets that
// are not paused have arrived.
func (s *Sim) resting() bool {
	moved, rest := units.Bytes(0), true
	for h := range s.hosts {
		r, ok := s.hosts[h].host.(Resting)
		if !ok {
			return false
		}
		done, _ := r.Progress()
		moved += done
		rest = rest && r.Resting()
	}
	before := s.moved
	s.moved = -1
	if rest {
		s.moved = moved
	}
	return rest && before == moved
}

func (s *Sim) sample() {
	now := s.nextSample
	s.net.Sample(now, func(port int, queued units.Bytes) { s.opts.Sample(now, port, queued) })
	s.nextSample += s.opts.SampleEvery
}

func (s *Sim) progress(now units.Time) {
	if s.opts.Progress != nil && s.events >= s.nextProgress {
		s.opts.Progress(now, s.events)
		s.nextProgress = s.events + s.opts.ProgressEvery
	}
}
