package run

import (
	"weft/fabric"
	"weft/host"
	"weft/orchestrator/experiment"
	"weft/results/frames"
	"weft/sim"
	"weft/transport"
	"weft/units"
)

// memoSamples makes the samples of steps that the simulator skips: of queues, of rates, and frames.
// It implements sim.Samples. While a cycle is executed once more it looks at the run at every time
// since the beginning of the cycle at which one of them falls. What counts from the start has grown
// since by as much as in every cycle.
type memoSamples struct {
	sim    *sim.Sim
	hosts  []*host.Host
	framer *framer // nil: there are no frames
	takers []taker

	looks []look
	last  seen          // as of the last look
	sent  []units.Bytes // by port: see fabric.Network.Survey
	grown seen          // in a cycle
}

// taker is a kind of samples.
type taker struct {
	next func(after units.Time) units.Time // instant of the first sample after one
	take func(at units.Time, g *seen)
}

// look is what has changed since the look before.
type look struct {
	since units.Time // beginning of the cycle
	ports []frames.Port
	conns []frames.Conn
}

// seen is what samples see of a run.
type seen struct {
	ports   []fabric.PortState // by port
	waiting []int32            // ports whose state has more than counters
	arrived []units.Bytes      // by connection
	windows []units.Bytes      // by connection
	order   []transport.ConnID // of connections, as hosts have them
}

// survey is fabric.Network.Survey.
func (g *seen) survey(sent []units.Bytes, f func(port int, p fabric.PortState)) {
	for i := range g.ports {
		if p := &g.ports[i]; p.Queued != 0 || p.Paused || p.Sent != sent[i] {
			f(i, *p)
			sent[i] = p.Sent
		}
	}
}

// each calls f for every connection, as Host.Arrived of all hosts does.
func (g *seen) each(f func(c transport.ConnID, bytes units.Bytes)) {
	for _, c := range g.order {
		f(c, g.arrived[c])
	}
}

// newMemoSamples returns the samples of an experiment; nil: it has none. queue handles a sample of
// a queue; rates and f take the others, if the experiment has them.
func newMemoSamples(
	x *experiment.Experiment, hosts []*host.Host,
	queue func(units.Time, int, units.Bytes, fabric.PortCounters), rates *rateSampler, f *framer,
) *memoSamples {
	ports, conns := len(x.Fabric.Ports), len(x.Conns)
	m := &memoSamples{framer: f, sent: make([]units.Bytes, ports)}
	every := func(interval units.Time) func(units.Time) units.Time {
		return func(after units.Time) units.Time { return (after/interval + 1) * interval }
	}
	if interval := x.Lab.Measure.Queues; interval > 0 {
		m.takers = append(m.takers, taker{every(interval), func(at units.Time, g *seen) {
			for i := range g.ports {
				if p := &g.ports[i]; p.Queued > 0 {
					queue(at, i, p.Queued, fabric.PortCounters{Marks: p.Marks, Drops: p.Drops})
				}
			}
		}})
	}
	if interval := x.Lab.Measure.Rates; interval > 0 {
		m.hosts = hosts
		m.takers = append(m.takers, taker{every(interval), func(at units.Time, g *seen) {
			rates.add(at, g.each)
		}})
	}
	if f != nil {
		if f.hosts != nil {
			m.hosts = hosts
		}
		m.takers = append(m.takers, taker{f.Next, func(at units.Time, g *seen) {
			f.add(at, g.survey, g.each, g.windows)
		}})
	}
	if m.takers == nil {
		return nil
	}
	for _, s := range []*seen{&m.last, &m.grown} {
		s.ports = make([]fabric.PortState, ports)
		s.arrived, s.windows = make([]units.Bytes, conns), make([]units.Bytes, conns)
	}
	arrivals(m.hosts)(func(c transport.ConnID, _ units.Bytes) { m.last.order = append(m.last.order, c) })
	return m
}

