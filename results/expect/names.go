package expect

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"weft/internal/nearest"
	"weft/results/record"
)

// entry is a name of the summary.
type entry struct {
	name string
	typ  typ
	get  func(*record.Summary) (value, error)
}

var (
	errNoFlow    = errors.New("no flow finished")
	errNoRTT     = errors.New("no round-trip time was measured")
	errNoPacket  = errors.New("no packet was delivered")
	errNoRates   = errors.New("rates were not measured (measure.rates), or at no time were all connections open")
	errNoPlateau = errors.New("no plateau: rates were not measured (measure.rates), or connections do not come and go, or too often")
	errNoAcks    = errors.New("acknowledgements were not recorded (measure.acks), or none said so")
	errNoEvents  = errors.New("no queue was followed event by event (measure.queue_events)")
	errNoCCM     = errors.New("nothing was coordinated: the transport is not ccm")
	errNoClocks  = errors.New("the error of clocks was not measured (clocks.sync, clocks.sample)")
	errNoBound   = errors.New("no two hosts said how far from the truth they may be")
	errApart     = errors.New("the clocks were farther apart than clocks.limit at the end")
	errNoAfter   = errors.New("nothing was counted from an instant on (measure.from)")
	errNoOutcome = errors.New("the run ended before this collective was measured")
)

