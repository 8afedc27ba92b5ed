package lab

import (
	"strings"

	"weft/units"
)

// ClocksAlone takes the workload out of a lab, and the expectations that are not about clocks. A length of 0 is what the lab says, or
// what its synchronization needs.
func (l *Lab) ClocksAlone(length units.Time) error {
	if l.Clocks.Kind().Perfect {
		return l.Errorf("clocks.sync", "perfect clocks leave nothing to measure; try --set clocks.sync=huygens")
	}
	if l.Clocks.Sample == 0 {
		return l.Errorf("clocks.sample", "off leaves nothing to measure; expected an interval such as 10us")
	}
	l.Workload = nil
	l.Measure.Rates, l.Measure.Events = 0, ""
	var kept []Expectation
	for _, e := range l.Expect {
		if strings.HasPrefix(e.Text, "clock_") {
			kept = append(kept, e)
		}
	}
	l.Expect = kept
	var sources []Source
	for _, s := range l.Sources {
		if !strings.HasPrefix(s.Path, "workload.") {
			sources = append(sources, s)
		}
	}
	l.Sources = sources
	switch {
	case length > 0:
		l.Clocks.For = length
	case l.Clocks.For > 0:
	default:
		l.Clocks.For = l.Clocks.Alone()
	}
	return nil
}
