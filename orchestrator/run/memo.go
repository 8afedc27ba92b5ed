package run

import (
	"cmp"

	"weft/host"
	"weft/orchestrator/experiment"
	"weft/results/record"
	"weft/results/stats"
	"weft/sim"
)

// newMemo returns the memory of a simulation for the steps of its workload.
func newMemo(x *experiment.Experiment, hosts []*host.Host, o *observers) *sim.Memo {
	m := &sim.Memo{Never: unlike(x, hosts), Results: o.results, Repeat: o.repeat}
	switch measure := &x.Lab.Measure; {
	case x.Lab.Engine.Memo == "off":
		m.Off = "engine.memo is off"
	case measure.Queues > 0:
		m.Off = "measure.queues samples queues"
	case measure.Rates > 0:
		m.Off = "measure.rates samples rates"
	case measure.View != 0:
		m.Off = "measure.view takes frames"
	case measure.CWND || measure.Acks:
		m.Off = "measure.cwnd and measure.acks record single packets"
	case x.Measure.Watched >= 0:
		m.Off = "measure.queue_events records a queue event by event"
	}
	return m
}

// unlike returns what in an experiment is different in every step, or "".
func unlike(x *experiment.Experiment, hosts []*host.Host) string {
	for i := range x.Fabric.Ports {
		if p := &x.Fabric.Ports[i]; p.Loss > 0 || p.BitErrors > 0 || p.Disorder.Random() {
			return "random losses, delays or copies on links"
		}
	}
	for _, h := range hosts {
		if why := h.Unlike(); why != "" {
			return why
		}
	}
	return ""
}

// results returns the round trips since the last call.
func (o *observers) results() any {
	all := make([]stats.Delta, len(o.parts))
	for i, p := range o.parts {
		all[i] = p.rtt.Since(&p.marked)
	}
	return all
}

// repeat records again what results returned.
func (o *observers) repeat(results any, times int64) {
	for i, d := range results.([]stats.Delta) {
		o.parts[i].rtt.Repeat(d, times)
	}
}

// memoOf returns what became of the steps of a simulation; nil: there are not several.
func memoOf(x *experiment.Experiment, m *sim.Memo) *record.Memo {
	if m.Steps < 2 && (m.Never == "" || !repeats(x)) {
		return nil
	}
	return &record.Memo{Steps: m.Steps, Skipped: m.Skipped, Why: cmp.Or(m.Never, m.Off), Executed: m.Misses}
}

// repeats reports whether a host has more than one repetition to do.
func repeats(x *experiment.Experiment) bool {
	for i := range x.Plans {
		if items := x.Plans[i].Items; len(items) > 1 || len(items) == 1 && items[0].Repeat > 1 {
			return true
		}
	}
	return false
}
