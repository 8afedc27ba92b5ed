package table

import (
	"fmt"
	"io"
	"strings"

	"weft/results/record"
	"weft/units"
)

// coded returns text as code on one line, which ends at its end.
func coded(text string) string {
	return "`" + strings.NewReplacer("`", "'", "\n", " ").Replace(text) + "`"
}

// Markdown writes runs for the job summary of GitHub: a table, then the reasons of failed runs and
// their missed expectations.
func Markdown(w io.Writer, runs []*record.Summary) error {
	var b strings.Builder
	note := Interrupted(runs)
	runs = Started(runs)
	text := func(name string, of func(*record.Summary) string) Column {
		return column(name, runs, func(s *record.Summary) Cell { return Left(of(s)) })
	}
	cols := []Column{text("lab", func(s *record.Summary) string { return s.Lab }),
		text("point", func(s *record.Summary) string { return Point(s.Point) }),
		text("engine", func(s *record.Summary) string { return s.Engine })}
	if Incomplete(runs) {
		cols = append(cols, text("flows done", func(s *record.Summary) string {
			return known(s.Flows.Count > 0,
				done(s))
		}))
	}
	for _, n := range record.Select("fct.p99", "fct_slowdown.p99") {
		cols = append(cols, text(n.Head, n.Text))
	}
	b.WriteString(Beside(append(cols, column("status", runs, outcome))).markdown())
	for _, s := range runs {
		who := strings.TrimSpace("**" + escaped.Replace(s.Lab) + "** " + escaped.Replace(Point(s.Point)))
		if first, rest, more := strings.Cut(s.Error, "\n"); first != "" {
			fmt.Fprintf(&b, "\n- ❌ %s: %s", who, escaped.Replace(units.Spaced(first)))
			if more {
				b.WriteString("\n  ```text\n")
				for line := range strings.SplitSeq(rest, "\n") {
					fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(strings.TrimSpace(line), "```", "'''"))
				}
				b.WriteString("  ```")
			}
		}
		for _, e := range s.Expect {
			switch {
			case e.Skipped:
				fmt.Fprintf(&b, "\n- ⏭️ %s: skipped %s: %s", who, coded(e.That), escaped.Replace(e.Note))
			case !e.OK:
				fmt.Fprintf(&b, "\n- ❌ %s: %s: %s", who, coded(e.That), escaped.Replace(Found(e)))
			case e.Doubt != "":
				fmt.Fprintf(&b, "\n- ⚠️ %s: %s: %s", who, coded(e.That), escaped.Replace(Found(e)))
			}
		}
	}
	if note != "" {
		b.WriteString("\n- ❌ " + note)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}