// of sets the run whose samples these are.
func (m *memoSamples) of(s *sim.Sim) {
	if m != nil {
		m.sim = s
	}
}

// Instants implements sim.Samples. Frames may come less often than that.
func (m *memoSamples) Instants(after, until units.Time, f func(at units.Time)) {
	for _, t := range m.takers {
		for at := t.next(after); at <= until; at = t.next(at) {
			f(at)
		}
	}
}

// Begin implements sim.Samples. To the first look everything is new.
func (m *memoSamples) Begin() {
	m.looks = m.looks[:0]
	clear(m.sent)
	m.last.clear()
}

// clear forgets everything but the order of connections.
func (g *seen) clear() {
	clear(g.ports)
	clear(g.arrived)
	clear(g.windows)
	g.waiting = g.waiting[:0]
}

// Look implements sim.Samples.
func (m *memoSamples) Look(now, since units.Time) {
	l := look{since: since}
	m.sim.Survey(now, m.sent, func(port int, p fabric.PortState) {
		l.ports = append(l.ports, frames.PortAt(port, p))
	})
	arrivals(m.hosts)(func(c transport.ConnID, bytes units.Bytes) {
		window := m.framer.window(c)
		if bytes != m.last.arrived[c] || window != m.last.windows[c] {
			l.conns = append(l.conns, frames.Conn{Conn: uint32(c), Arrived: bytes, Window: window})
		}
	})
	m.last.apply(&l, &m.grown, 0)
	m.looks = append(m.looks, l)
}

// apply makes g what a look saw, after a number of cycles more.
func (g *seen) apply(l *look, grown *seen, cycles int64) {
	for _, i := range g.waiting {
		g.ports[i].Queued, g.ports[i].Paused = 0, false
	}
	g.waiting = g.waiting[:0]
	for _, p := range l.ports {
		more := &grown.ports[p.Port]
		g.ports[p.Port] = fabric.PortState{
			Queued: p.Queued, Paused: p.Paused, Sent: p.Sent + more.Sent*units.Bytes(cycles),
			Marks: p.Marks + more.Marks*cycles, Drops: p.Drops + more.Drops*cycles,
		}
		if p.Queued != 0 || p.Paused {
			g.waiting = append(g.waiting, p.Port)
		}
	}
	for _, c := range l.conns {
		g.arrived[c.Conn], g.windows[c.Conn] = c.Arrived+grown.arrived[c.Conn]*units.Bytes(cycles), c.Window
	}
}

// measureGrowth sets grown to what has grown from the first look to the last.
func (m *memoSamples) measureGrowth() {
	m.grown.clear()
	begun := &m.looks[0]
	for i := range m.last.ports {
		p := &m.last.ports[i]
		m.grown.ports[i] = fabric.PortState{Sent: p.Sent, Marks: p.Marks, Drops: p.Drops}
	}
	copy(m.grown.arrived, m.last.arrived)
	for _, p := range begun.ports {
		g := &m.grown.ports[p.Port]
		g.Sent, g.Marks, g.Drops = g.Sent-p.Sent, g.Marks-p.Marks, g.Drops-p.Drops
	}
	for _, c := range begun.conns {
		m.grown.arrived[c.Conn] -= c.Arrived
	}
}

// Make implements sim.Samples.
func (m *memoSamples) Make(now, took units.Time, times int) (frame units.Time) {
	m.measureGrowth()
	until := now + took*units.Time(times)
	for _, t := range m.takers {
		cycle, done := int64(0), 0
		for at := t.next(now); at <= until; at = t.next(at) {
			k, since := 1+int64((at-now)/took), (at-now)%took
			if k != cycle {
				cycle, done = k, 0
				m.last.clear()
			}
			for ; done < len(m.looks) && m.looks[done].since <= since; done++ {
				m.last.apply(&m.looks[done], &m.grown, cycle)
			}
			t.take(at, &m.last)
		}
	}
	if m.framer == nil {
		return units.Never
	}
	return m.framer.Next(until)
}
