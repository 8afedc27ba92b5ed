package record

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Why a run has no value for a number.
var (
	errNoFlow    = errors.New("no flow finished")
	errNoRTT     = errors.New("no round-trip time was measured")
	errNoPacket  = errors.New("no packet was delivered")
	errNoRates   = errors.New("rates were not measured (measure.rates), or connections were never all open at once")
	errNoPlateau = errors.New("no plateau: rates were not measured (measure.rates), " +
		"or the open connections never change, or too often")
	errFewPlateaus = errors.New("the run has fewer plateaus")
	errNoAcks      = errors.New("acknowledgements were not recorded (measure.acks), or none reported it")
	errNoEvents    = errors.New("queue events were not recorded (measure.queue_events)")
	errNoClocks    = errors.New("the error of clocks was not measured (clocks.sync, clocks.sample)")
	errNoBound     = errors.New("no pair of hosts reported bounds on its error")
	errApart       = errors.New("at the end the clocks differed by more than clocks.limit")
	errNoStability = errors.New("the stability of clocks was not measured (clocks.sync, clocks.sample), " +
		"or the protocol of the reference or of all other hosts was down")
	errFewAveraging = errors.New("the run is too short for this averaging time")
	errNoAfter      = errors.New("counters from an instant on were not measured (measure.from)")

	errNoCollective = errors.New("the run measured no collective")
	errNoOutcome    = errors.New("the run ended before this collective was measured")
	errUnchecked    = errors.New("no result of this collective was checked")
	errUnrepeated   = errors.New("not every repetition of this collective was finished and timed")
	errNoRate       = errors.New("this item has no bandwidth")
	errNoPath       = errors.New("no connection has a path")
	errNoTime       = errors.New("nothing ran")
	errNoMetric     = errors.New("no line that a program printed has it")

	// ErrNoCCM is why a run has nothing of congestion management.
	ErrNoCCM = errors.New("the transport's switches take no part in congestion management")
)

// A definition is a Number and how to get it. Its unit is that in the name of its field, if the
// definition has none. Without a function it is the value of a field.
type definition struct {
	Number
	field string // of summary.json; empty: Path

	missing error                             // why a run without the field has no value
	beyond  error                             // why there is none for an index that is too large
	nonzero error                             // why 0 is no value; nil: it is one
	needs   func(s *Summary, index int) error // why a run has no value although it has the field
	value   func(s *Summary, index int) (float64, error)
}

// Numbers returns every number, in the order of the tables that have all.
var Numbers = sync.OnceValue(func() (all []Number) {
	for _, d := range slices.Concat(workload, network, collective, rates, clocks) {
		for _, word := range []string{d.Name, d.Label, d.Head} {
			d.Words = append(d.Words, strings.ToLower(strings.ReplaceAll(word, " ", "_")))
		}
		if fieldAt(reflect.TypeFor[Summary](), d.Path) != reflect.TypeFor[Quantiles]() || d.field != "" {
			all = append(all, d.number())
			continue
		}
		for _, part := range []struct{ name, label, axis string }{
			{"mean", "mean", "mean"}, {"p50", "p50", "median"}, {"p99", "p99", "99th percentile"},
			{"max", "largest", "largest"},
		} {
			one := d
			one.Quantile = part.name
			one.Name, one.Path = d.Name+"."+part.name, d.Path+"."+part.name
			if d.Label != "" {
				one.Label, one.Head = d.Label+", "+part.label, cmp.Or(d.Head, d.Label)+" "+part.name
				one.Axis = cmp.Or(d.Axis, d.Label) + ", " + part.axis
			}
			all = append(all, one.number())
		}
	}
	return all
})

// number returns the number of a definition.
func (d definition) number() Number {
	n, value := d.Number, d.value
	n.Head, n.Axis = cmp.Or(n.Head, n.Label), cmp.Or(n.Axis, n.Label)
	if n.Unit == Plain {
		n.Unit = unitOfField(n.Path)
	}
	if value == nil {
		value = d.ofField
	}
	if !strings.Contains(n.Name, ".N.") {
		n.Of = func(s *Summary) (float64, error) { return value(s, 0) }
		return n
	}
	n.at, n.Of = value, func(s *Summary) (float64, error) { return value(s, 0) }
	return n
}

