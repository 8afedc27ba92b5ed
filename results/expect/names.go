package expect

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"weft/internal/nearest"
	"weft/results/record"
)

// An entry is a name of the summary and how to get its number, in microseconds, bytes and bytes per
// microsecond. An error says that the run did not measure it: a missing number must not meet an
// expectation.
type entry struct {
	name   string
	typ    typ
	number func(*record.Summary) (float64, error)
}

// get returns the value of the name for a run.
func (e entry) get(s *record.Summary) (value, error) {
	if e.typ == wordType {
		word, err := verdict(s)
		return value{typ: wordType, word: word}, err
	}
	if why := s.Lacks(Path(e.name)); why != "" {
		return value{}, fmt.Errorf("not measured: %s", why)
	}
	n, err := e.number(s)
	if err == nil && !finite(n) {
		err = errNotFinite
	}
	return value{typ: e.typ, num: n}, err
}

// Path returns the path in summary.json of a name whose field may lack a value, such as
// flows.fct_us for fct.p99; "" for other names.
func Path(name string) string {
	if path := cmp.Or(paths[name], plateauPath(name), stabilityPath(name)); path != "" {
		return path
	}
	distribution, part, _ := strings.Cut(name, ".")
	if path := paths[distribution]; path != "" {
		return path + "." + part
	}
	return ""
}

// paths maps names of numbers and distributions to their fields of summary.json.
var paths = map[string]string{
	"clock_share":         "clocks.share",
	"clock_steps":         "clocks.steps",
	"clock_resets":        "clocks.resets",
	"clock_falsetickers":  "clocks.falsetickers",
	"clock_no_majority":   "clocks.no_majority",
	"clock_refused":       "clocks.refused",
	"clock_bound":         "clocks.bound_ns",
	"clock_coverage":      "clocks.coverage",
	"clock_converged":     "clocks.converged_us",
	"clock_reference":     "clocks.reference_ns",
	"clock_stability.max": "clocks.stability.max_te_ns",

	"verified":          "verified",
	"flows":             "flows.count",
	"unfinished":        "flows.unfinished",
	"bytes":             "flows.bytes",
	"base_rtt":          "base_rtt_us",
	"lab_time":          "lab_time_us",
	"packets":           "network.packets",
	"data_packets":      "network.data_packets",
	"delivered":         "network.delivered",
	"drops":             "network.drops",
	"ce_marks":          "network.ce_marks",
	"refused":           "network.refused",
	"lost":              "network.lost",
	"cut":               "network.cut",
	"duplicated":        "network.duplicated",
	"late":              "network.late",
	"reordered":         "network.reordered",
	"path_switches":     "network.path_switches",
	"pauses":            "network.pauses",
	"paused":            "network.paused_us",
	"retransmits":       "network.retransmits",
	"trims":             "network.trims",
	"credits":           "network.credits",
	"timeouts":          "network.timeouts",
	"max_queue":         "network.max_queue_bytes",
	"max_queue_after":   "network.after.max_queue_bytes",
	"drops_after":       "network.after.drops",
	"queue_event_delay": "network.queue_event_delay_us",
	"jain":              "rates.jain",
	"goodput":           "rates.total_gbps",
	"flow_rate.min":     "rates.min_gbps",
	"flow_rate.mean":    "rates.mean_gbps",
	"flow_rate.max":     "rates.max_gbps",
	"fct":               "flows.fct_us",
	"fct_slowdown":      "flows.slowdown",
	"rtt":               "rtt_us",
	"queue_delay":       "network.queue_delay_us",
	"clock_error":       "clocks.error_ns",
	"clock_error.p999":  "clocks.error_ns",
	"clock_error.rms":   "clocks.error_ns",
	"unreceived":        "network.unreceived",
}

