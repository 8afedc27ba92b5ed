package sim

import (
	"context"
	"unsafe"

	"weft/internal/prefetch"
	"weft/units"
)

// runPartitions is run for a network in partitions. All partitions work through the same stretch of
// time, no longer than the minimum delay between two of them, and then exchange what crosses from
// one to another: conservative parallel simulation (Chandy and Misra, 1979) with a common horizon.
// When the last host is done, the partitions finish their stretch; the events in it are counted.
func (s *Sim) runPartitions(ctx context.Context) error {
	lookahead := s.nets.Lookahead()
	active := make([]*partition, 0, len(s.partitions))
	each := s.opts.Each
	if each == nil {
		each = func(n int, work func(int)) {
			for i := range n {
				work(i)
			}
		}
	}
	var horizon units.Time
	work := func(i int) { active[i].work(horizon) }
	var checked int64
	for s.working() > 0 {
		next := s.turn()
		if at, ok := s.steps.due(s, next); ok {
			if err := s.steps.begin(s, at); err != nil {
				return err
			}
			next = s.next()
		}
		if next > s.horizon() {
			if err := s.stopped(ctx, s.nextLook); err != nil {
				return err
			}
			for _, p := range s.partitions {
				p.take()
			}
			actions := len(s.actions)
			if err := s.look(next); err != nil {
				return err
			}
			if len(s.actions) < actions { // they may have changed delays
				lookahead = s.nets.Lookahead()
			}
			continue
		}
		horizon = min(s.horizon(), next+lookahead-1)
		active = active[:0]
		for _, p := range s.partitions {
			if p.posted || p.next() <= horizon {
				active = append(active, p)
			}
		}
		each(len(active), work)
		if s.opts.After != nil {
			s.opts.After()
		}
		if err := s.firstFailure(); err != nil {
			return err
		}
		if events := s.Events(); events >= checked+checkEvery {
			checked = events
			if err := s.check(ctx, horizon, events); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn follows the work of all partitions. It returns the instant of the next event.
func (s *Sim) turn() units.Time {
	next := units.Never
	s.nets.Turn(func(to int, first units.Time) {
		s.partitions[to].posted = true
		next = min(next, first)
	})
	return min(next, s.next())
}

// next returns the instant of the next event, without what partitions have posted to each other.
func (s *Sim) next() units.Time {
	next := units.Never
	for _, p := range s.partitions {
		next = min(next, p.next())
	}
	return next
}

// next returns the instant of the partition's next event, without what others have posted to it.
func (p *partition) next() units.Time { return min(p.queue.Bound(), p.waiting) }

// take takes what other partitions have posted.
func (p *partition) take() {
	if p.posted {
		p.posted = false
		p.sim.nets.Take(p.index)
	}
}

// work works through a stretch of time, up to the horizon.
func (p *partition) work(horizon units.Time) {
	p.take()
	p.prefetch()
	before := p.events
	for p.failure == nil {
		id, now, ok := p.queue.PopUntil(horizon)
		if !ok {
			break
		}
		p.fire(now, id)
	}
	p.fired = p.events - before
	p.waiting = p.sim.nets.Flush(p.index, horizon)
}

// prefetch asks for what a stretch of time with as many events as the last one touches.
func (p *partition) prefetch() {
	if !p.sim.nets.Prefetch(p.index, p.fired) {
		return
	}
	for _, h := range p.own {
		prefetch.Lines(unsafe.Pointer(&p.sim.hosts[h]), 1)
	}
	for step := range 3 {
		for _, h := range p.own {
			if l, ok := p.sim.hosts[h].host.(Prefetching); ok {
				l.Prefetch(step)
			}
		}
	}
}
