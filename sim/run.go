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

// StallError is a run in which nothing is left to happen although hosts are not done: a packet was lost that
// nobody sends again, or hosts wait for each other.
type StallError struct {
	At      units.Time
	Waiting []string // names of the hosts that are not done
}

func (e *StallError) Error() string {
	const most = 8
	names := e.Waiting
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	return fmt.Sprintf("sim: nothing left to happen at %.3f µs, but not done: %s%s",
		e.At.Microseconds(), strings.Join(names, ", "), more)
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
			return s.stall()
		}
		if now > s.opts.Limit {
			return fmt.Errorf("sim: %w: %.3f µs", ErrLimit, s.opts.Limit.Microseconds())
		}
		for now >= s.nextSample {
			s.sample()
		}
		s.events++
		if id >= s.timers {
			s.timer(now, int(id-s.timers))
		} else {
			s.net.Fire(now, id)
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
	if s.net.NICFree(fabric.HostID(h)) && st.host.Transmit(now, &s.out) {
		s.inject(now, fabric.HostID(h))
	}
	if !st.done && st.host.Done() {
		st.done = true
		if s.working--; s.working == 0 {
			s.end = now
		}
	}
	s.arm(now, h)
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

func (s *Sim) stall() error {
	e := &StallError{At: s.timeline.Last()}
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