var (
	errNoFlow    = errors.New("no flow finished")
	errNoRTT     = errors.New("no round-trip time was measured")
	errNoPacket  = errors.New("no packet was delivered")
	errNoRates   = errors.New("rates were not measured (measure.rates), or connections were never all open at once")
	errNoPlateau = errors.New("no plateau: rates were not measured (measure.rates), " +
		"or the open connections never change, or too often")
	errNoAcks    = errors.New("acknowledgements were not recorded (measure.acks), or none reported it")
	errNoEvents  = errors.New("queue events were not recorded (measure.queue_events)")
	errNoCCM     = errors.New("the transport's switches take no part in congestion management")
	errNoClocks  = errors.New("the error of clocks was not measured (clocks.sync, clocks.sample)")
	errNoBound   = errors.New("no pair of hosts reported bounds on its error")
	errApart     = errors.New("at the end the clocks differed by more than clocks.limit")
	errNoAfter   = errors.New("counters from an instant on were not measured (measure.from)")
	errNoOutcome = errors.New("the run ended before this collective was measured")

	errNoCollective = errors.New("the run measured no collective")
	errUnchecked    = errors.New("no result of this collective was checked")
	errUnrepeated   = errors.New("not every repetition of this collective was finished and timed")
	errNoRate       = errors.New("this item has no bandwidth")
	errNoPath       = errors.New("no connection has a path")
	errNoTime       = errors.New("nothing ran")
)

// entries lists every name that does not depend on the lab.
var entries = sync.OnceValue(allEntries)