// ofField returns the value of the field of a definition.
func (d definition) ofField(s *Summary, index int) (float64, error) {
	if d.needs != nil {
		if err := d.needs(s, index); err != nil {
			return 0, err
		}
	}
	at, field := reflect.ValueOf(s).Elem(), cmp.Or(d.field, d.Path)
	for name := range strings.SplitSeq(field, ".") {
		switch {
		case at.Kind() == reflect.Slice && at.Len() == 0:
			return 0, d.missing
		case at.Kind() == reflect.Slice:
			if name == "N" && index >= at.Len() {
				return 0, d.beyond
			}
			at = at.Index(index)
		default:
			f, _ := jsonField(at.Type(), name) // a test looks for every field
			at = at.FieldByIndex(f.Index)
		}
		if at.Kind() == reflect.Pointer {
			if at.IsNil() {
				return 0, d.missing
			}
			at = at.Elem()
		}
	}
	v := 0.0
	switch {
	case at.CanInt():
		v = float64(at.Int())
	case at.CanFloat():
		v = at.Float()
	case at.Bool():
		v = 1
	}
	if d.nonzero != nil && v <= 0 {
		return 0, d.nonzero
	}
	if strings.Contains(field, "_ns") {
		v /= 1e3
	}
	return v, nil
}

// unitOfField returns the unit that the name of a field of summary.json ends in.
func unitOfField(path string) Unit {
	for name := range strings.SplitSeq(path, ".") {
		switch {
		case strings.HasSuffix(name, "_us"), strings.HasSuffix(name, "_ns"):
			return Microseconds
		case strings.HasSuffix(name, "_bytes"):
			return Bytes
		case strings.HasSuffix(name, "_gbps"):
			return Gbps
		}
	}
	return Plain
}

// workload has the numbers of a run's messages, and of the run as a whole.
var workload = []definition{
	{Number: Number{Name: "verified", Path: "verified", Unit: Truth}},
	{Number: Number{Name: "fidelity", Unit: Word}, value: noNumber},
	{Number: Number{Name: "flows", Path: "flows.count", Count: true}},
	{Number: Number{Name: "unfinished", Path: "flows.unfinished", Count: true, Words: []string{"done"}}},
	{Number: Number{Name: "bytes", Path: "flows.bytes", Unit: Bytes}},
	{Number: Number{Name: "base_rtt", Path: "base_rtt_us"}, nonzero: errNoPath},
	{nonzero: errNoTime, Number: Number{Name: "lab_time", Path: "lab_time_us", Label: "lab time",
		Axis: "time until the last flow ends", Worse: 1}},
	{Number: Number{Name: "dilation", Path: "dilation"}},
	{needs: allFlows, Number: Number{Name: "fct", Path: "flows.fct_us", Label: "flow completion", Head: "FCT",
		Axis: "flow completion time", Chart: "fct", Worse: 1, shown: (*Summary).Complete}},
	{needs: allFlows, Number: Number{Name: "fct_slowdown", Path: "flows.slowdown", Label: "slowdown",
		Chart: "slowdown", Worse: 1, shown: (*Summary).Complete}},
	{needs: acked, Number: Number{Name: "rtt", Path: "rtt_us", Label: "round trip", Head: "RTT", Chart: "rtt",
		Worse: 1}},
}

