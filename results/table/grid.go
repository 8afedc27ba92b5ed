package table

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"weft/internal/clip"
	"weft/results/record"
)

// colour is an SGR parameter; 0 is none.
type colour int

const (
	bold   colour = 1
	dim    colour = 2
	red    colour = 31
	green  colour = 32
	yellow colour = 33
)

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

// cell is one cell of a grid.
type cell struct {
	text   string
	right  bool // right-aligned, as numbers are
	colour colour
}

func left(text string) cell   { return cell{text: text} }
func right(text string) cell  { return cell{text: text, right: true} }
func header(text string) cell { return cell{text: text, colour: dim} }

// grid collects rows and writes them with aligned columns.
type grid struct {
	rows [][]cell
}

// row adds a row. No text adds a line of its own.
func (g *grid) row(cells ...cell) {
	for i := range cells {
		cells[i].text = clip.OneLine(cells[i].text)
	}
	g.rows = append(g.rows, cells)
}

// write prints every row after indent, with two spaces between columns and none at the end of a
// line. The columns of a header row take the alignment of the row below it.
func (g *grid) write(w io.Writer, s Style, indent string) error {
	var widths []int
	for _, row := range g.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var out strings.Builder
	for n, row := range g.rows {
		var line strings.Builder
		for i, c := range row {
			if c.colour == dim && n+1 < len(g.rows) && i < len(g.rows[n+1]) {
				c.right = g.rows[n+1][i].right
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			if i > 0 {
				line.WriteString("  ")
			}
			if c.right {
				line.WriteString(pad + s.paint(c.colour, c.text))
			} else {
				line.WriteString(s.paint(c.colour, c.text) + pad)
			}
		}
		out.WriteString(strings.TrimRight(indent+line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Results say how what the rows of a table are about ended: a column of words for it, and the
// grades of the rows that have one.
type Results struct {
	Column int
	Grades map[int]record.Grade // by row; nil: no cell is a result
}

// Grade returns the grade of a cell, if it is a result.
func (r *Results) Grade(row, column int) (g record.Grade, is bool) {
	g, is = r.Grades[row]
	return g, is && column == r.Column
}

// Set sets the grade of a row.
func (r *Results) Set(row int, g record.Grade) {
	if r.Grades == nil {
		r.Grades = map[int]record.Grade{}
	}
	r.Grades[row] = g
}

// Rows writes a table of text: a header, and rows of the same length.
func Rows(w io.Writer, head []string, rows [][]string, results Results, st Style) error {
	var g grid
	var cells []cell
	for _, h := range head {
		cells = append(cells, header(h))
	}
	g.row(cells...)
	for r, row := range rows {
		cells = nil
		for i, text := range row {
			c := left(text)
			if grade, is := results.Grade(r, i); is {
				c.colour = gradeColours[grade]
			}
			cells = append(cells, c)
		}
		g.row(cells...)
	}
	return g.write(w, st, "")
}