// entries lists every name that does not depend on the lab.
func entries() []entry {
	count := func(name string, get func(*record.Summary) int64) entry {
		return entry{name, plain, func(s *record.Summary) (value, error) { return value{typ: plain, num: float64(get(s))}, nil }}
	}
	in := func(name string, t typ, get func(*record.Summary) float64) entry {
		return entry{name, t, func(s *record.Summary) (value, error) { return value{typ: t, num: get(s)}, nil }}
	}
	out := []entry{
		{"verified", aTruth, func(s *record.Summary) (value, error) { return boolean(s.Verified), nil }},
		{"fidelity", aWord, func(s *record.Summary) (value, error) { return value{typ: aWord, word: verdict(s)}, nil }},
		count("flows", func(s *record.Summary) int64 { return s.Flows.Count }),
		count("unfinished", func(s *record.Summary) int64 { return s.Flows.Unfinished }),
		in("bytes", size, func(s *record.Summary) float64 { return float64(s.Flows.Bytes) }),
		in("base_rtt", span, func(s *record.Summary) float64 { return s.BaseRTTUS }),
		in("lab_time", span, func(s *record.Summary) float64 { return s.LabTimeUS }),
		in("dilation", plain, func(s *record.Summary) float64 { return s.Dilation }),
		count("packets", func(s *record.Summary) int64 { return s.Network.Packets }),
		count("data_packets", func(s *record.Summary) int64 { return s.Network.DataPackets }),
		count("delivered", func(s *record.Summary) int64 { return s.Network.Delivered }),
		count("drops", func(s *record.Summary) int64 { return s.Network.Drops }),
		count("ce_marks", func(s *record.Summary) int64 { return s.Network.CEMarks }),
		count("refused", func(s *record.Summary) int64 { return s.Network.Refused }),
		count("lost", func(s *record.Summary) int64 { return s.Network.Lost }),
		count("cut", func(s *record.Summary) int64 { return s.Network.Cut }),
		count("duplicated", func(s *record.Summary) int64 { return s.Network.Duplicated }),
		count("late", func(s *record.Summary) int64 { return s.Network.Late }),
		count("reordered", func(s *record.Summary) int64 { return s.Network.Reordered }),
		count("path_switches", func(s *record.Summary) int64 { return s.Network.Switched }),
		coordinated("ccm.needs_cc", func(c *record.CCM) int64 { return c.NeedsCC }),
		coordinated("ccm.released", func(c *record.CCM) int64 { return c.Released }),
		coordinated("ccm.needs_path", func(c *record.CCM) int64 { return c.NeedsPath }),
		coordinated("ccm.lost", func(c *record.CCM) int64 { return c.Lost }),
		coordinated("ccm.heeded", func(c *record.CCM) int64 { return c.Handled }),
		coordinated("ccm.refused", func(c *record.CCM) int64 { return c.Refused }),
		coordinated("ccm.bad_tags", func(c *record.CCM) int64 { return c.BadTags }),
		coordinated("ccm.repaths", func(c *record.CCM) int64 { return c.Repaths }),
		coordinated("ccm.last_resorts", func(c *record.CCM) int64 { return c.LastResort }),
		count("pauses", func(s *record.Summary) int64 { return s.Network.Pauses }),
		in("paused", span, func(s *record.Summary) float64 { return s.Network.PausedUS }),
		rates("jain", plain, func(r *record.Rates) float64 { return r.Jain }),
		rates("goodput", rate, func(r *record.Rates) float64 { return r.TotalGbps * gbps }),
		rates("flow_rate.min", rate, func(r *record.Rates) float64 { return r.MinGbps * gbps }),
		rates("flow_rate.mean", rate, func(r *record.Rates) float64 { return r.MeanGbps * gbps }),
		rates("flow_rate.max", rate, func(r *record.Rates) float64 { return r.MaxGbps * gbps }),
		acks("acks.connections", plain, func(a *record.Acks) (float64, bool) { return float64(a.Connections), true }),
		acks("acks.first_marked", plain, func(a *record.Acks) (float64, bool) { return float64(a.FirstMarked), true }),
		acks("acks.mark", span, func(a *record.Acks) (float64, bool) { return a.MarkUS, a.MarkUS > 0 }),
		acks("acks.mark_rtt", span, func(a *record.Acks) (float64, bool) { return a.MarkRTTUS, a.MarkUS > 0 }),
		acks("acks.delay", span, func(a *record.Acks) (float64, bool) { return a.DelayUS, a.DelayUS > 0 }),
		count("retransmits", func(s *record.Summary) int64 { return s.Network.Retransmits }),
		count("timeouts", func(s *record.Summary) int64 { return s.Network.Timeouts }),
		{"drops_after", plain, func(s *record.Summary) (value, error) {
			return after(s, plain, func(a *record.After) int64 { return a.Drops })
		}},
		{"max_queue_after", size, func(s *record.Summary) (value, error) {
			return after(s, size, func(a *record.After) int64 { return a.MaxQueue })
		}},
		in("max_queue", size, func(s *record.Summary) float64 { return float64(s.Network.MaxQueue) }),
		{"ranks", plain, func(s *record.Summary) (value, error) { return ofCollective(s, 0, "ranks") }},
	}
	out = append(out, quantiles("fct", span, func(s *record.Summary) (record.Quantiles, error) { return s.Flows.FCT, noFlow(s) })...)
	out = append(out, quantiles("fct_slowdown", plain, func(s *record.Summary) (record.Quantiles, error) { return s.Flows.Slowdown, noFlow(s) })...)
	out = append(out, quantiles("rtt", span, func(s *record.Summary) (record.Quantiles, error) {
		return s.RTT, when(s.RTT.Max <= 0, errNoRTT)
	})...)
	out = append(out, quantiles("queue_event_delay", span, func(s *record.Summary) (record.Quantiles, error) {
		if q := s.Network.QueueEventDelay; q != nil {
			return *q, nil
		}
		return record.Quantiles{}, errNoEvents
	})...)
	out = append(out, clocks()...)
	return append(out, quantiles("queue_delay", span, func(s *record.Summary) (record.Quantiles, error) {
		return s.Network.QueueDelay, when(s.Network.Delivered == 0, errNoPacket)
	})...)
}

