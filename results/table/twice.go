package table

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"weft/results/record"
	"weft/units"
)

// maxEach is the number of values of a metric up to which Twice compares each.
const maxEach = 8

// twiceNumbers are the numbers that Twice compares, beside the times of collectives and what
// programs print.
var twiceNumbers = []string{"fct.mean", "fct.p50", "fct.p99", "fct_slowdown.p99", "rtt.mean", "rtt.p50", "rtt.p99",
	"queue_delay.mean", "queue_delay.p50", "queue_delay.p99", "max_queue", "ce_marks", "drops", "retransmits",
	"timeouts"}

// Twice writes how much each number of a run differs from that of the same run at another dilation.
// Two runs do not tell whether the dilation moved a number: runs of one dilation vary too.
func Twice(w io.Writer, first, second *record.Summary, st Style) error {
	t := Table{Head: []string{"number", "at dilation " + units.Number(first.Dilation),
		"at " + units.Number(second.Dilation), "moved"}}
	most := 0.0
	var unsure []string
	add := func(name string, before, after float64, write func(float64) string) {
		text := "–"
		switch {
		case before != 0:
			share := after/before - 1
			most = max(most, math.Abs(share))
			if math.Abs(share) > record.OKLateness {
				unsure = append(unsure, name)
			}
			text = units.FormatChange(share)
		case after == 0:
			text = units.FormatChange(0)
		default:
			unsure = append(unsure, name)
		}
		t.Add(Left(name), Right(write(before)), Right(write(after)), Right(text))
	}
	names := twiceNumbers
	for i := range slices.Backward(first.Collectives) {
		names = append([]string{fmt.Sprintf("collective.%d.time", i)}, names...)
	}
	for _, n := range record.Select(names...) {
		before, after := n.Value(first), n.Value(second)
		if !math.IsNaN(before) && !math.IsNaN(after) && (before != 0 || after != 0) {
			add(n.Name, before, after, n.Format)
		}
	}
	for _, m := range first.Metrics {
		for _, n := range second.Metrics {
			switch {
			case m.Name != n.Name:
			case m.Count == n.Count && m.Count <= maxEach:
				for i := range m.Values {
					add(fmt.Sprintf("metric.%s.%d", m.Name, i), m.Values[i], n.Values[i], units.Number)
				}
			default:
				add("metric."+m.Name+".count", float64(m.Count), float64(n.Count), units.Number)
				add("metric."+m.Name+".p50", m.P50, n.P50, units.Number)
				add("metric."+m.Name+".max", m.Max, n.Max, units.Number)
			}
		}
	}
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintln(w, "no number to compare: programs printed none, and no collective ended")
		return err
	}
	if err := t.Write(w, st, "  "); err != nil {
		return err
	}
	largest := strings.TrimPrefix(units.FormatChange(most), "+")
	chance := "one run at each dilation does not tell how much runs vary: the dilation, this machine's load or " +
		"chance may have moved it; repeat --twice, and blame the dilation only for what moves the same way each time"
	if len(first.Programs) > 0 {
		chance += " (programs begin at other instants and take other ports, so ECMP chooses other paths)"
	}
	_, err := fmt.Fprintf(w, "  the largest difference is %s; %s\n", largest, chance)
	trusted := func(s *record.Summary) bool { return s.Fidelity != nil && s.Fidelity.Verdict == "ok" }
	if err == nil && len(unsure) > 0 && trusted(first) && trusted(second) {
		_, err = fmt.Fprintf(w, "  fidelity ok does not vouch for %s to within %s: runs that are ok differ by more\n",
			strings.Join(unsure, ", "), percent(record.OKLateness))
	}
	return err
}