// network has the counters and queues of the network.
var network = []definition{
	counter("packets", "packets"),
	counter("data_packets", ""),
	counter("delivered", ""),
	{Number: Number{Name: "drops", Path: "network.drops", Label: "drops", Axis: "dropped packets", Worse: 1,
		Count: true, Trouble: true, shown: sent}},
	{Number: Number{Name: "ce_marks", Path: "network.ce_marks", Label: "CE marks", Head: "marks",
		Axis: "marked packets", Words: []string{"ecn"}, Count: true, shown: sent}},
	counter("refused", ""),
	trouble("lost", "lost"),
	trouble("cut", "cut"),
	trouble("unreceived", "at stopped hosts"),
	counter("duplicated", ""),
	counter("late", ""),
	counter("reordered", ""),
	counter("path_switches", ""),
	coordination("needs_cc", ""), coordination("released", ""), coordination("needs_path", ""),
	coordination("lost", ""), coordination("heeded", ""), coordination("refused", "telemetry refused").badly(),
	coordination("bad_tags", "telemetry with a bad tag").badly(), coordination("repaths", ""),
	coordination("last_resorts", ""),
	trouble("pauses", "pauses"),
	{Number: Number{Name: "paused", Path: "network.paused_us", Axis: "time paused"}},
	trouble("retransmits", "retransmits"),
	trouble("trims", "trims"),
	counter("credits", ""),
	trouble("timeouts", "timeouts"),
	{Number: Number{Name: "drops_after", Path: "network.after.drops", Count: true}, missing: errNoAfter},
	{Number: Number{Name: "max_queue_after", Path: "network.after.max_queue_bytes"}, missing: errNoAfter},
	{Number: Number{Name: "max_queue", Path: "network.max_queue_bytes", Label: "largest queue", Chart: "queues",
		Worse: 1, shown: sent}},
	{missing: errNoEvents, Number: Number{Name: "queue_event_delay", Path: "network.queue_event_delay_us",
		Label: "queue events", Axis: "queueing delay at queue events", Chart: "queues"}},
	{needs: queued, Number: Number{Name: "queue_delay", Path: "network.queue_delay_us", Label: "queueing",
		Head: "queue", Axis: "time in switch queues", Chart: "queueing", Words: []string{"switch_queues", "queues"},
		Worse: 1}},
}

// collective has the numbers of each collective.
var collective = []definition{
	{Number: Number{Name: "ranks", Path: "collectives.0.ranks", Count: true}, missing: errNoCollective},
	ofItem("algbw", "algbw_gbps", Number{Label: "algbw", Axis: "bandwidth", Worse: -1}, ended, errNoRate),
	ofItem("busbw", "busbw_gbps", Number{Label: "busbw", Axis: "bus bandwidth", Worse: -1}, ended, errNoRate),
	ofItem("bytes", "bytes", Number{Label: "size", Unit: Bytes}, nil, nil),
	ofItem("checked", "checked", Number{Label: "checked", Count: true}, nil, nil),
	ofItem("ranks", "ranks", Number{Count: true}, nil, nil),
	ofItem("wrong", "wrong", Number{Label: "wrong", Count: true, Worse: 1}, func(c *Collective) error {
		return errorIf(c.Checked == 0, errUnchecked)
	}, nil),
	ofItem("time", "time_us", Number{Label: "time", Worse: 1}, nil, errNoOutcome),
	ofItem("time.max", "", Number{Unit: Microseconds, Worse: 1}, nil, errUnrepeated).computed(Collective.Longest),
	ofItem("fastest", "", Number{Unit: Microseconds, Axis: "time of the fastest group", Worse: 1}, nil,
		errNoOutcome).computed(func(c Collective) float64 {
		if c.Groups > 0 {
			return c.FastestUS
		}
		return c.TimeUS
	}),
}

