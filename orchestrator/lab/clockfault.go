package lab

import (
	"strings"

	"weft/units"
)

// ClockFault is something that happens to a host's clock, or to what keeps it. One of Step, Skew, Down and Lies is set.
type ClockFault struct {
	Host string
	Step units.Time // the hardware clock moves by so much
	Skew float64    // the frequency changes by so much, as a ratio
	Over units.Time // and takes so long for it
	Down bool       // synchronization does not run on the host, for Fault.For
	Lies bool       // what the host tells others is wrong by Lie, until the next such fault
	Lie  units.Time
}

// clockFault reads one: {at: 5ms, clock: h3, step: -1us}, {..., skew: 5ppm, over: 2ms} {..., sync: off, for: 10ms} or
// {..., lies: 10us}.
func (s *section) clockFault(f field, hosts hosts) Fault {
	defer s.close()
	t := Fault{Clock: &ClockFault{Host: f.host(hosts)}}
	t.At, _ = quantity(s.field("at"), units.ParseTime, 0, maxStart)
	step, skew, sync, over, span, lies := s.field("step"), s.field("skew"), s.field("sync"), s.field("over"), s.field("for"), s.field("lies")
	given := 0
	for _, one := range []field{step, skew, sync, lies} {
		if one.n != nil {
			given++
		}
	}
	if given != 1 {
		f.problem("expected one of step: 1us, skew: 5ppm, lies: 10us and sync: off to happen to the clock")
	}
	if given > 0 && over.n != nil && skew.n == nil {
		over.problem("applies to skew")
	}
	if given > 0 && span.n != nil && sync.n == nil {
		span.problem("applies to sync: off; a clock that has stepped stays so")
	}
	if step.n != nil {
		t.Clock.Step, _ = quantity(step, units.ParseTime, -maxStep, maxStep)
	}
	if lies.n != nil {
		t.Clock.Lies = true
		t.Clock.Lie, _ = quantity(lies, units.ParseTime, -maxStep, maxStep)
	}
	if skew.n != nil {
		t.Clock.Skew = skew.signedRatio(maxSkew)
		t.Clock.Over, _ = quantity(over.or("0s", "ours: at once"), units.ParseTime, 0, maxStart)
	}
	if sync.n != nil {
		t.Clock.Down = true
		if _, ok := sync.enum(choice{built: []string{"off"}}); ok {
			t.For = span.or("true", "ours: to the end of the run").unlessEver()
		}
	}
	return t
}

// signedRatio reads a change of a frequency such as 5ppm or -5ppm.
func (f field) signedRatio(most float64) float64 {
	sign := 1.0
	if f.n.kind == scalar && strings.HasPrefix(f.n.text, "-") {
		n := *f.n
		n.text = n.text[1:]
		f.n, sign = &n, -1
	}
	return sign * f.ratio("", "", most, "5ppm")
}