// clocks makes the names of what is known of the hosts' clocks.
func clocks() []entry {
	measured := func(s *record.Summary) error { return when(s.Clocks.Samples == 0, errNoClocks) }
	in := func(name string, t typ, get func(*record.Clocks) float64) entry {
		return entry{name, t, func(s *record.Summary) (value, error) { return value{typ: t, num: get(&s.Clocks)}, measured(s) }}
	}
	distribution := func(name string, missing error, get func(*record.Clocks) *record.Quantiles) []entry {
		return quantiles(name, span, func(s *record.Summary) (record.Quantiles, error) {
			q := get(&s.Clocks)
			if q == nil {
				return record.Quantiles{}, missing
			}
			return record.Quantiles{Mean: q.Mean / 1e3, P50: q.P50 / 1e3, P99: q.P99 / 1e3, Max: q.Max / 1e3}, measured(s)
		})
	}
	out := []entry{
		in("clock_error.p999", span, func(c *record.Clocks) float64 { return c.P999 / 1e3 }),
		in("clock_error.rms", span, func(c *record.Clocks) float64 { return c.RMS / 1e3 }),
		in("clock_share", plain, func(c *record.Clocks) float64 { return c.Share }),
		in("clock_steps", plain, func(c *record.Clocks) float64 { return float64(c.Steps) }),
		in("clock_resets", plain, func(c *record.Clocks) float64 { return float64(c.Resets) }),
		in("clock_falsetickers", plain, func(c *record.Clocks) float64 { return float64(c.Falsetickers) }),
		in("clock_no_majority", plain, func(c *record.Clocks) float64 { return float64(c.NoMajority) }),
		in("clock_refused", plain, func(c *record.Clocks) float64 { return float64(c.Refused) }),
		{"clock_coverage", plain, func(s *record.Summary) (value, error) {
			if s.Clocks.Coverage == nil {
				return value{typ: plain}, errNoBound
			}
			return value{typ: plain, num: *s.Clocks.Coverage}, nil
		}},
		{"clock_converged", span, func(s *record.Summary) (value, error) {
			if s.Clocks.ConvergedUS == nil {
				return value{typ: span}, errApart
			}
			return value{typ: span, num: *s.Clocks.ConvergedUS}, nil
		}},
	}
	out = append(out, overall()...)
	out = append(out, distribution("clock_error", errNoClocks, func(c *record.Clocks) *record.Quantiles { return &c.Error })...)
	out = append(out, distribution("clock_reference", errNoClocks, func(c *record.Clocks) *record.Quantiles { return c.Reference })...)
	return append(out, distribution("clock_bound", errNoBound, func(c *record.Clocks) *record.Quantiles { return c.Bound })...)
}

// after is what was counted from measure.from on.
func after(s *record.Summary, t typ, get func(*record.After) int64) (value, error) {
	if s.Network.After == nil {
		return value{typ: t}, errNoAfter
	}
	return value{typ: t, num: float64(get(s.Network.After))}, nil
}

// rates makes a name of what was measured of the rates of connections.
func rates(name string, t typ, get func(*record.Rates) float64) entry {
	return entry{name, t, func(s *record.Summary) (value, error) {
		if s.Rates == nil {
			return value{typ: t}, errNoRates
		}
		return value{typ: t, num: get(s.Rates)}, nil
	}}
}

// acks makes a name of what senders heard first.
func acks(name string, t typ, get func(*record.Acks) (float64, bool)) entry {
	return entry{name, t, func(s *record.Summary) (value, error) {
		if s.Acks == nil {
			return value{typ: t}, errNoAcks
		}
		num, ok := get(s.Acks)
		return value{typ: t, num: num}, when(!ok, errNoAcks)
	}}
}

// noFlow guards against an expectation that holds because nothing happened.
func noFlow(s *record.Summary) error { return when(s.Flows.Count <= s.Flows.Unfinished, errNoFlow) }

func when(bad bool, err error) error {
	if bad {
		return err
	}
	return nil
}

// verdict is the fidelity of a run. The simulator keeps its schedule by definition.
func verdict(s *record.Summary) string {
	if s.Fidelity == nil {
		return "ok"
	}
	return s.Fidelity.Verdict
}

// quantiles makes the names of a distribution.
func quantiles(name string, t typ, get func(*record.Summary) (record.Quantiles, error)) []entry {
	part := func(suffix string, pick func(record.Quantiles) float64) entry {
		return entry{name + "." + suffix, t, func(s *record.Summary) (value, error) {
			q, err := get(s)
			return value{typ: t, num: pick(q)}, err
		}}
	}
	return []entry{
		part("mean", func(q record.Quantiles) float64 { return q.Mean }),
		part("p50", func(q record.Quantiles) float64 { return q.P50 }),
		part("p99", func(q record.Quantiles) float64 { return q.P99 }),
		part("max", func(q record.Quantiles) float64 { return q.Max }),
	}
}