// rates has what is measured over time: rates of connections, the plateaus between their starts and
// ends, and when senders first learned of congestion.
var rates = []definition{
	{Number: Number{Name: "jain", Path: "rates.jain", Label: "fairness (Jain)", Axis: "Jain's index", Chart: "rates",
		Worse: -1}, missing: errNoRates},
	{Number: Number{Name: "goodput", Path: "rates.total_gbps", Label: "goodput", Axis: "throughput of all connections",
		Chart: "rates", Worse: -1}, missing: errNoRates},
	{Number: Number{Name: "flow_rate.min", Path: "rates.min_gbps", Label: "slowest flow", Axis: "slowest connection",
		Chart: "rates", Worse: -1}, missing: errNoRates},
	{Number: Number{Name: "flow_rate.mean", Path: "rates.mean_gbps", Axis: "mean throughput of a connection",
		Chart: "rates", Worse: -1}, missing: errNoRates},
	{Number: Number{Name: "flow_rate.max", Path: "rates.max_gbps", Axis: "fastest connection", Chart: "rates"},
		missing: errNoRates},
	plateau("connections", "connections", 0),
	plateau("goodput", "total_gbps", -1),
	plateau("jain", "jain", -1),
	plateau("settled", "settled_us", 1),
	plateau("goodput", "total_gbps", -1).worst("goodput of the worst plateau", "lowest throughput of a plateau"),
	plateau("jain", "jain", -1).worst("fairness of the worst plateau", "lowest Jain's index of a plateau"),
	plateau("settled", "settled_us", 1).worst("", "longest settling time of a plateau"),
	{Number: Number{Name: "acks.connections", Path: "acks.connections", Chart: "acks", Count: true},
		missing: errNoAcks},
	{Number: Number{Name: "acks.first_marked", Path: "acks.first_marked", Chart: "acks", Count: true},
		missing: errNoAcks, needs: func(s *Summary, _ int) error {
			return errorIf(s.Acks != nil && s.Acks.Connections == 0, errNoAcks)
		}},
	{Number: Number{Name: "acks.mark", Path: "acks.mark_us", Chart: "acks"}, missing: errNoAcks, nonzero: errNoAcks},
	{Number: Number{Name: "acks.mark_rtt", Path: "acks.mark_rtt_us", Chart: "acks"}, missing: errNoAcks,
		nonzero: errNoAcks},
	{Number: Number{Name: "acks.delay", Path: "acks.delay_us", Chart: "acks"}, missing: errNoAcks, nonzero: errNoAcks},
}

// clocks has the errors of the hosts' clocks. Nobody looks at perfect ones: no reason may say what
// they did.
var clocks = []definition{
	ofClocks(Number{Name: "clock_error", Path: "clocks.error_ns", Label: "clock error", Head: "error", Chart: "clocks",
		Worse: 1}, "", nil),
	ofClocks(Number{Name: "clock_error.p999", Path: "clocks.error_ns", Unit: Microseconds, Chart: "clocks", Worse: 1},
		"clocks.error_p999_ns", nil),
	ofClocks(Number{Name: "clock_error.rms", Path: "clocks.error_ns", Unit: Microseconds, Chart: "clocks", Worse: 1},
		"clocks.error_rms_ns", nil),
	ofClocks(Number{Name: "clock_reference", Path: "clocks.reference_ns", Label: "clock error to the reference",
		Worse: 1}, "", errNoClocks),
	ofClocks(Number{Name: "clock_bound", Path: "clocks.bound_ns", Label: "clock bound", Head: "bound", Worse: 1}, "",
		errNoBound),
	ofClocks(Number{Name: "clock_coverage", Path: "clocks.coverage", Label: "clock bounds that hold", Head: "holds",
		Share: true, Worse: -1}, "", errNoBound),
	ofClocks(Number{Name: "clock_converged", Path: "clocks.converged_us", Label: "clocks converged after",
		Head: "converged", Worse: 1}, "", errApart),
	ofClocks(Number{Name: "clock_share", Path: "clocks.share", Head: "cost", Share: true}, "", nil),
	ofClocks(Number{Name: "clock_steps", Path: "clocks.steps", Count: true}, "", nil),
	ofClocks(Number{Name: "clock_resets", Path: "clocks.resets", Label: "clock resets", Count: true, Worse: 1,
		Trouble: true}, "", nil),
	ofClocks(Number{Name: "clock_refused", Path: "clocks.refused", Label: "clock messages refused", Count: true,
		Worse: 1, Trouble: true}, "", nil),
	ofClocks(Number{Name: "clock_falsetickers", Path: "clocks.falsetickers", Label: "clock servers outvoted",
		Count: true}, "", nil),
	ofClocks(Number{Name: "clock_no_majority", Path: "clocks.no_majority", Label: "clocks without a majority",
		Count: true, Worse: 1, Trouble: true}, "", nil),
	{Number: Number{Name: "clock_stability.max", Path: "clocks.stability.max_te_ns",
		Label: "clock error to the reference, largest", Worse: 1}, missing: errNoStability},
	{Number: Number{Name: "clock_stability.mean", Path: "clocks.stability.constant_ns", Worse: 1},
		missing: errNoStability},
	averaged("adev", "adev"), averaged("mdev", "mdev"), averaged("mtie", "mtie_ns"), averaged("tau", "tau_us"),
	averaged("tdev", "tdev_ns"),
}