func allEntries() []entry {
	count := func(name string, get func(*record.Summary) int64) entry {
		return entry{name, plain, func(s *record.Summary) (float64, error) { return float64(get(s)), nil }}
	}
	in := func(name string, t typ, get func(*record.Summary) float64) entry {
		return entry{name, t, func(s *record.Summary) (float64, error) { return get(s), nil }}
	}
	rates := part(func(s *record.Summary) *record.Rates { return s.Rates }, errNoRates)
	acks := part(func(s *record.Summary) *record.Acks { return s.Acks }, errNoAcks)
	after := part(func(s *record.Summary) *record.After { return s.Network.After }, errNoAfter)
	ccm := part(func(s *record.Summary) *record.CCM { return s.Network.CCM }, errNoCCM)
	out := []entry{
		in("verified", truthType, func(s *record.Summary) float64 { return truthValue(s.Verified).num }),
		{"fidelity", wordType, nil},
		count("flows", func(s *record.Summary) int64 { return s.Flows.Count }),
		count("unfinished", func(s *record.Summary) int64 { return s.Flows.Unfinished }),
		in("bytes", size, func(s *record.Summary) float64 { return float64(s.Flows.Bytes) }),
		in("base_rtt", duration, func(s *record.Summary) float64 { return s.BaseRTTUS }).positive(errNoPath),
		in("lab_time", duration, func(s *record.Summary) float64 { return s.LabTimeUS }).positive(errNoTime),
		in("dilation", plain, func(s *record.Summary) float64 { return s.Dilation }),
		count("packets", func(s *record.Summary) int64 { return s.Network.Packets }),
		count("data_packets", func(s *record.Summary) int64 { return s.Network.DataPackets }),
		count("delivered", func(s *record.Summary) int64 { return s.Network.Delivered }),
		count("drops", func(s *record.Summary) int64 { return s.Network.Drops }),
		count("ce_marks", func(s *record.Summary) int64 { return s.Network.CEMarks }),
		count("refused", func(s *record.Summary) int64 { return s.Network.Refused }),
		count("lost", func(s *record.Summary) int64 { return s.Network.Lost }),
		count("cut", func(s *record.Summary) int64 { return s.Network.Cut }),
		count("unreceived", func(s *record.Summary) int64 { return s.Network.Unreceived }),
		count("duplicated", func(s *record.Summary) int64 { return s.Network.Duplicated }),
		count("late", func(s *record.Summary) int64 { return s.Network.Late }),
		count("reordered", func(s *record.Summary) int64 { return s.Network.Reordered }),
		count("path_switches", func(s *record.Summary) int64 { return s.Network.Switched }),
		ccm("ccm.needs_cc", plain, func(c *record.CCM) float64 { return float64(c.NeedsCC) }),
		ccm("ccm.released", plain, func(c *record.CCM) float64 { return float64(c.Released) }),
		ccm("ccm.needs_path", plain, func(c *record.CCM) float64 { return float64(c.NeedsPath) }),
		ccm("ccm.lost", plain, func(c *record.CCM) float64 { return float64(c.Lost) }),
		ccm("ccm.heeded", plain, func(c *record.CCM) float64 { return float64(c.Handled) }),
		ccm("ccm.refused", plain, func(c *record.CCM) float64 { return float64(c.Refused) }),
		ccm("ccm.bad_tags", plain, func(c *record.CCM) float64 { return float64(c.BadTags) }),
		ccm("ccm.repaths", plain, func(c *record.CCM) float64 { return float64(c.Repaths) }),
		ccm("ccm.last_resorts", plain, func(c *record.CCM) float64 { return float64(c.LastResort) }),
		count("pauses", func(s *record.Summary) int64 { return s.Network.Pauses }),
		in("paused", duration, func(s *record.Summary) float64 { return s.Network.PausedUS }),
		rates("jain", plain, func(r *record.Rates) float64 { return r.Jain }),
		rates("goodput", rate, func(r *record.Rates) float64 { return r.TotalGbps * gbps }),
		rates("flow_rate.min", rate, func(r *record.Rates) float64 { return r.MinGbps * gbps }),
		rates("flow_rate.mean", rate, func(r *record.Rates) float64 { return r.MeanGbps * gbps }),
		rates("flow_rate.max", rate, func(r *record.Rates) float64 { return r.MaxGbps * gbps }),
		acks("acks.connections", plain, func(a *record.Acks) float64 { return float64(a.Connections) }),
		entry{"acks.first_marked", plain, func(s *record.Summary) (float64, error) {
			if s.Acks == nil || s.Acks.Connections == 0 {
				return 0, errNoAcks
			}
			return float64(s.Acks.FirstMarked), nil
		}},
		acks("acks.mark", duration, func(a *record.Acks) float64 { return a.MarkUS }).positive(errNoAcks),
		acks("acks.mark_rtt", duration, func(a *record.Acks) float64 { return a.MarkRTTUS }).positive(errNoAcks),
		acks("acks.delay", duration, func(a *record.Acks) float64 { return a.DelayUS }).positive(errNoAcks),
		count("retransmits", func(s *record.Summary) int64 { return s.Network.Retransmits }),
		count("trims", func(s *record.Summary) int64 { return s.Network.Trims }),
		count("credits", func(s *record.Summary) int64 { return s.Network.Credits }),
		count("timeouts", func(s *record.Summary) int64 { return s.Network.Timeouts }),
		after("drops_after", plain, func(a *record.After) float64 { return float64(a.Drops) }),
		after("max_queue_after", size, func(a *record.After) float64 { return float64(a.MaxQueue) }),
		in("max_queue", size, func(s *record.Summary) float64 { return float64(s.Network.MaxQueue) }),
		{"ranks", plain, func(s *record.Summary) (float64, error) { return collectiveNumber(s, 0, "ranks") }},
	}
	quantiles := func(name string, t typ, get func(*record.Summary) (record.Quantiles, error)) {
		out = append(out, quantileEntries(name, t, get)...)
	}
	quantiles("fct", duration, func(s *record.Summary) (record.Quantiles, error) { return s.Flows.FCT, noFlow(s) })
	quantiles("fct_slowdown", plain, func(s *record.Summary) (record.Quantiles, error) {
		return s.Flows.Slowdown, noFlow(s)
	})
	quantiles("rtt", duration, func(s *record.Summary) (record.Quantiles, error) {
		return s.RTT, errorIf(s.RTT.Max <= 0, errNoRTT)
	})
	quantiles("queue_event_delay", duration, func(s *record.Summary) (record.Quantiles, error) {
		if q := s.Network.QueueEventDelay; q != nil {
			return *q, nil
		}
		return record.Quantiles{}, errNoEvents
	})
	quantiles("queue_delay", duration, func(s *record.Summary) (record.Quantiles, error) {
		return s.Network.QueueDelay, errorIf(s.Network.Delivered == 0 || s.ProgramsAlone(), errNoPacket)
	})
	return append(out, clockEntries()...)
}

