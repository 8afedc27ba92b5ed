package report

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"weft/results/names"
	"weft/results/record"
	"weft/results/stats"
	"weft/results/table"
	"weft/units"
)

// tiles returns the main numbers of a run, names and values: first those of the charts that first
// names.
func tiles(s *record.Summary, first []string) [][2]string {
	var out [][2]string
	charts := map[string]string{}
	add := func(name, value string) { out = append(out, [2]string{name, value}) }
	of := func(chart, name, value string) {
		charts[name] = chart
		add(name, value)
	}
	if s.Flows.Count > 0 {
		flows := units.Count(s.Flows.Count)
		if n := s.Flows.Unfinished; n > 0 {
			flows = units.Count(s.Flows.Count-n) + " of " + flows
		}
		add("flows done", flows)
		add("data", units.Shown(float64(s.Flows.Bytes), "B"))
	}
	if s.Complete() && s.Flows.Count > 0 {
		of("fct", "FCT, p99", units.Shown(s.Flows.FCT.P99, "us"))
		if s.Flows.Slowdown.P99 > 0 {
			of("slowdown", "slowdown, p99", units.Number(s.Flows.Slowdown.P99))
		}
	}
	if v := table.BusBW(s); v > 0 {
		of("busbw", "bus bandwidth", units.Shown(v, "Gb/s"))
	}
	if s.RTT.Max > 0 && s.Lacks("rtt_us.mean") == "" {
		of("rtt", "round trip, mean", units.Shown(s.RTT.Mean, "us"))
	}
	n := &s.Network
	if s.Lacks("network.max_queue_bytes") == "" && n.Packets+n.Delivered > 0 {
		of("queues", table.LargestQueue(s), units.Shown(float64(n.MaxQueue), "B"))
	}
	if s.Lacks("network.drops") == "" && n.Packets+n.Delivered > 0 {
		add("dropped", units.Count(n.Drops))
	}
	if n.Trims > 0 {
		add("trimmed", units.Count(n.Trims))
	}
	if n.Cut > 0 {
		add("cut off by faults", units.Count(n.Cut))
	}
	if s.Clocks.Samples > 0 && s.Lacks("clocks.error_ns") == "" {
		of("clocks", "clock error, p99", units.Shown(s.Clocks.Error.P99, "ns"))
	}
	add("lab time", units.Shown(s.LabTimeUS, "us"))
	if s.Fidelity != nil {
		add("fidelity", s.Outcome().Fidelity)
	}
	lead(out, first, func(tile [2]string) string { return charts[tile[0]] })
	return out
}

// summaryFacts returns what the tiles and tables of a run leave out, as pairs of a name and a text.
func summaryFacts(s *record.Summary, control string) [][2]string {
	n := &s.Network
	out := [][2]string{{"transport", record.Sender(names.Transport(s.Transport, control), s.Carried)}}
	if s.Lacks("base_rtt_us") == "" {
		out = append(out, [2]string{"base RTT", units.Shown(s.BaseRTTUS, "us") + " (longest path)"})
	}
	out = append(out, [2]string{"network", table.Packets(s)})
	if text := table.Links(n); text != "" {
		out = append(out, [2]string{"links", text})
	}
	if text := table.Trimming(n); text != "" {
		out = append(out, [2]string{"trimming", text})
	}
	if n.Refused+n.Beside > 0 {
		out = append(out, [2]string{"foreign packets", fmt.Sprintf("%s rejected, %s from outside the workload",
			units.Count(n.Refused), units.Count(n.Beside))})
	}
	if f := s.Fidelity; f != nil {
		out = append(out, [2]string{"fidelity", table.Fidelity(s) + "; dilation " + units.Number(s.Dilation)})
	}
	if r := s.Rates; r != nil {
		out = append(out, [2]string{"rates", fmt.Sprintf("%s over %d connections, %s to %s each, Jain's index %s",
			units.Shown(r.TotalGbps, "Gb/s"), r.Conns, units.Shown(r.MinGbps, "Gb/s"), units.Shown(r.MaxGbps, "Gb/s"),
			units.Number(r.Jain))})
	}
	return append(out, [2]string{"wall time", units.Shown(s.WallS*1e6, "us")})
}

