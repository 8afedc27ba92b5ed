package table

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"weft/internal/clip"
	"weft/results/record"
	"weft/units"
)

// Variant is one of the ways to run a lab, a column of SideBySide.
type Variant struct {
	Name    string
	Run     *record.Summary // nil: it did not run
	Missing string          // why it did not run, and how to get what is missing
}

// missingWidth is the width to which SideBySide wraps Variant.Missing, in characters.
const missingWidth = 30

// variantRow is a row of SideBySide. A run without the number has a dash.
type variantRow struct {
	name string
	of   func(s *record.Summary) (text string, is bool)
}

// SideBySide writes several variants of the run of one lab, a column for each. The column of one
// that did not run says why.
func SideBySide(w io.Writer, title string, variants []Variant, st Style) error {
	rows := variantRows(variants)
	cols := []Column{{Name: title}}
	for _, r := range rows {
		cols[0].Cells = append(cols[0].Cells, r.name)
	}
	for _, v := range variants {
		c := Column{Name: v.Name}
		switch {
		case v.Run == nil:
			c.Cells = wrapped("did not run: "+clip.OneLine(v.Missing), missingWidth)
		default:
			c.Right = true
			for _, r := range rows {
				text, is := r.of(v.Run)
				c.Cells = append(c.Cells, known(is, text))
			}
		}
		cols = append(cols, c)
	}
	longest := 0
	for _, c := range cols {
		longest = max(longest, len(c.Cells))
	}
	for i := range cols {
		c := &cols[i]
		c.Cells = append(c.Cells, make([]string, longest-len(c.Cells))...)
	}
	return Columns(w, cols, "--json has all", st)
}

// variantRows returns the rows: a collective each, and then the numbers of every run.
func variantRows(variants []Variant) (rows []variantRow) {
	for _, v := range variants {
		if v.Run == nil {
			continue
		}
		for i, name := range v.Run.CollectiveNames() {
			rows = append(rows, variantRow{fmt.Sprintf("%s of %d", name, v.Run.Collectives[i].Ranks),
				func(s *record.Summary) (string, bool) {
					if i >= len(s.Collectives) {
						return "", false
					}
					us := s.Collectives[i].TimeUS
					return micros(us), us > 0
				}})
		}
		break // one lab has the same collectives in all variants
	}
	field := func(name, path string, is func(*record.Summary) bool, text func(*record.Summary) string) {
		rows = append(rows, variantRow{name, func(s *record.Summary) (string, bool) {
			return Value(s, path, text(s)), is(s) && s.Lacks(path) == ""
		}})
	}
	sent := func(s *record.Summary) bool { return s.Network.Packets > 0 }
	emulated := func(s *record.Summary) bool { return s.Fidelity != nil }
	count := func(n func(*record.Network) int64) func(*record.Summary) string {
		return func(s *record.Summary) string { return units.Count(n(&s.Network)) }
	}
	field("flow completion, mean", "flows.fct_us.mean", complete,
		func(s *record.Summary) string { return micros(s.Flows.FCT.Mean) })
	field("flow completion, p99", "flows.fct_us.p99", complete,
		func(s *record.Summary) string { return micros(s.Flows.FCT.P99) })
	field("packets", "network.packets", sent, count(func(n *record.Network) int64 { return n.Packets }))
	field("CE marks", "network.ce_marks", sent, count(func(n *record.Network) int64 { return n.CEMarks }))
	field("drops", "network.drops", sent, count(func(n *record.Network) int64 { return n.Drops }))
	field("largest queue", "network.max_queue_bytes", sent,
		func(s *record.Summary) string { return size(s.Network.MaxQueue) })
	field("time in queues, mean", "network.queue_delay_us.mean", delivered,
		func(s *record.Summary) string { return micros(s.Network.QueueDelay.Mean) })
	field("time in queues, p99", "network.queue_delay_us.p99", delivered,
		func(s *record.Summary) string { return micros(s.Network.QueueDelay.P99) })
	field("fidelity", "fidelity", emulated, func(s *record.Summary) string { return s.Outcome().Fidelity })
	field("dilation", "dilation", emulated, func(s *record.Summary) string { return units.Number(s.Dilation) })
	field("wall time", "wall_s", (*record.Summary).Started,
		func(s *record.Summary) string { return micros(s.WallS * 1e6) })
	field("outcome", "status", (*record.Summary).Started, Outcome)
	return rows
}

// wrapped breaks a text into lines of at most width characters. A word that is longer has a line of
// its own.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}
