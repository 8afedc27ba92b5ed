package table

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"weft/results/record"
)

// Column is a column of a table that fits a terminal.
type Column struct {
	Name     string
	Cells    []Cell
	Drop     int // without enough room the columns with the highest Drop go first; 0 stays
	MaxWidth int // most characters of a cell, however much room there is; 0: any

	vary bool // left out if all its cells are alike
}

// Columns writes a table. In a terminal that is too narrow it leaves out columns, then shortens
// text, and says so in a last line; more says where the reader finds the rest.
func Columns(w io.Writer, cols []Column, more string, st Style) error {
	same, cols := Differing(cols)
	for i := range cols {
		if cols[i].MaxWidth > 0 {
			cols[i].shorten(cols[i].MaxWidth)
		}
	}
	kept, dropped := fit(cols, st.Width)
	if err := Beside(kept).Write(w, st, ""); err != nil {
		return err
	}
	for _, line := range []string{same, listed("no room for ", dropped, " ("+more+")")} {
		if line == "" {
			continue
		}
		if _, err := fmt.Fprintln(w, st.paint(dim, line)); err != nil {
			return err
		}
	}
	return nil
}

// Beside returns a table of columns.
func Beside(cols []Column) Table {
	var t Table
	for _, c := range cols {
		t.Head = append(t.Head, c.Name)
	}
	for i := range cols[0].Cells {
		row := make([]Cell, len(cols))
		for k := range cols {
			row[k] = cols[k].Cells[i]
		}
		t.Add(row...)
	}
	return t
}

func listed(before string, names []string, after string) string {
	if len(names) == 0 {
		return ""
	}
	return before + strings.Join(names, ", ") + after
}

func (c *Column) width() int {
	n := utf8.RuneCountInString(c.Name)
	for _, x := range c.Cells {
		n = max(n, utf8.RuneCountInString(x.Text))
	}
	return n
}

// Differing splits off the columns with the same text in every row, and says what they have: "the
// same in all: engine sim".
func Differing(cols []Column) (same string, rest []Column) {
	var all []string
	for _, c := range cols {
		if !c.vary || len(c.Cells) < 2 || slices.ContainsFunc(c.Cells,
			func(x Cell) bool { return x.Text != c.Cells[0].Text }) {
			rest = append(rest, c)
		} else if text := c.Cells[0].Text; text != "" && text != "–" {
			all = append(all, c.Name+" "+text)
		}
	}
	return listed("the same in all: ", all, ""), rest
}

// minText is the shortest width to which text is cut.
const minText = 12

// fit leaves out and shortens columns until they fit a width in characters; 0 is any.
func fit(cols []Column, width int) (kept []Column, dropped []string) {
	total := func() int {
		n := 2 * (len(kept) - 1)
		for i := range kept {
			n += kept[i].width()
		}
		return n
	}
	kept = slices.Clone(cols)
	if width <= 0 {
		return kept, nil
	}
	for total() > width {
		last := 0
		for i := range kept {
			if kept[i].Drop > kept[last].Drop {
				last = i
			}
		}
		if kept[last].Drop == 0 {
			break
		}
		dropped = append(dropped, kept[last].Name)
		kept = slices.Delete(kept, last, last+1)
	}
	slices.Reverse(dropped)
	for over := total() - width; over > 0; over = total() - width {
		widest := -1
		for i := range kept {
			if kept[i].text() && (widest < 0 || kept[i].width() > kept[widest].width()) {
				widest = i
			}
		}
		if widest < 0 || kept[widest].width() <= minText {
			break
		}
		kept[widest].shorten(max(minText, kept[widest].width()-over))
	}
	return kept, dropped
}

// text reports whether the column has texts that can be shortened: no numbers and no results.
func (c *Column) text() bool {
	return !slices.ContainsFunc(c.Cells, func(x Cell) bool { return x.Number || x.Mark != Unmarked })
}

// shorten cuts the cells to a width.
func (c *Column) shorten(width int) {
	c.Cells = slices.Clone(c.Cells)
	for i := range c.Cells {
		c.Cells[i].Text = shortened(c.Cells[i].Text, width)
	}
}

// shortened keeps the beginning and the end of a text, since either may tell two names apart.
func shortened(text string, width int) string {
	r := []rune(text)
	if len(r) <= width {
		return text
	}
	end := width / 2
	return string(r[:width-end-1]) + "…" + string(r[len(r)-end:])
}

// SweptPaths returns the paths in which the points of a sweep differ, sorted.
func SweptPaths(runs []*record.Summary) []string {
	paths := map[string]bool{}
	for _, s := range runs {
		for path := range s.Point {
			paths[path] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// swept returns a column for each path in which the points of a sweep differ. write writes a value.
func swept(runs []*record.Summary, write func(string) string) []Column {
	sorted := SweptPaths(runs)
	var out []Column
	for _, path := range sorted {
		c := Column{Name: Short(path, sorted), vary: true}
		number := true
		for _, s := range runs {
			text := ""
			if v, ok := s.Point[path]; ok {
				text = fmt.Sprint(v)
			}
			number = number && (text == "" || strings.ContainsAny(text[:1], "0123456789"))
			c.Cells = append(c.Cells, Left(write(text)))
		}
		for i := range c.Cells {
			c.Cells[i].Number = number
		}
		out = append(out, c)
	}
	return out
}

// Short returns the shortest end of a path that no other path shares: ranks for workload.0.ranks. A
// kind takes the name of its section.
func Short(path string, all []string) string {
	parts := strings.Split(path, ".")
	for n := 1; n < len(parts); n++ {
		short := strings.Join(parts[len(parts)-n:], ".")
		if short == "kind" {
			short = parts[len(parts)-2]
		}
		if !slices.ContainsFunc(all, func(p string) bool {
			return p != path && (strings.HasSuffix("."+p, "."+short) || strings.HasSuffix(p, "."+short+".kind"))
		}) {
			return short
		}
	}
	return path
}
