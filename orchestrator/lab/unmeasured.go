package lab

import (
	"fmt"
	"slices"
	"strings"

	"weft/results/expect"
	"weft/results/record"
	"weft/transport"
)

// warnUnmeasured notes each expectation about a number that no run of the lab measures: it will be
// missed, which is better known before a long sweep than after it.
func (l *Lab) warnUnmeasured() {
	for i := range l.Expect {
		e := &l.Expect[i]
		expr, err := expect.Parse(e.Text)
		if err != nil || expr.Cross() {
			continue // reported elsewhere; a line across points is about those that it selects
		}
		for _, name := range expr.Measured() {
			if why := l.unmeasured(name); why != "" {
				l.notes = append(l.notes, note{fmt.Sprintf("expect.%d", e.Index),
					fmt.Sprintf("%s has no value here, so that %q will be missed: %s", name, e.Text, why)})
				break
			}
		}
	}
}

// warnIdleMeasures notes each written key of the measure section that records nothing in the lab.
// Keys about queues and frames always record: they cover all packets, also those of programs.
func (l *Lab) warnIdleMeasures() {
	m := &l.Measure
	messages := "no message is sent"
	switch {
	case l.Background.Load > 0:
		messages = "only background traffic is sent, and nobody looks into its packets"
	case len(l.Programs) > 0:
		messages = noPackets
	}
	compared := !l.Clocks.Kind().Perfect && l.Clocks.Sample > 0
	for _, c := range []struct {
		key  string
		idle bool
		why  string
	}{
		{"rates", m.Rates > 0 && len(l.Workload) == 0, messages},
		{"cwnd", m.CWND && len(l.Workload) == 0, messages},
		{"acks", m.Acks && len(l.Workload) == 0, messages},
		{"from", m.From > 0 && l.Sends() == record.Programs && !compared,
			"only programs send, whose output is of the whole run, and no clocks are compared"},
	} {
		if path := "measure." + c.key; c.idle && l.Written(path) {
			l.notes = append(l.notes, note{path, "records nothing here: " + c.why + "; leave it out"})
		}
	}
}

// noPackets is why nothing of packets is measured in a lab of programs.
const noPackets = "only programs send, and nobody looks into their packets"

// unmeasured returns why no run of the lab has a value for a name of the summary; "" if one may.
func (l *Lab) unmeasured(name string) (why string) {
	of := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	m := &l.Measure
	n, _ := record.Named(name) // a step has no path
	switch {
	case l.Sends() == record.Programs && record.OfEndpoints(n.Path):
		return noPackets
	case len(l.Programs) > 0 && partial(n.Path):
		return "it is known " + record.BesidePrograms
	case l.Sends() == record.ClocksAlone && record.OfEndpoints(n.Path):
		return "no message is sent"
	case of("jain", "goodput", "flow_rate.", "plateau.") && m.Rates == 0:
		return "rates are not measured; expected measure.rates, such as 10us"
	case of("acks.") && !m.Acks:
		return "acknowledgements are not recorded; expected measure.acks: true"
	case of("queue_event_delay.") && m.Events == "":
		return "no queue is recorded event by event; expected measure.queue_events with a port"
	case of("drops_after", "max_queue_after") && m.From == 0:
		return "counters are of the whole run; expected measure.from"
	case of("ccm.", "steps(", "first(", "last(") && !transport.FactsOf(l.Transport.Kind).Coordinated:
		return fmt.Sprintf("the switches of %s take no part in congestion management; `when transport.kind == ccm` "+
			"at the end of the line keeps it for ccm", l.Transport.Kind)
	case of("clock_") && (l.Clocks.Kind().Perfect || l.Clocks.Sample == 0):
		return "the error of clocks is not measured; expected clocks.sync with imperfect clocks, and clocks.sample"
	case of("clock_falsetickers", "clock_no_majority") && !l.Clocks.Votes():
		return NoVote
	case of("clock_") && l.Sends() == record.ClocksAlone && l.Clocks.For > 0 && l.Clocks.For < m.From:
		return fmt.Sprintf("the run ends after clocks.for, %v, before measure.from, %v, from which on errors of "+
			"clocks are measured", l.Clocks.For, m.From)
	}
	return ""
}

// partial reports whether a field of summary.json has no value in a run of programs and others.
func partial(path string) bool {
	var s record.Summary
	s.OfPart(record.BesidePrograms, record.PacketFields()...)
	return s.Lacks(path) != ""
}