// Names lists the names of the summary in alphabetical order. N stands for a number from 0: collective.N for an item of the workload,
// plateau.N for a plateau, clock_stability.N for an averaging time.
func Names() []string {
	var out []string
	for _, e := range entries() {
		out = append(out, e.name)
	}
	for _, field := range collectiveFields() {
		out = append(out, "collective.N."+field)
	}
	for _, field := range plateauFields() {
		out = append(out, "plateau.N."+field)
		if field != "connections" {
			out = append(out, "plateau.worst."+field)
		}
	}
	for _, field := range stabilityFields() {
		out = append(out, "clock_stability.N."+field)
	}
	slices.Sort(out)
	return out
}

// Kind says in words what one of Names stands for; "" for another.
func Kind(name string) string {
	e, ok := find(strings.Replace(name, ".N.", ".0.", 1))
	if !ok {
		return ""
	}
	return e.typ.String()
}

func collectiveFields() []string {
	return []string{"algbw", "busbw", "bytes", "checked", "fastest", "ranks", "time", "wrong"}
}

// find returns the entry of a name.
func find(name string) (entry, bool) {
	for _, e := range entries() {
		if e.name == name {
			return e, true
		}
	}
	if e, ok := ofSteps(name); ok {
		return e, true
	}
	if e, ok := ofPlateau(name); ok {
		return e, true
	}
	if e, ok := ofStability(name); ok {
		return e, true
	}
	i, field, ok := numbered("collective.", name, collectiveFields())
	if !ok {
		return entry{}, false
	}
	t := plain
	switch field {
	case "algbw", "busbw":
		t = rate
	case "bytes":
		t = size
	case "time", "fastest":
		t = span
	}
	return entry{name, t, func(s *record.Summary) (value, error) { return ofCollective(s, i, field) }}, true
}

// numbered takes collective.3.busbw apart.
func numbered(prefix, name string, fields []string) (i int, field string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, "", false
	}
	index, field, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(index)
	return i, field, err == nil && i >= 0 && digit(index[0]) && slices.Contains(fields, field)
}

func ofCollective(s *record.Summary, i int, field string) (value, error) {
	if i >= len(s.Collectives) {
		return value{}, errNoOutcome
	}
	c := s.Collectives[i]
	switch field {
	case "ranks":
		return value{typ: plain, num: float64(c.Ranks)}, nil
	case "wrong":
		return value{typ: plain, num: float64(c.Wrong)}, nil
	case "checked":
		return value{typ: plain, num: float64(c.Checked)}, nil
	case "bytes":
		return value{typ: size, num: float64(c.Bytes)}, nil
	}
	// The rest needs a collective that was measured.
	err := when(c.TimeUS <= 0, errNoOutcome)
	switch field {
	case "time":
		return value{typ: span, num: c.TimeUS}, err
	case "fastest":
		if c.Groups > 0 {
			return value{typ: span, num: c.FastestUS}, err
		}
		return value{typ: span, num: c.TimeUS}, err
	case "algbw":
		return value{typ: rate, num: c.AlgBWGbps * gbps}, err
	default:
		return value{typ: rate, num: c.BusBWGbps * gbps}, err
	}
}

// suggestion is the name of what tables show under another, or the nearest name, when one is near.
func suggestion(name string) string {
	if is := inTables(name); is != "" {
		return "; did you mean " + is + "?"
	}
	best, distance := "", len(name)/2+1
	for _, candidate := range Names() {
		if d := nearest.Edits(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// coordinated makes the name of a count of coordinated congestion management.
func coordinated(name string, get func(*record.CCM) int64) entry {
	return entry{name, plain, func(s *record.Summary) (value, error) {
		if s.Network.CCM == nil {
			return value{typ: plain}, errNoCCM
		}
		return value{typ: plain, num: float64(get(s.Network.CCM))}, nil
	}}
}
