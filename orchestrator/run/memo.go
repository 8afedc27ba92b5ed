package run

import (
	"cmp"

	"weft/host"
	"weft/orchestrator/experiment"
	"weft/results/record"
	"weft/results/stats"
	"weft/sim"
	"weft/units"
)

// newMemo returns the memory of a simulation for the steps of its workload. samples may be nil.
func newMemo(x *experiment.Experiment, hosts []*host.Host, o *observers, samples *memoSamples) *sim.Memo {
	m := &sim.Memo{Never: unlike(x, hosts), Results: o.results, Repeat: o.repeat}
	if samples != nil {
		m.Samples = samples
	}
	switch {
	case x.Lab.Engine.Memo == "off":
		m.Off = "engine.memo is off"
	case x.Measure.Watched >= 0:
		m.Off = "measure.queue_events records a queue event by event"
	}
	o.keepRows = m.Never == "" && m.Off == ""
	return m
}

// unlike returns what in an experiment is different in every step, or "".
func unlike(x *experiment.Experiment, hosts []*host.Host) string {
	for i := range x.Fabric.Ports {
		if p := &x.Fabric.Ports[i]; p.Loses() || p.Disturbs() {
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

// maxKeptRows bounds the rows of one step that are kept to be repeated. Our own choice.
const maxKeptRows = 1 << 20

// stepResults is what observers have seen in a step.
type stepResults struct {
	rtt     []stats.Delta // by partition
	windows []record.Window
	acks    []record.Ack
}

// results returns what was seen since the last call; nil if that is too much to be kept.
func (o *observers) results() any {
	o.flush()
	r := o.kept
	o.kept = stepResults{}
	for _, p := range o.parts {
		r.rtt = append(r.rtt, p.rtt.Since(&p.marked))
	}
	if len(r.windows)+len(r.acks) > maxKeptRows {
		return nil
	}
	return &r
}

// keep keeps rows to be repeated. It keeps more than the maximum, so that results sees that, but
// not all.
func (o *observers) keep() {
	if o.keepRows && len(o.kept.windows)+len(o.kept.acks) <= maxKeptRows {
		o.kept.windows = append(o.kept.windows, o.windows...)
		o.kept.acks = append(o.kept.acks, o.acks...)
	}
}

// repeat records what the steps of a cycle returned as seen several times more.
func (o *observers) repeat(cycle []any, times int, took units.Time) {
	for _, step := range cycle {
		for i, d := range step.(*stepResults).rtt {
			o.parts[i].rtt.Repeat(d, int64(times))
		}
	}
	for k := range times {
		later := took * units.Time(k+1)
		o.windows, o.acks = o.windows[:0], o.acks[:0]
		for _, step := range cycle {
			r := step.(*stepResults)
			for _, w := range r.windows {
				w.At += later
				o.windows = append(o.windows, w)
			}
			for _, a := range r.acks {
				a.At += later
				o.acks = append(o.acks, a)
			}
		}
		o.write()
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