// counter returns the definition of a counter of the network. Without a label no table has it.
func counter(name, label string) definition {
	return definition{Number: Number{Name: name, Path: "network." + name, Label: label, Count: true, shown: sent}}
}

// trouble returns the definition of a counter that stays 0 in a network without trouble.
func trouble(name, label string) definition { return counter(name, label).badly() }

// badly returns a definition of what a network without trouble does not have.
func (d definition) badly() definition {
	d.Worse, d.Trouble = 1, true
	return d
}

// coordination returns the definition of a counter of coordinated congestion management.
func coordination(name, label string) definition {
	return definition{missing: ErrNoCCM, Number: Number{Name: "ccm." + name, Path: "network.ccm." + name, Label: label,
		Count: true}}
}

// ofClocks returns the definition of a number of clocks that were measured.
func ofClocks(n Number, field string, missing error) definition {
	return definition{Number: n, field: field, missing: missing,
		needs: func(s *Summary, _ int) error { return errorIf(s.Clocks.Samples == 0, errNoClocks) }}
}

// averaged returns the definition of a deviation of the worst host from the reference, at the
// averaging time of 10^N clock samples.
func averaged(name, field string) definition {
	return definition{missing: errNoStability, beyond: errFewAveraging,
		Number: Number{Name: "clock_stability.N." + name, Path: "clocks.stability.at.N." + field}}
}

// errorIf returns err if bad, else nil.
func errorIf(bad bool, err error) error {
	if bad {
		return err
	}
	return nil
}

// sent reports whether the run sent a packet, so that counts of 0 say something.
func sent(s *Summary) bool { return s.Network.Packets > 0 }

// allFlows returns an error if some flows did not finish: then the quantiles are those of the
// fastest, or of none.
func allFlows(s *Summary, _ int) error {
	switch f := &s.Flows; {
	case f.Count <= f.Unfinished:
		return errNoFlow
	case f.Unfinished > 0:
		return fmt.Errorf("%d of %d flows did not finish, so the slowest are not known", f.Unfinished, f.Count)
	}
	return nil
}

// acked returns an error if no packet was acknowledged.
func acked(s *Summary, _ int) error { return errorIf(s.RTT.Max <= 0, errNoRTT) }

// queued returns an error if switches delivered no packet whose queueing delay is known, and may be
// 0.
func queued(s *Summary, _ int) error {
	return errorIf(s.Network.Delivered == 0 || s.ProgramsAlone(), errNoPacket)
}

// noNumber is the value of a word.
func noNumber(*Summary, int) (float64, error) { return 0, errors.New("it is a word") }

// ofItem returns the definition of a number of a collective. nonzero is why 0 is no value; nil: it
// is one.
func ofItem(name, field string, n Number, needs func(*Collective) error, nonzero error) definition {
	n.Name, n.Chart, n.item = "collective.N."+name, "busbw", true
	if field != "" {
		n.Path = "collectives.N." + field
	}
	d := definition{Number: n, missing: errNoCollective, beyond: errNoOutcome, nonzero: nonzero}
	if needs != nil {
		d.needs = func(s *Summary, i int) error {
			if i < len(s.Collectives) {
				return needs(&s.Collectives[i])
			}
			return nil
		}
	}
	return d
}

