package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/results/record"
	"weft/results/table"
)

// summaryFacts returns the summary of a run as pairs of a name and a text.
func summaryFacts(s *record.Summary) [][2]string {
	n := &s.Network
	out := [][2]string{
		{"engine", strings.TrimSpace(s.Engine + " " + s.Runtime + " " + s.Datapath)}, {"transport", s.Transport},
		{"seed", strconv.FormatUint(s.Seed, 10)},
		{"flows", table.Flows(s)},
		{"lab time", number(s.LabTimeUS) + " us"}, {"base RTT", number(s.BaseRTTUS) + " us (longest path)"},
		{"network", fmt.Sprintf(
			"%d packets, %d CE marks, %d drops, %d retransmits, %d timeouts, %d pauses; largest queue %s",
			n.Packets, n.CEMarks, n.Drops, n.Retransmits, n.Timeouts, n.Pauses, table.Bytes(n.MaxQueue))},
	}
	if text := table.Links(n); text != "" {
		out = append(out, [2]string{"links", text})
	}
	if n.Refused+n.Beside > 0 {
		out = append(out, [2]string{"foreign packets", fmt.Sprintf("%d rejected, %d from outside the workload",
			n.Refused, n.Beside)})
	}
	fixed := len(out)
	for path, v := range s.Point {
		out = append(out, [2]string{path, fmt.Sprint(v)})
	}
	slices.SortFunc(out[fixed:], func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	if f := s.Fidelity; f != nil {
		out = append(out, [2]string{"fidelity", table.Fidelity(f) + "; dilation " + number(s.Dilation)})
	}
	if r := s.Rates; r != nil {
		out = append(out, [2]string{"rates", fmt.Sprintf("%s Gb/s over %d connections, %s to %s Gb/s each, Jain's "+
			"index %s", number(r.TotalGbps), r.Conns,
			number(r.MinGbps), number(r.MaxGbps), number(r.Jain))})
	}
	return append(out, [2]string{"wall time", number(s.WallS) + " s"})
}

// distributionTable has a row for each distribution that the run measured.
func distributionTable(s *record.Summary) Table {
	t := Table{Head: []string{"", "mean", "p50", "p99", "max", "unit"}, Numbers: 1, Words: 5}
	add := func(name string, q record.Quantiles, unit string) {
		t.Rows = append(t.Rows, []string{name, number(q.Mean), number(q.P50), number(q.P99), number(q.Max), unit})
	}
	if s.Flows.Count > s.Flows.Unfinished {
		name := "flow completion"
		if s.Flows.Unfinished > 0 {
			name += fmt.Sprintf(" (%d of %d flows)", s.Flows.Count-s.Flows.Unfinished, s.Flows.Count)
		}
		add(name, s.Flows.FCT, "us")
		for _, c := range table.Completions(s) {
			add("of "+c.Name, *c.FCT, "us")
		}
		add("slowdown", s.Flows.Slowdown, "")
	}
	if s.RTT.Max > 0 {
		add("round trip", s.RTT, "us")
	}
	if n := &s.Network; n.Delivered > 0 {
		add("switch queues", n.QueueDelay, "us")
	}
	if q := s.Network.QueueEventDelay; q != nil {
		add("queue events", *q, "us")
	}
	if s.Clocks.Error != (record.Quantiles{}) {
		add("clock error", s.Clocks.Error, "ns")
	}
	return t
}

// collectiveTable has a row for each collective of the workload.
func collectiveTable(s *record.Summary) Table {
	t := Table{Head: []string{"collective", "algorithm", "ranks", "size", "time us", "algbw Gb/s", "busbw Gb/s",
		"checked", "wrong"}, Numbers: 2, Words: 9}
	for _, c := range s.Collectives {
		t.Rows = append(t.Rows, []string{
			c.Name, c.Algorithm, strconv.Itoa(c.Ranks), table.Bytes(c.Bytes), number(c.TimeUS), number(c.AlgBWGbps),
			number(c.BusBWGbps),
			strconv.FormatInt(c.Checked, 10), strconv.FormatInt(c.Wrong, 10),
		})
	}
	return t
}

// expectationTable lists expectations with their results.
func expectationTable(all []record.Expect) Table {
	t := Table{Head: []string{"", "expectation", "got", "note"}, Numbers: 2, Words: 3}
	for _, e := range all {
		word, got := "missed", table.Got(e)
		switch {
		case e.OK:
			word = "met"
		case e.Skipped:
			word, got = "skipped", ""
		}
		t.Rows = append(t.Rows, []string{word, e.That, got, strings.Trim(e.Note+"; "+e.Doubt, "; ")})
	}
	return t
}

// pointTable lists the points of a sweep: their values, the flows that completed if any did not,
// and the main metrics. A number that a run does not have is a dash.
func pointTable(runs []*record.Summary) Table {
	paths := sweptPaths(runs)
	t := Table{Head: slices.Clone(paths), Numbers: len(paths)}
	incomplete := table.Incomplete(runs)
	if incomplete {
		t.Head = append(t.Head, "flows done", "packets cut")
	}
	for _, m := range table.Metrics() {
		t.Head = append(t.Head, strings.TrimSpace(m.Name+" "+m.Unit))
	}
	timed := slices.ContainsFunc(runs, func(s *record.Summary) bool { return len(s.Collectives) > 0 })
	if timed {
		// The time of the first collective.
		t.Head = append(t.Head, "collective us")
	}
	t.Words, t.Head = len(t.Head), append(t.Head, "status")
	for _, s := range runs {
		row := values(s, paths)
		if incomplete {
			row = append(row, fmt.Sprintf("%d of %d", s.Flows.Count-s.Flows.Unfinished, s.Flows.Count),
				strconv.FormatInt(s.Network.Cut, 10))
		}
		row = numbers(s, row, "–")
		switch {
		case timed && s.Complete() && len(s.Collectives) > 0:
			row = append(row, number(s.Collectives[0].TimeUS))
		case timed:
			row = append(row, "–")
		}
		t.Rows = append(t.Rows, append(row, table.Outcome(s)))
	}
	return t
}

// CSV returns the points of a sweep for other programs, with the same columns for every sweep. A
// number that a run does not have is empty.
func CSV(runs []*record.Summary) [][]string {
	paths := sweptPaths(runs)
	head := append(slices.Clone(paths), "flows", "flows done", "packets cut")
	for _, m := range table.Metrics() {
		head = append(head, strings.TrimSpace(m.Name+" "+m.Unit))
	}
	out := [][]string{append(head, "status")}
	for _, s := range runs {
		row := values(s, paths)
		for _, n := range []int64{s.Flows.Count, s.Flows.Count - s.Flows.Unfinished, s.Network.Cut} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		out = append(out, append(numbers(s, row, ""), csvStatus(s)))
	}
	return out
}

// sweptPaths returns the paths in which the points of a sweep differ, sorted.
func sweptPaths(runs []*record.Summary) []string {
	var paths []string
	for _, s := range runs {
		for path := range s.Point {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return paths
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

// numbers appends the main metrics of a run to its row, and none for those that it does not have.
func numbers(s *record.Summary, row []string, none string) []string {
	for _, m := range table.Metrics() {
		if v, is := m.Of(s); is {
			row = append(row, number(v))
		} else {
			row = append(row, none)
		}
	}
	return row
}

// csvStatus returns the status of a run; "missed" if it is ok but missed expectations.
func csvStatus(s *record.Summary) string {
	if s.Status == record.OK && table.Missed(s) > 0 {
		return "missed"
	}
	return s.Status
}
