package table

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"weft/results/record"
	"weft/units"
)

// maxEach is the number of values of a metric up to which Twice compares each.
const maxEach = 8

// moved is a number of two runs.
type moved struct {
	name          string
	before, after float64
	write         func(float64) string
}

// Twice writes how much each number of a run differs from that of the same run at another dilation.
// Two runs do not tell whether the dilation moved a number: runs of one dilation vary too.
func Twice(w io.Writer, first, second *record.Summary, st Style) error {
	var rows []moved
	add := func(name string, before, after float64, write func(float64) string) {
		rows = append(rows, moved{name, before, after, write})
	}
	for i, c := range first.Collectives {
		if i < len(second.Collectives) && c.TimeUS > 0 && second.Collectives[i].TimeUS > 0 {
			add("collective."+strconv.Itoa(i)+".time", c.TimeUS, second.Collectives[i].TimeUS, micros)
		}
	}
	if complete(first) && complete(second) {
		add("fct.p50", first.Flows.FCT.P50, second.Flows.FCT.P50, micros)
		add("fct.p99", first.Flows.FCT.P99, second.Flows.FCT.P99, micros)
		add("fct_slowdown.p99", first.Flows.Slowdown.P99, second.Flows.Slowdown.P99, units.Number)
	}
	if answered(first) && answered(second) {
		add("rtt.mean", first.RTT.Mean, second.RTT.Mean, micros)
		add("rtt.p99", first.RTT.P99, second.RTT.P99, micros)
	}
	if delivered(first) && delivered(second) {
		add("queue_delay.p99", first.Network.QueueDelay.P99, second.Network.QueueDelay.P99, micros)
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
	var g grid
	g.row(header("number"), header("at dilation "+units.Number(first.Dilation)),
		header("at "+units.Number(second.Dilation)), header("moved"))
	most := 0.0
	var unsure []string
	for _, r := range rows {
		text := cell{text: "–", right: true}
		if r.before != 0 {
			share := r.after/r.before - 1
			most = max(most, math.Abs(share))
			if math.Abs(share) > record.OKLateness {
				unsure = append(unsure, r.name)
			}
			text = cell{text: units.FormatChange(share), right: true}
		} else if r.after == 0 {
			text = cell{text: "+0.0 %", right: true}
		}
		g.row(left(r.name), right(r.write(r.before)), right(r.write(r.after)), text)
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "no number to compare: programs printed none, and no collective ended")
		return err
	}
	if err := g.write(w, st, "  "); err != nil {
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
