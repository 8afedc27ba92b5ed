package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weft/eventqueue"
	"weft/fabric"
	"weft/units"
)

// ErrLimit is wrapped by the error of a run in which lab time passed Options.Limit.
var ErrLimit = errors.New("lab time limit reached")

// StallError is the error of a run that makes no progress although hosts are not done. Either
// no event is left, because a packet was lost that nothing sends again, or because hosts
// or switches wait for each other; or ports have been paused for longer than Options.Stall.
type StallError struct {
	At      units.Time // of the last event
	Paused  units.Time // since when a port that holds packets has been paused; -1: no event was left
	Waiting []string   // names of hosts that are not done
	Network []string   // what keeps packets from moving, see Sim.Waiting
}

func (e *StallError) Error() string {
	why := "no event is left"
	if e.Paused >= 0 {
		why = fmt.Sprintf("packets wait in a port that has been paused since %.3f us", e.Paused.Microseconds())
	}
	text := fmt.Sprintf("sim: %s at %.3f us, but these hosts are not done: %s", why, e.At.Microseconds(),
		some(e.Waiting, ", "))
	if len(e.Network) > 0 {
		text += "\n  " + some(e.Network, "\n  ")
	}
	return text
}

// some joins the first elements of a list and adds the number of the others.
func some(list []string, separator string) string {
	const most = 8
	if len(list) <= most {
		return strings.Join(list, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], separator), len(list)-most)
}

// checkEvery is the number of events between checks of the context and reports of progress.
const checkEvery = 4096

// Run runs until every host is done, and checks that the network has accounted for every packet. It
// returns an error if a host fails, no event is left (StallError), lab time passes the
// limit (ErrLimit), or ctx is done; the accessors then return how far the run came. Run may be
// called once.
func (s *Sim) Run(ctx context.Context) error {
	if s.started {
		return errors.New("sim: run twice")
	}
	s.started = true
	err := s.run(ctx)
	return errors.Join(err, s.net.CheckConservation())
}

func (s *Sim) run(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.firstFailure(); err != nil {
		return err
	}
	if len(s.partitions) > 1 {
		return s.runPartitions(ctx)
	}
	p := s.partitions[0]
	for p.working > 0 {
		id, now, ok := p.queue.PopUntil(s.horizon())
		if !ok {
			if err := s.stopped(ctx, s.nextLook); err != nil {
				return err
			}
			if err := s.look(p.queue.Bound()); err != nil {
				return err
			}
			continue
		}
		if s.steps != nil && id >= p.timers && s.steps.begins(s, now, int(p.own[id-p.timers])) {
			p.queue.Set(id, now) // another event may come first in the new epoch
			if err := s.steps.begin(s, now); err != nil {
				return err
			}
			continue
		}
		p.fire(now, id)
		if p.failure != nil {
			return p.failure
		}
		if p.events%checkEvery == 0 {
			if err := s.check(ctx, now, p.events); err != nil {
				return err
			}
		}
	}
	return nil
}

// horizon returns the last instant whose events may fire before the next look.
func (s *Sim) horizon() units.Time { return min(s.nextLook-1, s.opts.Limit) }

// fire handles one event of a partition.
func (p *partition) fire(now units.Time, id eventqueue.ID) {
	p.events++
	if id < p.timers {
		p.net.Fire(now, id)
	} else {
		p.timer(now, int(p.own[id-p.timers]))
	}
}

// start starts every host, in order, unless ctx is done before.
func (s *Sim) start(ctx context.Context) error {
	for h := range s.hosts {
		if err := s.stopped(ctx, 0); err != nil {
			return err
		}
		st := &s.hosts[h]
		st.host.Start(0)
		st.partition.settle(0, h)
	}
	for h := range s.hosts {
		s.hosts[h].partition.checkFailed(0, h)
	}
	return nil
}

// firstFailure returns the earliest failure of all partitions.
func (s *Sim) firstFailure() error {
	first := units.Never
	for _, p := range s.partitions {
		if s.failure == nil && p.failure != nil && p.failed < first {
			first = p.failed
		}
	}
	for _, p := range s.partitions {
		if s.failure == nil && p.failure != nil && p.failed == first {
			s.failure = p.failure
		}
	}
	return s.failure
}

// stopped returns an error if ctx is done. It is also called before each look, because lab time may
// advance far with few events, as when a packet is sent at one bit a second.
func (s *Sim) stopped(ctx context.Context, now units.Time) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sim: stopped at %.3f us: %w", now.Microseconds(), err)
	}
	return nil
}

// check handles, between events, what comes from outside: the context, Options.After and Progress.
func (s *Sim) check(ctx context.Context, now units.Time, events int64) error {
	if err := s.stopped(ctx, now); err != nil {
		return err
	}
	if s.opts.After != nil && len(s.partitions) == 1 {
		s.opts.After()
	}
	if s.opts.Progress != nil && events >= s.nextProgress {
		s.opts.Progress(now, events)
		s.nextProgress = events + s.opts.ProgressEvery
	}
	return nil
}

// timer handles the entity of host h. If the host has postponed its deadline since the entity was
// armed, the entity is armed again here: most deadlines are postponed many times before they are
// due.
func (p *partition) timer(now units.Time, h int) {
	st := &p.sim.hosts[h]
	st.timer = units.Never
	if at, ok := st.host.Deadline(); !ok || at > now {
		p.arm(now, h)
		return
	}
	if st.advanced != now {
		st.advanced, st.spins = now, 0
	}
	st.spins++
	st.host.Advance(now)
	p.settle(now, h)
}

