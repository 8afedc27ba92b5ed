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

// SideBySide writes several variants of the run of one lab, a column for each. The column of one
// that did not run says why.
func SideBySide(w io.Writer, title string, variants []Variant, st Style) error {
	rows := variantRows(variants)
	cols := []Column{{Name: title}}
	for _, n := range rows {
		cols[0].Cells = append(cols[0].Cells, Left(n.Label))
	}
	for _, v := range variants {
		c := Column{Name: v.Name}
		if v.Run == nil {
			for _, line := range wrapped("did not run: "+clip.OneLine(v.Missing), missingWidth) {
				c.Cells = append(c.Cells, Left(line))
			}
		} else {
			for _, n := range rows {
				c.Cells = append(c.Cells, Right(n.text(v.Run)))
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
		c.Cells = append(c.Cells, make([]Cell, longest-len(c.Cells))...)
	}
	return Columns(w, cols, "--json has all", st)
}

// A variantRow is a row of SideBySide.
type variantRow struct {
	record.Number
	text func(*record.Summary) string // a dash if the run does not have it
}

// variantRows returns the rows: a collective each, and then the numbers of every run.
func variantRows(variants []Variant) (rows []variantRow) {
	add := func(n record.Number) { rows = append(rows, variantRow{n, n.Text}) }
	for _, v := range variants {
		if v.Run == nil {
			continue
		}
		for i, name := range v.Run.CollectiveNames() {
			n := record.Select(fmt.Sprintf("collective.%d.time", i))[0]
			n.Label = fmt.Sprintf("%s of %d", name, v.Run.Collectives[i].Ranks)
			add(n)
		}
		break // one lab has the same collectives in all variants
	}
	for _, n := range record.Select("fct.mean", "fct.p99", "packets", "ce_marks", "drops", "max_queue",
		"queue_delay.mean", "queue_delay.p99") {
		add(n)
	}
	field := func(name string, is func(*record.Summary) bool, text func(*record.Summary) string) {
		rows = append(rows, variantRow{record.Number{Label: name}, func(s *record.Summary) string {
			return known(is(s), text(s))
		}})
	}
	emulated := func(s *record.Summary) bool { return s.Fidelity != nil }
	field("fidelity", emulated, func(s *record.Summary) string { return s.Outcome().Fidelity })
	field("dilation", emulated, func(s *record.Summary) string { return units.Number(s.Dilation) })
	field("wall time", (*record.Summary).Started, func(s *record.Summary) string { return micros(s.WallS * 1e6) })
	field("outcome", (*record.Summary).Started, Outcome)
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
