package summary

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/internal/plural"
	"weft/orchestrator/experiment"
	"weft/orchestrator/lab"
	"weft/results/expect"
	"weft/results/record"
	"weft/results/stats"
	"weft/units"
)

// Bounds on what is kept of a program's output: it may print for hours. Ours.
const (
	maxMetricRows = 1 << 20
	maxMetricText = 200 // bytes
)

// A Reader finds the metrics of one program in its output, on both streams.
type Reader struct {
	item    int
	pattern *regexp.Regexp // nil: there are none
	hosts   []string
	lines   []int64 // of each host
	Rows    []record.MetricRow
	Unkept  map[string]int64 // by name: matches beyond most
	kept    map[string]int
	most    int // matches of a name that are kept

	again, cut matches
}

// matches counts lines whose match is not all that they say.
type matches struct {
	n     int
	first string // line
}

func (m *matches) add(line []byte) {
	if m.n++; m.n == 1 {
		m.first = strings.ToValidUTF8(string(line[:min(len(line), maxMetricText)]), "?")
	}
}

// NewReader returns a reader for a program of the experiment.
func NewReader(p *experiment.Program) *Reader {
	r := &Reader{item: p.Index, pattern: p.Metrics, hosts: p.Names, lines: make([]int64, len(p.Names)),
		Unkept: map[string]int64{}, kept: map[string]int{}}
	if p.Metrics != nil { // each name has its share, so that none is without a match because of another
		r.most = maxMetricRows / max(1, p.Metrics.NumSubexp())
	}
	return r
}

// Line reads a line that the program of a rank printed at an instant.
func (r *Reader) Line(rank int, line []byte, at units.Time) {
	number := r.lines[rank]
	r.lines[rank]++
	if r.pattern == nil {
		return
	}
	all := r.pattern.FindAllSubmatchIndex(line, 2)
	if all == nil {
		return
	}
	if len(all) > 1 {
		r.again.add(line)
	}
	for i, name := range r.pattern.SubexpNames() {
		from, to := all[0][2*i], all[0][2*i+1]
		if name == "" || from < 0 {
			continue
		}
		if partOfNumber(line, from, to, all[0][1]) {
			r.cut.add(line)
		}
		if r.kept[name] >= r.most {
			r.Unkept[name]++
			continue
		}
		r.kept[name]++
		row := record.MetricRow{Item: r.item, Host: r.hosts[rank], Line: int(number), At: at, Name: name,
			Text: strings.ToValidUTF8(string(line[from:min(to, from+maxMetricText)]), "?")}
		v, err := strconv.ParseFloat(row.Text, 64)
		row.Infinite = math.IsInf(v, 0) || math.IsNaN(v) // beyond the range too
		row.Number = err == nil && !row.Infinite && to-from <= maxMetricText
		if row.Number {
			row.Value = v
		}
		r.Rows = append(r.Rows, row)
	}
}

// Text that belongs to the same number as the digits beside it.
var (
	began  = regexp.MustCompile(`([0-9][.,_']?|(^|[^0-9A-Za-z_.)\]-])[-.]|[0-9][eE][+-]?)$`) // before them
	goesOn = regexp.MustCompile(`^([.,_']?[0-9]|[eE][+-]?[0-9])`)                            // behind them
	hex    = regexp.MustCompile(`^[xX][0-9A-Fa-f]`)                                          // behind a 0
	times  = regexp.MustCompile(`^[kKMGT]i?B?([^0-9A-Za-z/]|$)`)                             // behind the match: 12K
)

// partOfNumber reports whether a group, line[from:to], is digits of a number that begins before it
// or goes on behind it. end is that of the match: a pattern that reads a prefix such as K beside
// the group knows of it.
func partOfNumber(line []byte, from, to, end int) bool {
	before, behind := line[:from], line[to:]
	switch {
	case isDigit(line[:to], from) && began.Match(before):
		return true
	case !isDigit(line[from:], to-from-1):
		return false
	}
	return goesOn.Match(behind) || to == end && times.Match(behind) ||
		hex.Match(behind) && line[to-1] == '0' && !isDigit(line, to-2)
}

func isDigit(text []byte, i int) bool {
	return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9'
}

// Doubts returns warnings about lines with more than their first match: a second one, as in a
// progress bar that carriage returns rewrite, or more of the same number beside it.
func (r *Reader) Doubts() (all []string) {
	for _, d := range []struct {
		matches
		what string
	}{
		{r.again, "match more than once, and only the first counts"},
		{r.cut, "have a number of which a group of the match is a part"},
	} {
		if d.n > 0 {
			all = append(all, fmt.Sprintf("workload.%d.metrics: %s of output %s, such as %q", r.item,
				plural.Count(d.n, "line"), d.what, clip.Text(d.first)))
		}
	}
	return all
}

// Lines returns the number of lines that the program of a rank printed.
func (r *Reader) Lines(rank int) int64 { return r.lines[rank] }

// CommandName returns a short name for a program: python3 train.py.
func CommandName(args []string) string {
	const words = 2
	var parts []string
	for i, a := range args[:min(len(args), words)] {
		if i > 0 && (strings.HasPrefix(a, "-") || strings.ContainsAny(a, " \n\t")) { // an option, or a script
			break
		}
		parts = append(parts, path.Base(a))
	}
	name := strings.Join(parts, " ")
	if len(args) > len(parts) {
		name += " ..."
	}
	return clip.Text(name)
}