// settle follows every call into host h: it pulls a packet if the NIC is free, and arms the timer.
func (p *partition) settle(now units.Time, h int) {
	st := &p.sim.hosts[h]
	if p.net.NICs.Free(fabric.HostID(h)) {
		if st.host.Transmit(now, &p.out) {
			p.inject(now, fabric.HostID(h))
		}
	} else if p.sim.controls != nil {
		p.pullControl(now, h)
	}
	if !st.done && st.host.Done() {
		st.done = true
		if p.working--; p.working == 0 {
			p.end = now
		}
	}
	p.arm(now, h)
	p.checkFailed(now, h)
}

// pullControl pulls a packet of class 0 if the NIC of host h is free for that class but paused for
// the other.
func (p *partition) pullControl(now units.Time, h int) {
	c := p.sim.controls[h]
	if c != nil && p.net.NICs.FreeFor(fabric.HostID(h), 0) && c.TransmitControl(now, &p.out) {
		p.inject(now, fabric.HostID(h))
	}
}

// maxSpins is how often a host may be advanced at one instant without sending anything.
const maxSpins = 1000

// arm ensures that the entity of host h fires at its deadline or before.
func (p *partition) arm(now units.Time, h int) {
	st := &p.sim.hosts[h]
	at, ok := st.host.Deadline()
	if !ok || at >= st.timer {
		return
	}
	if at <= now {
		if st.advanced == now {
			if !p.net.NICs.Free(fabric.HostID(h)) {
				p.await(now, h)
				return // it was advanced and waits for its NIC: Idle settles it again
			}
			if st.spins > maxSpins {
				p.fail(now, fmt.Errorf("sim: %s does not get past its deadline at %d ps, advanced %d times at %d ps",
					p.sim.name(h), at, st.spins, now))
				return
			}
		}
		at = now
	}
	st.timer = at
	p.queue.Set(st.entity, at)
}

// await arms the entity of host h, which waits for a NIC whose link is down, for the instant before
// which it is not done: the link may stay down for good.
func (p *partition) await(now units.Time, h int) {
	st := &p.sim.hosts[h]
	if st.done || !p.net.NICs.Down(fabric.HostID(h)) {
		return
	}
	if l, ok := st.host.(Lasting); ok && l.Until() > now && l.Until() < st.timer {
		st.timer = l.Until()
		p.queue.Set(st.entity, st.timer)
	}
}

// cutOff reports whether host h waits for a NIC whose link is down and stays so.
func (s *Sim) cutOff(now units.Time, h int) bool {
	st := &s.hosts[h]
	at, ok := st.host.Deadline()
	return s.nextAction == units.Never && ok && at <= now && st.partition.net.NICs.Down(fabric.HostID(h))
}

// stall returns the StallError of the present state.
func (s *Sim) stall(paused units.Time) error {
	e := &StallError{Paused: paused, Network: s.Waiting()}
	for _, p := range s.partitions {
		e.At = max(e.At, p.queue.Last())
	}
	for h := range s.hosts {
		if !s.hosts[h].done {
			e.Waiting = append(e.Waiting, s.name(h))
		}
	}
	return e
}

// fail keeps the first failure of the partition.
func (p *partition) fail(now units.Time, err error) {
	if p.failure == nil {
		p.failure, p.failed = err, now
	}
}

// checkFailed fails the partition if host h has failed.
func (p *partition) checkFailed(now units.Time, h int) {
	if err := p.sim.hosts[h].host.Failed(); err != nil {
		p.fail(now, err) // it names the host
	}
}

// look handles what is due at nextLook, after all events before it. next is the instant of the next
// event. It returns an error if nothing is left to happen or the limit is passed.
func (s *Sim) look(next units.Time) error {
	switch {
	case next == units.Never && s.nextAction == units.Never:
		return s.stall(-1)
	case s.nextLook > s.opts.Limit:
		return fmt.Errorf("sim: %w: %.3f us", ErrLimit, s.opts.Limit.Microseconds())
	}
	now := s.nextLook
	if s.nextStall == now {
		if since, stuck := s.net.Stuck(); stuck && now-since >= s.opts.Stall {
			s.failure = s.stall(since)
		} else if s.failure == nil && s.resting(now) {
			s.failure = s.stall(-1)
		}
		s.nextStall += s.opts.Stall
	}
	if s.nextRecord == now {
		s.steps.glance(s, now)
	}
	if s.nextTick == now {
		s.opts.Tick(now)
		s.nextTick += s.opts.TickEvery
	}
	if s.nextSample == now {
		s.net.Sample(now, func(port int, queued units.Bytes) { s.opts.Sample(now, port, queued) })
		s.nextSample += s.opts.SampleEvery
	}
	if s.nextFrame == now {
		s.nextFrame = s.opts.Frame(now)
	}
	for len(s.actions) > 0 && s.actions[0].At == now {
		s.act(now)
	}
	s.schedule()
	return s.firstFailure()
}

// resting reports whether all hosts rest or are cut off, and did so without progress at the
// previous check as well. In the time between two checks, packets that are not paused have arrived.
func (s *Sim) resting(now units.Time) bool {
	moved, rest := units.Bytes(0), true
	for h := range s.hosts {
		r, ok := s.hosts[h].host.(Resting)
		if !ok {
			return false
		}
		done, _ := r.Progress()
		moved += done
		rest = rest && (r.Resting() || s.cutOff(now, h))
	}
	before := s.moved
	s.moved = -1
	if rest {
		s.moved = moved
	}
	return rest && before == moved
}

// act performs the next action.
func (s *Sim) act(now units.Time) {
	a := s.actions[0]
	s.actions = s.actions[1:]
	s.steps.forget()
	if err := a.Do(now, s.net); err != nil && s.failure == nil {
		s.failure = fmt.Errorf("sim: action at %.3f us: %w", now.Microseconds(), err)
	}
}
