package table

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"weft/internal/clip"
	"weft/results/record"
)

// A Table is rows of cells below a head. It is built once and written for a terminal, as Markdown
// or as a part of a page.
type Table struct {
	Head []string // nil: none
	Rows [][]Cell
}

// A Cell is one cell of a Table.
type Cell struct {
	Text   string
	Number bool // right-aligned, as numbers are
	Mark   Mark
	Link   string // an address in a page; empty: none
}

func (c Cell) String() string { return c.Text }

// Strings returns the texts of cells.
func Strings(row []Cell) []string {
	texts := make([]string, len(row))
	for i, c := range row {
		texts[i] = c.Text
	}
	return texts
}

// A Mark says what a cell means: its colour in a terminal, its style in a page, its sign in
// Markdown.
type Mark int

// The marks of cells. Texts have a mark by what they stand for: a lab, a host or a value may be
// called as a result is.
const (
	Unmarked Mark = iota
	MarkGood
	MarkDoubt
	MarkBad
	MarkName // the name of its row
)

// marks are the marks of grades.
var marks = map[record.Grade]Mark{record.Good: MarkGood, record.Doubt: MarkDoubt, record.Bad: MarkBad}

// Left returns a cell of text.
func Left(text string) Cell { return Cell{Text: text} }

// Right returns a cell with a number.
func Right(text string) Cell { return Cell{Text: text, Number: true} }

// Row returns a cell with the name of a row.
func Row(text string) Cell { return Cell{Text: text, Mark: MarkName} }

// Result returns a cell with a result.
func Result(text string, grade record.Grade) Cell { return Cell{Text: text, Mark: marks[grade]} }

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Texts adds a row of text.
func (t *Table) Texts(texts ...string) {
	row := make([]Cell, len(texts))
	for i, text := range texts {
		row[i] = Left(text)
	}
	t.Rows = append(t.Rows, row)
}

// Number reports whether a column has numbers, which the first row tells.
func (t Table) Number(column int) bool {
	return len(t.Rows) > 0 && column < len(t.Rows[0]) && t.Rows[0][column].Number
}

// colour is an SGR parameter; 0 is none.
type colour int

const (
	bold   colour = 1
	dim    colour = 2
	red    colour = 31
	green  colour = 32
	yellow colour = 33
)

// colours are the colours of marks.
var colours = map[Mark]colour{MarkGood: green, MarkDoubt: yellow, MarkBad: red, MarkName: dim}

// Style says how to decorate text.
type Style struct {
	Colour bool
	Width  int // of the terminal, in characters; 0: unlimited
}

// paint colours text if the style has colours.
func (s Style) paint(c colour, text string) string {
	if !s.Colour || c == 0 || text == "" {
		return text
	}
	return "\x1b[" + strconv.Itoa(int(c)) + "m" + text + "\x1b[0m"
}

// Good colours a good result.
func (s Style) Good(text string) string { return s.paint(green, text) }

// Bad colours a bad result.
func (s Style) Bad(text string) string { return s.paint(red, text) }

// Write prints the table with aligned columns, every row on one line after indent, with two spaces
// between columns and none at the end of a line.
func (t Table) Write(w io.Writer, s Style, indent string) error {
	rows := t.Rows
	if t.Head != nil {
		head := make([]Cell, len(t.Head))
		for i, text := range t.Head {
			head[i] = Cell{Text: text, Mark: MarkName, Number: t.Number(i)}
		}
		rows = append([][]Cell{head}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(clip.OneLine(c.Text)))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			text := clip.OneLine(c.Text)
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if i > 0 {
				line.WriteString("  ")
			}
			text = s.paint(colours[c.Mark], text)
			if c.Number {
				text = pad + text
			} else {
				text += pad
			}
			line.WriteString(text)
		}
		out.WriteString(strings.TrimRight(indent+line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Below prints the table after an empty line, if it has rows.
func (t Table) Below(w io.Writer, s Style, indent string) error {
	if len(t.Rows) == 0 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return t.Write(w, s, indent)
}

// escaped makes text safe for a cell of a Markdown table or for a line.
var escaped = strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "[", "\\[", "`", "\\`")

// signs are the signs of marks in Markdown, which are seen from afar.
var signs = map[Mark]string{MarkGood: "✅ ", MarkDoubt: "⚠️ ", MarkBad: "❌ "}

// markdown returns the table as Markdown.
func (t Table) markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(t.Head)
	b.WriteString("|" + strings.Repeat("---|", len(t.Head)) + "\n")
	for _, row := range t.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, signs[c.Mark]+escaped.Replace(c.Text))
		}
		line(cells)
	}
	return b.String()
}