// computed returns a definition of a number of a collective that no field has.
func (d definition) computed(of func(Collective) float64) definition {
	d.value = func(s *Summary, i int) (float64, error) {
		switch {
		case len(s.Collectives) == 0:
			return 0, d.missing
		case i >= len(s.Collectives):
			return 0, d.beyond
		}
		v := of(s.Collectives[i])
		return v, errorIf(v <= 0, d.nonzero)
	}
	return d
}

// ended returns an error if a collective has neither a time nor a bandwidth.
func ended(c *Collective) error { return errorIf(c.TimeUS <= 0 && c.BusBWGbps <= 0, errNoOutcome) }

// plateau returns the definition of a number of a plateau.
func plateau(name, field string, worse int) definition {
	return definition{missing: errNoPlateau, beyond: errFewPlateaus, Number: Number{Name: "plateau.N." + name,
		Path: "plateaus.N." + field, Chart: "rates", Worse: worse, Count: worse == 0}}
}

// worst returns the definition of the worst value of a number over the plateaus with several
// connections: a single one shares with nobody. If one of them has no value, the worst has none.
func (d definition) worst(label, axis string) definition {
	one := d
	d.Name, d.Path, d.Unit = strings.Replace(d.Name, "N", "worst", 1), "", unitOfField(d.Path)
	d.Label, d.Axis = label, axis
	d.value = func(s *Summary, _ int) (float64, error) {
		var all []float64
		for i := range s.Plateaus {
			if s.Plateaus[i].Conns < 2 {
				continue
			}
			index := strconv.Itoa(i)
			if why := s.Lacks(strings.Replace(one.Path, "N", index, 1)); why != "" {
				return 0, fmt.Errorf("not measured: %s of %d connections has no value: %s",
					strings.Replace(one.Name, "N", index, 1), s.Plateaus[i].Conns, why)
			}
			v, err := one.ofField(s, i)
			if err != nil {
				return 0, err
			}
			all = append(all, v)
		}
		switch {
		case len(all) == 0:
			return 0, errNoPlateau
		case one.Worse > 0:
			return slices.Max(all), nil
		}
		return slices.Min(all), nil
	}
	return d
}

// MetricFields are the names of the numbers of a metric in the output of programs. Instead of one,
// metric.NAME.3 is its fourth value.
var MetricFields = []string{"count", "max", "mean", "min", "p50"}

// metricNumber returns the number of a name such as metric.time_us.p50, or metric.time_us.3.
func metricNumber(name, metric, field string) (n Number, ok bool) {
	n = Number{Name: name, Worse: int(MetricSign(metric))}
	scale := 1.0
	if field == "count" {
		n.Count, n.Worse = true, 0
	} else {
		var unit string
		unit, scale = MetricUnit(metric)
		n.Unit = Unit(unit)
	}
	n.Of = func(s *Summary) (float64, error) {
		v, err := ofMetric(s, metric, field)
		return scale * v, err
	}
	i, err := strconv.Atoi(field)
	return n, metric != "" && (slices.Contains(MetricFields, field) || err == nil && i >= 0 && field[0] != '+')
}

// ofMetric returns a field of a metric.
func ofMetric(s *Summary, name, field string) (float64, error) {
	i := slices.IndexFunc(s.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return 0, errorIf(field != "count", errNoMetric)
	}
	m := &s.Metrics[i]
	if n, err := strconv.Atoi(field); err == nil && n < len(m.Values) && m.NonFinite == 0 {
		return m.Values[n], nil
	}
	if m.Unkept > 0 {
		return 0, fmt.Errorf("%d further matches were not kept, which may be anything", m.Unkept)
	}
	if field == "count" {
		return float64(m.Count), nil
	}
	if m.NonFinite > 0 {
		return 0, fmt.Errorf("%d lines have an infinite value or none (nan)", m.NonFinite)
	}
	switch field {
	case "max":
		return m.Max, nil
	case "mean":
		return m.Mean, nil
	case "min":
		return m.Min, nil
	case "p50":
		return m.P50, nil
	}
	return 0, fmt.Errorf("the summary has %d values of it, the first is .0", len(m.Values))
}
