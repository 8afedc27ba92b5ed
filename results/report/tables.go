package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/results/record"
	"weft/results/table"
)

// facts is the summary of a run in words and numbers.
func facts(s *record.Summary) [][2]string {
	n := &s.Network
	out := [][2]string{
		{"engine", strings.TrimSpace(s.Engine + " " + s.Runtime + " " + s.Datapath)}, {"transport", s.Transport}, {"seed", strconv.FormatUint(s.Seed, 10)},
		{"flows", fmt.Sprintf("%d done of %d, %s", s.Flows.Count-s.Flows.Unfinished, s.Flows.Count, table.Bytes(s.Flows.Bytes))},
		{"lab time", number(s.LabTimeUS) + " us"}, {"base RTT", number(s.BaseRTTUS) + " us"},
		{"network", fmt.Sprintf("%d packets, %d CE marks, %d drops, %d retransmits, %d timeouts, %d pauses; largest queue %s",
			n.Packets, n.CEMarks, n.Drops, n.Retransmits, n.Timeouts, n.Pauses, table.Bytes(n.MaxQueue))},
	}
	for path, v := range s.Point {
		out = append(out, [2]string{path, fmt.Sprint(v)})
	}
	slices.SortFunc(out[7:], func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	if f := s.Fidelity; f != nil {
		out = append(out, [2]string{"fidelity", fmt.Sprintf("%s: 99th percentile of lateness %s ns of %s ns base RTT, %d unordered drops, dilation %s",
			f.Verdict, number(f.LatenessP99NS), number(f.BaseRTTNS), f.UnorderedDrops, number(s.Dilation))})
	}
	if r := s.Rates; r != nil {
		out = append(out, [2]string{"rates", fmt.Sprintf("%s Gb/s over %d connections, %s to %s Gb/s each, Jain's index %s", number(r.TotalGbps), r.Conns,
			number(r.MinGbps), number(r.MaxGbps), number(r.Jain))})
	}
	return append(out, [2]string{"wall time", number(s.WallS) + " s"})
}

func distributions(s *record.Summary) Table {
	t := Table{Head: []string{"", "mean", "p50", "p99", "max", "unit"}, Numbers: 1, Words: 5}
	add := func(name string, q record.Quantiles, unit string) {
		t.Rows = append(t.Rows, []string{name, number(q.Mean), number(q.P50), number(q.P99), number(q.Max), unit})
	}
	if s.Flows.Count > s.Flows.Unfinished {
		add("flow completion", s.Flows.FCT, "us")
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

func collectives(s *record.Summary) Table {
	t := Table{Head: []string{"collective", "algorithm", "ranks", "size", "time us", "algbw Gb/s", "busbw Gb/s", "checked", "wrong"}, Numbers: 2, Words: 9}
	for _, c := range s.Collectives {
		t.Rows = append(t.Rows, []string{
			c.Name, c.Algorithm, strconv.Itoa(c.Ranks), table.Bytes(c.Bytes), number(c.TimeUS), number(c.AlgBWGbps), number(c.BusBWGbps),
			strconv.FormatInt(c.Checked, 10), strconv.FormatInt(c.Wrong, 10),
		})
	}
	return t
}

// Expectations is the table of expectations and how they came out.
func Expectations(all []record.Expect) Table {
	t := Table{Head: []string{"", "expectation", "got", "note"}, Numbers: 2, Words: 3}
	for _, e := range all {
		word := "missed"
		if e.OK {
			word = "met"
		}
		t.Rows = append(t.Rows, []string{word, e.That, table.Got(e), e.Note})
	}
	return t
}

// Points is the table of the points of a sweep: their values, and what everybody looks at first.
func Points(runs []*record.Summary) Table {
	var paths []string
	for _, s := range runs {
		for path := range s.Point {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	t := Table{
		Head:    append(slices.Clone(paths), "FCT p50 us", "FCT p99 us", "slowdown p99", "RTT mean us", "queue p99 us", "busbw Gb/s", "drops", "status"),
		Numbers: len(paths), Words: len(paths) + 7,
	}
	for _, s := range runs {
		var row []string
		for _, path := range paths {
			cell := ""
			if v, ok := s.Point[path]; ok {
				cell = fmt.Sprint(v)
			}
			row = append(row, cell)
		}
		bus := ""
		if len(s.Collectives) > 0 {
			bus = number(s.Collectives[0].BusBWGbps)
		}
		status := s.Status
		for _, e := range s.Expect {
			if !e.OK {
				status = "missed"
			}
		}
		t.Rows = append(t.Rows, append(row, number(s.Flows.FCT.P50), number(s.Flows.FCT.P99), number(s.Flows.Slowdown.P99), number(s.RTT.Mean),
			number(s.Network.QueueDelay.P99), bus, strconv.FormatInt(s.Network.Drops, 10), status))
	}
	return t
}

// CSV writes the table as text for other programs.
func (t Table) CSV() [][]string { return append([][]string{t.Head}, t.Rows...) }