// clockEntries returns the names about the hosts' clocks.
func clockEntries() []entry {
	measured := func(s *record.Summary) error { return errorIf(s.Clocks.Samples == 0, errNoClocks) }
	in := func(name string, t typ, get func(*record.Clocks) float64) entry {
		return entry{name, t, func(s *record.Summary) (float64, error) { return get(&s.Clocks), measured(s) }}
	}
	optional := func(name string, t typ, missing error, get func(*record.Clocks) *float64) entry {
		return entry{name, t, func(s *record.Summary) (float64, error) {
			switch v := get(&s.Clocks); {
			case s.Clocks.Samples == 0:
				return 0, errNoClocks
			case v == nil:
				return 0, missing
			default:
				return *v, nil
			}
		}}
	}
	out := []entry{
		in("clock_error.p999", duration, func(c *record.Clocks) float64 { return c.P999 / 1e3 }),
		in("clock_error.rms", duration, func(c *record.Clocks) float64 { return c.RMS / 1e3 }),
		in("clock_share", plain, func(c *record.Clocks) float64 { return c.Share }),
		in("clock_steps", plain, func(c *record.Clocks) float64 { return float64(c.Steps) }),
		in("clock_resets", plain, func(c *record.Clocks) float64 { return float64(c.Resets) }),
		in("clock_falsetickers", plain, func(c *record.Clocks) float64 { return float64(c.Falsetickers) }),
		in("clock_no_majority", plain, func(c *record.Clocks) float64 { return float64(c.NoMajority) }),
		in("clock_refused", plain, func(c *record.Clocks) float64 { return float64(c.Refused) }),
		optional("clock_coverage", plain, errNoBound, func(c *record.Clocks) *float64 { return c.Coverage }),
		optional("clock_converged", duration, errApart, func(c *record.Clocks) *float64 { return c.ConvergedUS }),
	}
	quantiles := func(name string, missing error, get func(*record.Clocks) *record.Quantiles) {
		out = append(out, quantileEntries(name, duration, func(s *record.Summary) (record.Quantiles, error) {
			switch q := get(&s.Clocks); {
			case s.Clocks.Samples == 0:
				return record.Quantiles{}, errNoClocks
			case q == nil:
				return record.Quantiles{}, missing
			default:
				return record.Quantiles{Mean: q.Mean / 1e3, P50: q.P50 / 1e3, P99: q.P99 / 1e3, Max: q.Max / 1e3}, nil
			}
		})...)
	}
	quantiles("clock_error", errNoClocks, func(c *record.Clocks) *record.Quantiles { return &c.Error })
	quantiles("clock_reference", errNoClocks, func(c *record.Clocks) *record.Quantiles { return c.Reference })
	quantiles("clock_bound", errNoBound, func(c *record.Clocks) *record.Quantiles { return c.Bound })
	return append(out, stabilityTotals()...)
}

// part returns a function that makes names of the numbers of an optional part of a summary. missing
// is the error of a run without it.
func part[P any](of func(*record.Summary) *P, missing error) func(name string, t typ, get func(*P) float64) entry {
	return func(name string, t typ, get func(*P) float64) entry {
		return entry{name, t, func(s *record.Summary) (float64, error) {
			if p := of(s); p != nil {
				return get(p), nil
			}
			return 0, missing
		}}
	}
}

// positive makes an entry an error if its number is 0: it was not measured.
func (e entry) positive(missing error) entry {
	number := e.number
	e.number = func(s *record.Summary) (float64, error) {
		n, err := number(s)
		return n, errors.Join(err, errorIf(err == nil && n <= 0, missing))
	}
	return e
}

// noFlow returns an error if some flows did not finish: then the quantiles are those of the
// fastest, or of none.
func noFlow(s *record.Summary) error {
	switch f := &s.Flows; {
	case f.Count <= f.Unfinished:
		return errNoFlow
	case f.Unfinished > 0:
		return fmt.Errorf("%d of %d flows did not finish, so the slowest are not known", f.Unfinished, f.Count)
	}
	return nil
}

// errorIf returns err if bad, else nil.
func errorIf(bad bool, err error) error {
	if bad {
		return err
	}
	return nil
}

// verdict returns the fidelity of a run, or an error if it was not judged.
func verdict(s *record.Summary) (string, error) {
	why := s.Unjudged()
	switch {
	case why == "":
		return s.Fidelity.Verdict, nil
	case s.Engine == "sim":
		why += "; `when engine.kind == emu` at the end of the line keeps it for emulations"
	}
	return "", fmt.Errorf("not judged: %s", why)
}