// distributionTable has a row for each distribution that the run measured, each in one unit.
func distributionTable(s *record.Summary) Table {
	t := Table{Head: []string{"", "mean", "p50", "p99", "max", "unit"}, Numbers: 1, Words: 5}
	add := func(name, path string, q record.Quantiles, unit string) {
		in := units.ScaleOf(unit, q.P99)
		value := func(part string, v float64) string { return table.Value(s, path+part, units.Number(v/in.Of)) }
		t.Rows = append(t.Rows, []string{name, value(".mean", q.Mean), value(".p50", q.P50), value(".p99", q.P99),
			value(".max", q.Max), in.Unit})
	}
	if s.Flows.Count > s.Flows.Unfinished {
		name := "flow completion"
		if s.Flows.Unfinished > 0 {
			name += fmt.Sprintf(" (%s of %s flows)", units.Count(s.Flows.Count-s.Flows.Unfinished),
				units.Count(s.Flows.Count))
		}
		add(name, "flows.fct_us", s.Flows.FCT, "us")
		for _, c := range table.Completions(s) {
			add("of "+c.Name, "", *c.FCT, "us")
		}
		add("slowdown", "flows.slowdown", s.Flows.Slowdown, "")
	}
	if s.RTT.Max > 0 {
		add("round trip", "rtt_us", s.RTT, "us")
	}
	if n := &s.Network; n.Delivered > 0 && !s.ProgramsAlone() && s.Lacks("network.queue_delay_us") == "" {
		add("switch queues", "network.queue_delay_us", n.QueueDelay, "us")
	}
	if q := s.Network.QueueEventDelay; q != nil {
		add("queue events", "network.queue_event_delay_us", *q, "us")
	}
	if s.Clocks.Error != (record.Quantiles{}) {
		add("clock error", "clocks.error_ns", s.Clocks.Error, "ns")
	}
	return t
}

// collectiveTable has a row for each collective of the workload.
func collectiveTable(s *record.Summary) Table {
	t := Table{Head: []string{"collective", "algorithm", "ranks", "size", "time", "longest", "algbw",
		"busbw", "checked", "wrong"}, Numbers: 2, Words: 10}
	calls := s.CollectiveNames()
	for i, c := range s.Collectives {
		wrong := "–"
		if c.Checked > 0 {
			wrong = units.Count(c.Wrong)
		}
		t.Rows = append(t.Rows, []string{
			calls[i], c.Algorithm, strconv.Itoa(c.Ranks), units.Shown(float64(c.Bytes), "B"),
			shown(c.TimeUS, "us"), shown(c.Longest(), "us"), shown(c.AlgBWGbps, "Gb/s"), shown(c.BusBWGbps, "Gb/s"),
			table.Checked(c.Checked, c.Alike), wrong,
		})
	}
	return t
}

// shown formats a positive number; a dash stands for one that was not measured.
func shown(v float64, unit string) string {
	if v <= 0 {
		return "–"
	}
	return units.Shown(v, unit)
}

// programsPart tells how the programs of the workload ended on each host, and what they printed.
func programsPart(s *record.Summary) Part {
	ends := Table{Head: []string{"", "program", "host", "end", "lab time", "wall time", "processor", "waited", "lines"},
		Numbers: 4, Words: 9}
	for i := range s.Programs {
		p := &s.Programs[i]
		for k := range p.Hosts {
			h := &p.Hosts[k]
			word, grade, waited := "ok", record.Good, "–"
			if h.Failed() {
				word, grade = record.Failed, record.Bad
			}
			ends.Set(len(ends.Rows), grade)
			if share, judged := h.Waited(); judged {
				waited = units.Shown(100*share, "%")
			}
			ends.Rows = append(ends.Rows, []string{word, p.Command, h.Host, table.EndOf(h), units.Shown(h.TimeUS, "us"),
				units.Shown(1e6*h.WallS, "us"), units.Shown(1e6*h.CPUS, "us"), waited, units.Count(h.Lines)})
		}
	}
	part := Part{Heading: "Programs", Tables: []Table{ends}, Text: fmt.Sprintf("Waited: the share of the time in "+
		"which the host's network was in use that a task waited for a processor, at most. Above %g %% the fidelity is "+
		"degraded, above %g %% invalid. A dash: the network was in use for too short a time to judge. The output is "+
		"in the folder output.", 100*record.OKLateness, 100*record.DegradedLateness)}
	if len(s.Metrics) > 0 {
		rows := table.MetricRows(s)
		part.Tables = append(part.Tables, Table{Head: rows[0], Rows: rows[1:], Numbers: 1, Words: 6})
	}
	return part
}

// expectationTable lists expectations with their results.
func expectationTable(all []record.Expect) Table {
	t := Table{Head: []string{"", "expectation", "got", "note"}}
	for i, e := range all {
		word, got := "missed", table.Got(e)
		switch {
		case e.OK:
			word = "met"
		case e.Skipped:
			word, got = "skipped", ""
		}
		t.Set(i, e.Grade())
		t.Rows = append(t.Rows, []string{word, e.That, got, strings.Trim(e.Note+"; "+e.Doubt, "; ")})
	}
	if !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[3] != "" }) {
		t.Head = t.Head[:3]
		for i := range t.Rows {
			t.Rows[i] = t.Rows[i][:3]
		}
	}
	return t
}

