package lab

import (
	"slices"
	"strings"

	clocks "weft/clocksync/node"
	"weft/results/expect"
)

// clocksAlone removes the workload from a lab that was read, and the measurements and expectations
// that need it. Without a length from the file or the command line, the run lasts as long as its
// clock synchronization needs to be judged.
func (d *decoder) clocksAlone(l *Lab) {
	if l.Clocks.Kind().Perfect {
		d.refuse(l, "clocks.sync", "perfect clocks leave nothing to measure; expected "+
			clocks.With(func(f clocks.Facts) bool { return !f.Perfect }))
		return
	}
	if l.Clocks.Sample == 0 {
		d.refuse(l, "clocks.sample", "off leaves nothing to measure; expected an interval such as 10us")
	}
	l.Workload, l.Programs = nil, nil
	l.Measure.Rates, l.Measure.Events, l.Measure.CWND, l.Measure.Acks = 0, "", false, false
	l.Expect = slices.DeleteFunc(l.Expect, func(e Expectation) bool {
		of, err := expect.Parse(e.Text)
		if err != nil { // reported later
			return false
		}
		names := of.Measured()
		other := func(name string) bool { return !strings.HasPrefix(name, "clock_") }
		if len(names) > 0 && !slices.ContainsFunc(names, other) {
			return false
		}
		e.Why = "not about clocks alone, and weft clock leaves the workload out"
		l.Unmet = append(l.Unmet, e)
		return true
	})
	if l.Clocks.For == 0 {
		l.Clocks.For = l.Clocks.Alone()
	}
}

// judgeNone moves all expectations, their conditions included, to Unmet, and says why.
func (l *Lab) judgeNone(why string) {
	for _, e := range l.Expect {
		e.Text, e.When, e.Why = e.That(), "", why
		l.Unmet = append(l.Unmet, e)
	}
	l.Expect = nil
}

// withoutWorkload removes the settings of a workload that was removed, once conditions were
// decided.
func (l *Lab) withoutWorkload() {
	l.Sources = slices.DeleteFunc(l.Sources, func(s Source) bool { return strings.HasPrefix(s.Path, "workload.") })
}

// refuse reports a problem with the value at a path of a lab that was read.
func (d *decoder) refuse(l *Lab, path, message string) {
	d.report.again(l.problem(path, message))
}
