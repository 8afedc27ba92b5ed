package lab

import "weft/units"

const maxFaults = 10_000

// faults reads what happens to links and hosts during the run.
func (d *decoder) faults(f field, t Topology) []Fault {
	if f.n != nil && f.n.kind == scalar && f.n.text == "off" {
		return nil
	}
	var faults []Fault
	hosts := hostsOf(t)
	for _, item := range f.items(maxFaults) {
		s := item.open()
		if corrupt := s.field("corrupt"); corrupt.n != nil {
			faults = append(faults, s.corruption(corrupt, hosts))
			continue
		}
		if clock := s.field("clock"); clock.n != nil {
			faults = append(faults, s.clockFault(clock, hosts))
			continue
		}
		faults = append(faults, s.fault(hosts))
	}
	return faults
}

// corruption reads a byte that is wrong.
func (s *section) corruption(f field, hosts hosts) Fault {
	defer s.close()
	t := Fault{}
	t.At, _ = quantity(s.field("at"), units.ParseTime, 0, maxStart)
	t.Corrupt = f.victim(hosts)
	return t
}

// victim reads the name of a host of the lab.
func (f field) victim(hosts hosts) string {
	name, ok := f.text("the name of a host")
	if !ok {
		return ""
	}
	if hosts.count > 0 && !hosts.has(name) {
		f.problem("no host is named %q%s", clip(name), hosts.hint(f.d, name))
		return ""
	}
	f.record(name)
	return name
}

// fault reads one: a link that is down for a time, or to the end of the run, or one whose line is another for a time; or a
// host that ends, or stands still for a time.
func (s *section) fault(hosts hosts) Fault {
	defer s.close()
	var t Fault
	t.At, _ = quantity(s.field("at"), units.ParseTime, 0, maxStart)
	link, host, kill, pause := s.field("link"), s.field("host"), s.field("kill"), s.field("pause")
	if host.n != nil {
		s.hostFault(&t, host.victim(hosts), host, kill, pause)
		for _, key := range []string{"link", "down", "for", "reroute", "rate", "delay", "loss", "bit_errors", "toward"} {
			if f := s.field(key); f.written() {
				f.problem("given together with host; a fault is of a link or of a host")
			}
		}
		return t
	}
	for _, f := range []field{kill, pause} {
		if f.n != nil {
			f.problem("happens to a host; expected host: h3, say")
		}
	}
	t.Link = link.linkName()
	down, span, reroute := s.field("down"), s.field("for"), s.field("reroute")
	changed := s.line(&t)
	if toward := s.field("toward"); toward.n != nil {
		t.Toward, _ = toward.enumLike("the name of one end of the link")
		if changed.n == nil {
			toward.problem("applies to a line that changes")
		}
	}
	switch {
	case down.n != nil:
		t.Down = true
		t.For = down.unlessEver()
		if changed.n != nil {
			changed.problem("given together with down; a link that is down has no line")
		}
		if span.n != nil {
			span.problem("given together with down; expected down: %s in its place", span.n)
		}
		t.Reroute = unless(reroute, "off", func(f field) (units.Time, bool) {
			return quantity(f, units.ParseTime, units.Nanosecond, maxStart)
		})
		return t
	case changed.n == nil && t.Link != "":
		link.problem("nothing happens to it; expected down, or another rate, delay, loss or bit_errors")
	}
	if reroute.written() {
		reroute.problem("applies to a link that goes down")
	}
	t.For = span.or("true", "ours: to the end of the run").unlessEver()
	return t
}

// hostFault reads what happens to a host.
func (s *section) hostFault(t *Fault, name string, host, kill, pause field) {
	t.Host = name
	switch {
	case kill.n != nil && pause.n != nil:
		pause.problem("given together with kill; a host that has ended does not stand still")
	case kill.n != nil:
		if t.Kill = kill.flag(); !t.Kill {
			kill.problem("nothing happens to the host; expected kill: true, or no fault")
		}
	case pause.n != nil:
		t.Pause = true
		t.For, _ = quantity(pause, units.ParseTime, units.Nanosecond, maxStart)
	default:
		host.problem("nothing happens to it; expected kill: true, or pause: 1ms, say")
	}
}

// line reads what becomes of a line, and returns the first of the keys that is there.
func (s *section) line(t *Fault) (first field) {
	first = s.field("rate")
	if first.n != nil {
		v, _ := first.rate()
		t.Rate = &v
	}
	keep := func(f field) field {
		if first.n == nil {
			first = f
		}
		return f
	}
	if f := keep(s.field("delay")); f.n != nil {
		v, _ := f.delay()
		t.Delay = &v
	}
	if f := keep(s.field("loss")); f.n != nil {
		v := f.probability()
		t.Loss = &v
	}
	if f := keep(s.field("bit_errors")); f.n != nil {
		v := f.probability()
		t.BitErrors = &v
	}
	return first
}

// unlessEver reads how long something lasts; true, or nothing, is to the end of the run, 0 here.
func (f field) unlessEver() units.Time {
	if f.n != nil && f.n.null() {
		f.record("true")
		return 0
	}
	return unless(f, "true", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, units.Nanosecond, maxStart)
	})
}