// pointTable lists the points of a sweep: the run with a link to its page, the values of the point,
// the flows that completed if any did not, and the main metrics, each column in one unit. A number
// that a run does not have is a dash, and a metric that no run has is left out. viewed reports
// whether the directory of a run has ViewFile.
func pointTable(runs []*record.Summary, viewed func(run string) bool) Table {
	paths := table.SweptPaths(runs)
	t := Table{Head: append([]string{"run"}, shortPaths(paths)...), Numbers: len(paths) + 1, Links: map[[2]int]string{}}
	watch := false
	for i, s := range runs {
		name := "–"
		if s.Run != "" {
			base := filepath.Base(s.Run)
			name = base[strings.LastIndexByte(base, '-')+1:]
			t.Links[[2]int{i, 0}] = reportOf(s.Run)
			watch = watch || viewed(s.Run)
		}
		row := []string{name}
		for _, v := range values(s, paths) {
			row = append(row, names.Value(v))
		}
		t.Rows = append(t.Rows, row)
	}
	add := func(head string, cell func(*record.Summary) string) {
		t.Head = append(t.Head, head)
		for i, s := range runs {
			t.Rows[i] = append(t.Rows[i], cell(s))
		}
	}
	if table.Incomplete(runs) {
		add("flows done", func(s *record.Summary) string {
			return units.Count(s.Flows.Count-s.Flows.Unfinished) + " of " + units.Count(s.Flows.Count)
		})
		add("packets cut", func(s *record.Summary) string { return units.Count(s.Network.Cut) })
	}
	for _, m := range append(table.MetricsOf(runs), collectiveTime) {
		var all []float64
		for _, s := range runs {
			if v, is := m.Of(s); is {
				all = append(all, v)
			}
		}
		if len(all) == 0 || m.Absent(runs) {
			continue
		}
		in := units.ScaleOf(m.Unit, stats.Mean(all))
		add(strings.TrimSpace(m.Heading(runs)+" "+in.Unit), func(s *record.Summary) string {
			if v, is := m.Of(s); is {
				return units.Number(v / in.Of)
			}
			return "–"
		})
	}
	t.Words = len(t.Head)
	t.Column = len(t.Head)
	add("status", table.Outcome)
	for i, s := range runs {
		t.Set(i, s.Outcome().Grade())
	}
	if watch {
		at := len(t.Head)
		add("over time", func(s *record.Summary) string {
			if s.Run != "" && viewed(s.Run) {
				return "watch"
			}
			return ""
		})
		for i, s := range runs {
			if t.Rows[i][at] != "" {
				t.Links[[2]int{i, at}] = "../" + filepath.Base(s.Run) + "/" + ViewFile
			}
		}
	}
	return t
}

// collectiveTime is the time of the first collective, unless that is a job.
var collectiveTime = table.Metric{
	Name: "collective", Unit: "us", First: true,
	Of: func(s *record.Summary) (float64, bool) {
		if _, is := table.JobTime(s); is || !s.Complete() || len(s.Collectives) == 0 {
			return 0, false
		}
		return s.Collectives[0].TimeUS, true
	},
}

// shortPaths returns the shortest name of each path that no other has.
func shortPaths(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = table.Short(p, paths)
	}
	return out
}

// CSV returns the points of a sweep for other programs, with the same columns for every sweep. A
// number that a run does not have is empty.
func CSV(runs []*record.Summary) [][]string {
	runs = table.Started(runs)
	paths, metrics := table.SweptPaths(runs), table.MetricsOf(runs)
	head := append(slices.Clone(paths), "flows", "flows done", "packets cut")
	for _, m := range metrics {
		head = append(head, strings.TrimSpace(m.Name+" "+m.Unit))
	}
	out := [][]string{append(head, "status")}
	for _, s := range runs {
		row := values(s, paths)
		for _, n := range []int64{s.Flows.Count, s.Flows.Count - s.Flows.Unfinished, s.Network.Cut} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		out = append(out, append(numbers(s, row, metrics), table.Outcome(s)))
	}
	return out
}

// values returns the values of a run at the paths of its sweep; empty without a value.
func values(s *record.Summary, paths []string) []string {
	row := make([]string, len(paths))
	for i, path := range paths {
		if v, ok := s.Point[path]; ok {
			row[i] = fmt.Sprint(v)
		}
	}
	return row
}

// numbers appends the main metrics of a run to its row, empty for those that it does not have.
func numbers(s *record.Summary, row []string, metrics []table.Metric) []string {
	for _, m := range metrics {
		if v, is := m.Of(s); is {
			row = append(row, number(v))
		} else {
			row = append(row, "")
		}
	}
	return row
}
