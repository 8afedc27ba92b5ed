package table

import (
	"fmt"
	"io"
	"strings"

	"weft/results/record"
	"weft/units"
)

// escaped makes text safe for a cell of a Markdown table or for a line.
var escaped = strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "[", "\\[", "`", "\\`")

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
	incomplete := Incomplete(runs)
	b.WriteString("| lab | point | engine |")
	if incomplete {
		b.WriteString(" flows done |")
	}
	b.WriteString(" FCT p99 | slowdown p99 | status |\n|---|---|---|---|---|---|")
	if incomplete {
		b.WriteString("---|")
	}
	b.WriteString("\n")
	for _, s := range runs {
		fmt.Fprintf(&b, "| %s | %s | %s |", escaped.Replace(s.Lab), escaped.Replace(Point(s.Point)),
			escaped.Replace(s.Engine))
		if incomplete {
			fmt.Fprintf(&b, " %s |", known(s.Flows.Count > 0, done(s)))
		}
		fmt.Fprintf(&b, " %s | %s | %s |\n", known(complete(s), micros(s.Flows.FCT.P99)),
			known(complete(s), units.Number(s.Flows.Slowdown.P99)), marked(s))
	}
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

// marked is the outcome of a run with a mark that is seen from afar.
func marked(s *record.Summary) string {
	o := s.Outcome()
	marks := map[record.Grade]string{record.Good: "✅ ", record.Doubt: "⚠️ ", record.Bad: "❌ "}
	return marks[o.Grade()] + escaped.Replace(o.String())
}
