package lab

import (
	"weft/orchestrator/topology"
	"weft/params"
	"weft/units"
)

const maxFaults = 10_000

// faults reads what happens to links and hosts during the run.
func (d *decoder) faults(f field, hosts hosts) []Fault {
	if f.n != nil && f.n.kind == scalar && f.n.text == "off" {
		return nil
	}
	var faults []Fault
	for _, item := range f.items(maxFaults) {
		s := item.open()
		var t Fault
		if corrupt := s.field("corrupt"); corrupt.n != nil {
			t = s.corruption(corrupt, hosts)
		} else if clock := s.field("clock"); clock.n != nil {
			t = s.clockFault(clock, hosts)
		} else {
			t = s.fault(hosts)
		}
		t.Index = item.index
		faults = append(faults, t)
	}
	return faults
}

// corruption reads a byte that is wrong.
func (s *section) corruption(f field, hosts hosts) Fault {
	defer s.close()
	t := Fault{}
	t.At, _ = quantity(s.field("at"), units.ParseTime, 0, maxStart)
	t.Corrupt = f.host(hosts)
	return t
}

// host reads the name of a host of the lab; "": it is reported.
func (f field) host(hosts hosts) string {
	name, ok := f.text("the name of a host")
	if !ok {
		return ""
	}
	if hosts.count > 0 && !hosts.has(name) {
		f.problem("no host is named %q%s", params.Clip(name), hosts.hint(f.d, name))
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
		for _, key := range []string{"link", "down", "for", "reroute", "rate", "delay", "loss", "bit_errors", "toward"} {
			if f := s.field(key); f.written() {
				f.problem("given together with host; a fault is of a link or of a host")
			}
		}
		s.hostFault(&t, host.host(hosts), host, kill, pause)
		return t
	}
	for _, f := range []field{kill, pause} {
		if f.n != nil {
			f.problem("happens to a host; expected host: h3, say")
		}
	}
	link.value(params.LinkName(&t.Link))
	down, span, reroute := s.field("down"), s.field("for"), s.field("reroute")
	changed := s.line(&t)
	if toward := s.field("toward"); toward.n != nil {
		toward.value(params.Matching(&t.Toward, params.NameText, "h0", "the name of one end of the link", "%q is not the name of one end of the link"))
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
	case changed.n == nil && link.n != nil && len(s.unknown()) == 0: // else what happens has another name
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
	if kill.n == nil && pause.n == nil && len(s.unknown()) == 0 {
		host.problem("nothing happens to it; expected kill: true, or pause: 1ms, say")
	}
	if kill.n != nil && pause.n != nil {
		pause.problem("given together with kill; a host that has ended does not stand still")
	}
	if kill.n != nil {
		var ok bool
		if _, ok = kill.value(params.Flag(&t.Kill)); ok && !t.Kill && pause.n == nil {
			kill.problem("nothing happens to the host; expected kill: true, or no fault")
		}
	}
	if pause.n != nil {
		t.Pause = true
		t.For, _ = quantity(pause, units.ParseTime, units.Nanosecond, maxStart)
	}
}

// line reads what becomes of a line, and returns the first of the keys that is there.
func (s *section) line(t *Fault) (first field) {
	first = s.field("rate")
	if first.n != nil {
		var v units.Bandwidth
		first.value(params.Bandwidth(&v))
		t.Rate = &v
	}
	keep := func(f field) field {
		if first.n == nil {
			first = f
		}
		return f
	}
	if f := keep(s.field("delay")); f.n != nil {
		var v units.Time
		f.value(params.Time(&v, 0, topology.MaxDelay))
		t.Delay = &v
	}
	if f := keep(s.field("loss")); f.n != nil {
		var v float64
		f.value(params.Probability(&v))
		t.Loss = &v
	}
	if f := keep(s.field("bit_errors")); f.n != nil {
		var v float64
		f.value(params.Probability(&v))
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
