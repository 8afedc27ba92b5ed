package realtime

import (
	"errors"

	"golang.org/x/sys/unix"

	"weft/fabric"
	"weft/internal/control"
	"weft/units"
)

// serve handles a request of the orchestrator while lab time runs; captures may start before. An
// error ends the process; a request that fails is answered with its error.
func (l *loop) serve(m control.Message, fds []int) error {
	kept := false
	defer func() {
		if kept {
			return
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	now := l.labNow()
	if now < 0 && m.Kind != KindCapture {
		return l.conn.SendValue(KindDid, Did{Error: "lab time has not begun"})
	}
	l.fire(now)
	if m.Kind == KindLook {
		return l.conn.SendValue(KindState, l.state(now))
	}
	var err error
	switch m.Kind {
	case KindChange:
		var c fabric.Change
		if err = m.Decode(&c); err == nil {
			err = l.changeNow(now, &c)
		}
	case KindHalt:
		var h Halt
		if err = m.Decode(&h); err == nil {
			l.ports[h.Host].halted = h.Halted
		}
	case KindPlug:
		var p Plug
		if err = m.Decode(&p); err == nil {
			kept, err = l.plug(p, fds)
		}
	case KindCapture:
		var c Capture
		if err = m.Decode(&c); err == nil {
			kept, err = l.capture(c, fds)
		}
	}
	var did Did
	if err != nil {
		did.Error = err.Error()
	}
	return l.conn.SendValue(KindDid, did)
}

// changeNow makes a change that was not planned.
func (l *loop) changeNow(now units.Time, c *fabric.Change) error {
	if err := l.part.refuse(l, c); err != nil {
		return err
	}
	return c.Make(now, l.net)
}

// plug replaces the descriptor of a host that was started again.
func (l *loop) plug(p Plug, fds []int) (kept bool, err error) {
	port := &l.ports[p.Host]
	if !port.gone && !port.full {
		if err := l.poll.Remove(port.fd); err != nil && !errors.Is(err, unix.ENOENT) {
			return false, err
		}
	}
	unix.Close(port.fd)
	port.gone, port.down, port.full = false, false, false
	if err := l.attach(p.Host, Port{FD: fds[0], Kind: p.Kind}); err != nil {
		port.gone, port.fd = true, -1
		return false, err
	}
	return true, nil
}

// state returns a snapshot of the network.
func (l *loop) state(now units.Time) *State {
	s := &State{
		At: now, Network: l.net.Counters(),
		Ports: make([]PortState, l.net.Ports()), Hosts: make([]HostState, len(l.ports)),
		Refused: l.report.Refused, Halted: l.report.Halted,
		Unreceived: l.report.Unreceived, Stalls: []Stalls{l.behind.Stalls},
	}
	for i := range s.Ports {
		s.Ports[i] = PortState{
			Up: l.net.Links().Up(i), Link: l.net.Links().State(i), Counters: l.net.PortCounters(i),
		}
	}
	l.net.Sample(now, func(port int, queued units.Bytes) { s.Ports[port].Queued = queued })
	for h := range l.ports {
		p := &l.ports[h]
		s.Hosts[h] = HostState{
			Gone: p.gone, Down: !p.isUp(), Own: l.own[h], Refusals: l.refusals[h],
		}
	}
	names := make([]string, len(l.cfg.Hosts))
	for h := range names {
		names[h] = l.cfg.Hosts[h].Name
	}
	s.Waiting = l.net.Waiting(names)
	return s
}
