package lab

import "weft/units"

const maxFaults = 10_000

// faults reads what happens to links during the run.
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
		faults = append(faults, s.fault())
	}
	return faults
}

// corruption reads a byte that is wrong.
func (s *section) corruption(f field, hosts hosts) Fault {
	defer s.close()
	t := Fault{}
	t.At, _ = quantity(s.field("at"), units.ParseTime, 0, maxStart)
	name, ok := f.text("the name of a host")
	switch {
	case !ok:
		return t
	case hosts.count > 0 && !hosts.has(name):
		f.problem("no host is named %q%s", clip(name), hosts.hint(f.d, name))
		return t
	}
	f.record(name)
	t.Corrupt = name
	return t
}

// fault reads one: a link that is down for a time, or to the end of the run, or one whose line is another for a time.
func (s *section) fault() Fault {
	defer s.close()
	var t Fault
	t.At, _ = quantity(s.field("at"), units.ParseTime, 0, maxStart)
	link := s.field("link")
	if link.n != nil || s.n.at0("host") == nil {
		t.Link = link.linkName()
	}
	down, span, reroute := s.field("down"), s.field("for"), s.field("reroute")
	changed := s.line(&t)
	s.field("host").later("faults of hosts are")
	s.field("kill").later("ending a host is")
	s.field("pause").later("pausing a host is")
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

// unlessEver reads how long something lasts; true is to the end of the run, 0 here.
func (f field) unlessEver() units.Time {
	return unless(f, "true", func(f field) (units.Time, bool) {
		return quantity(f, units.ParseTime, units.Nanosecond, maxStart)
	})
}