// metricsOf describes the numbers among rows, in the order in which their names first appear. The
// rows of a line follow each other.
func metricsOf(rows []record.MetricRow) (all []record.Metric) {
	type metric struct {
		values []float64
		groups []string // by first appearance
		of     map[string][]float64
	}
	metrics, infinite := map[string]*metric{}, map[string]int{}
	for len(rows) > 0 {
		line, first := rows, &rows[0]
		for n := range rows {
			if r := &rows[n]; r.Item != first.Item || r.Host != first.Host || r.Line != first.Line {
				line = rows[:n]
				break
			}
		}
		rows = rows[len(line):]
		at := sizes(line)
		for i := range line {
			r := &line[i]
			if r.Infinite {
				infinite[r.Name]++
			}
			if !r.Number {
				continue
			}
			m := metrics[r.Name]
			if m == nil {
				all = append(all, record.Metric{Name: r.Name})
				m = &metric{of: map[string][]float64{}}
				metrics[r.Name] = m
			}
			m.values = append(m.values, r.Value)
			if unit, _ := record.MetricUnit(r.Name); unit == "B" || at == "" || len(m.groups) > record.MaxMetricGroups {
				continue
			}
			if m.of[at] == nil {
				m.groups = append(m.groups, at)
			}
			m.of[at] = append(m.of[at], r.Value)
		}
	}
	for i := range all {
		m := &all[i]
		found := metrics[m.Name]
		v := found.values
		m.NonFinite = infinite[m.Name]
		m.Count, m.Values = len(v), slices.Clone(v[:min(len(v), record.MaxMetricValues)])
		m.Min, m.Mean, m.P50, m.Max = spread(v)
		if len(found.groups) > record.MaxMetricGroups {
			continue
		}
		for _, at := range found.groups {
			g := record.MetricGroup{At: at, Count: len(found.of[at])}
			g.Min, g.Mean, g.P50, g.Max = spread(found.of[at])
			m.Groups = append(m.Groups, g)
		}
	}
	return all
}

// sizes names the numbers in bytes among the rows of a line: size_bytes=1048576.
func sizes(line []record.MetricRow) string {
	var parts []string
	for i := range line {
		r := &line[i]
		if unit, _ := record.MetricUnit(r.Name); unit == "B" && r.Number {
			parts = append(parts, r.Name+"="+strconv.FormatFloat(r.Value, 'f', -1, 64))
		}
	}
	return strings.Join(parts, " ")
}

// spread returns statistics of values, which must not be empty.
func spread(values []float64) (least, mean, median, most float64) {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[0], stats.Mean(values), stats.Quantile(sorted, 0.5), sorted[len(sorted)-1]
}

// addPrograms adds the programs to a summary.
func addPrograms(x *experiment.Experiment, o *Outcome, s *record.Summary) {
	s.Programs = o.Programs
	s.Metrics = metricsOf(o.Metrics)
	for i := range s.Metrics {
		s.Metrics[i].Unkept = o.Unkept[s.Metrics[i].Name]
	}
	if len(x.Programs) == 0 {
		return
	}
	s.Carried = cmp.Or(o.Carrier, record.Programs)
	s.Notes = append(s.Notes, dilated(cmp.Or(s.Dilation, 1)))
	for i := range x.Programs {
		p := &x.Programs[i]
		if p.Metrics == nil || s.Error != "" {
			continue
		}
		for _, name := range p.Metrics.SubexpNames() {
			if name == "" {
				continue
			}
			expected := slices.ContainsFunc(x.Lab.Expect, func(e lab.Expectation) bool {
				expr, err := expect.Parse(e.Text)
				return err == nil && expr.UsesMetric(name)
			})
			if why := doubt(p.Index, name, o.Metrics, expected); why != "" {
				s.Warnings = append(s.Warnings, fmt.Sprintf("workload.%d.metrics: %s", p.Index, why))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Unkept)) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d matches of the metric %s were not kept: its numbers are of "+
			"those before them, and meet no expectation", o.Unkept[name], name))
	}
}

// doubt says that a metric of a program was not found, or is no number in some lines: what is
// expected of the largest would not see a NaN. It is a word in all lines if the pattern is made so,
// unless numbers are expected of it. "": no doubt.
func doubt(item int, name string, rows []record.MetricRow, expected bool) string {
	numbers, others, infinite, text := 0, 0, 0, ""
	for i := range rows {
		r := &rows[i]
		if r.Item != item || r.Name != name {
			continue
		}
		if r.Number {
			numbers++
			continue
		}
		if others++; others == 1 {
			text = r.Text
		}
		if r.Infinite {
			infinite++
		}
	}
	switch {
	case numbers+others == 0:
		return "no line of output has " + name
	case numbers > 0 && others > 0:
		return fmt.Sprintf("%s is no number in %d of %d lines, such as %q, which were left out of its statistics", name,
			others, numbers+others, clip.Text(text))
	case infinite > 0 || others > 0 && expected:
		return fmt.Sprintf("%s is in the output, but a finite number in none of %s, such as %q: it has no value", name,
			plural.Count(others, "line"), clip.Text(text))
	}
	return ""
}

// dilated says what dilation does to programs. The constants are Linux's: TCP_RTO_MIN and
// TCP_DELACK_MIN, include/net/tcp.h.
func dilated(d float64) string {
	const rtoMin, delayedAck = 200 * units.Millisecond, 40 * units.Millisecond
	lab := func(t units.Time) units.Time { return units.Time(float64(t) / d).Rounded() }
	return fmt.Sprintf("at dilation %.15g, programs compute %.15g times too fast; the kernel's TCP has a minimum "+
		"retransmission timeout of %v and delays acknowledgements by %v; sleeps last 1/%.15g of what they say (lab "+
		"time)", d, d, lab(rtoMin), lab(delayedAck), d)
}