// quantileEntries returns the names of a distribution.
func quantileEntries(name string, t typ, get func(*record.Summary) (record.Quantiles, error)) []entry {
	part := func(suffix string, pick func(record.Quantiles) float64) entry {
		return entry{name + "." + suffix, t, func(s *record.Summary) (float64, error) {
			q, err := get(s)
			return pick(q), err
		}}
	}
	return []entry{
		part("mean", func(q record.Quantiles) float64 { return q.Mean }),
		part("p50", func(q record.Quantiles) float64 { return q.P50 }),
		part("p99", func(q record.Quantiles) float64 { return q.P99 }),
		part("max", func(q record.Quantiles) float64 { return q.Max }),
	}
}

// Names lists the names of the summary in alphabetical order. N stands for a number from 0: in
// collective.N an item of the workload, in plateau.N a plateau, in clock_stability.N an averaging
// time.
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
	for _, field := range metricFields() {
		out = append(out, "metric.NAME."+field)
	}
	slices.Sort(out)
	return out
}

// Number returns what a summary has for one of Names, in microseconds, bytes or Gb/s. It is NaN if
// the run did not measure it.
func Number(s *record.Summary, name string) float64 {
	e, ok := findEntry(name)
	if !ok {
		return math.NaN()
	}
	v, err := e.get(s)
	if err != nil || v.typ == wordType {
		return math.NaN()
	}
	if v.typ == rate {
		return v.num / gbps
	}
	return v.num
}

// Kind returns the type of one of Names in words, such as "a time"; empty for any other name.
func Kind(name string) string {
	e, ok := findEntry(strings.Replace(name, ".N.", ".0.", 1))
	if !ok {
		return ""
	}
	return e.typ.String()
}

// collectiveFields lists the fields of collective.N.
func collectiveFields() []string {
	return []string{"algbw", "busbw", "bytes", "checked", "fastest", "ranks", "time", "time.max", "wrong"}
}

// findEntry returns the entry of a name.
func findEntry(name string) (entry, bool) {
	for _, e := range entries() {
		if e.name == name {
			return e, true
		}
	}
	for _, find := range []func(string) (entry, bool){metricEntry, stepEntry, plateauEntry, stabilityEntry,
		collectiveEntry} {
		if e, ok := find(name); ok {
			return e, true
		}
	}
	return entry{}, false
}

// collectiveEntry returns the entry of a name such as collective.3.busbw.
func collectiveEntry(name string) (entry, bool) {
	i, field, ok := parseIndexed("collective.", name, collectiveFields())
	t := plain
	switch field {
	case "algbw", "busbw":
		t = rate
	case "bytes":
		t = size
	case "time", "time.max", "fastest":
		t = duration
	}
	return entry{name, t, func(s *record.Summary) (float64, error) { return collectiveNumber(s, i, field) }}, ok
}

// parseIndexed parses a name of prefix, an index and a field, such as collective.3.busbw.
func parseIndexed(prefix, name string, fields []string) (i int, field string, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, "", false
	}
	index, field, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(index)
	return i, field, err == nil && i >= 0 && digit(index[0]) && slices.Contains(fields, field)
}

// collectiveNumber returns a field of collective i.
func collectiveNumber(s *record.Summary, i int, field string) (float64, error) {
	switch {
	case len(s.Collectives) == 0:
		return 0, errNoCollective
	case i >= len(s.Collectives):
		return 0, errNoOutcome
	}
	c := s.Collectives[i]
	switch field {
	case "ranks":
		return float64(c.Ranks), nil
	case "wrong":
		return float64(c.Wrong), errorIf(c.Checked == 0, errUnchecked)
	case "checked":
		return float64(c.Checked), nil
	case "bytes":
		return float64(c.Bytes), nil
	}
	n := c.TimeUS
	switch {
	case field == "fastest" && c.Groups > 0:
		n = c.FastestUS
	case field == "time.max":
		return c.Longest(), errorIf(c.Longest() <= 0, errUnrepeated)
	case field == "algbw":
		n = c.AlgBWGbps * gbps
	case field == "busbw":
		n = c.BusBWGbps * gbps
	}
	if c.TimeUS <= 0 {
		return 0, errNoOutcome
	}
	return n, errorIf(n <= 0, errNoRate)
}

// suggestion returns "; did you mean x?" with the name of a word in tables or the nearest name,
// empty if none is near.
func suggestion(name string) string {
	if is := tableAlias(name); is != "" {
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
