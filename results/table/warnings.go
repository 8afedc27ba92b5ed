package table

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"weft/results/record"
	"weft/units"
)

// maxWarnings is the number of different warnings that the table of several runs shows.
const maxWarnings = 12

// Warnings writes Warned below the table of several runs. Without any it writes nothing.
func Warnings(w io.Writer, runs []*record.Summary, st Style) error {
	var t Table
	for _, row := range Warned(runs).Rows {
		t.Add(append([]Cell{{Text: "warning", Mark: MarkDoubt}}, row...)...)
	}
	return t.Below(w, st, "")
}

// Warned lists the warnings of several runs, each once, with the runs it is about. Reasons why a
// fidelity is not ok are among them, with advice.
func Warned(runs []*record.Summary) Table {
	t := Table{Head: []string{"runs", "warning"}}
	var warned, advised grouped
	for _, s := range runs {
		all := s.Warnings
		if f := s.Fidelity; f != nil {
			for _, reason := range f.Reasons {
				all = append(all[:len(all):len(all)], "fidelity "+f.Verdict+": "+reason)
			}
		}
		for _, text := range all {
			warned.add(text, s)
		}
		if f := s.Fidelity; f != nil && f.Advice != "" {
			advised.add(f.Advice, s)
		}
	}
	for _, row := range slices.Concat(warned.rows("", len(runs)), advised.rows("advice for ", len(runs)),
		Compared(runs)) {
		t.Texts(row[0], units.Spaced(row[1]))
	}
	return t
}

// Compared lists what a reader who compares several runs must know beside the warnings of each:
// whether timeouts decide the tail of some, and in which transports congestion control never acted.
func Compared(runs []*record.Summary) (rows [][2]string) {
	if text := Timeouts(Side{Runs: runs}); text != "" {
		rows = append(rows, [2]string{"compared", text})
	}
	if idle := idle(runs); len(idle) > 0 {
		rows = append(rows, [2]string{"control", "congestion control changed no window and no rate in any run of " +
			strings.Join(idle, ", ")})
	}
	return rows
}

// idle returns the transports whose congestion control never acted in any of the runs that came to
// their end.
func idle(runs []*record.Summary) (names []string) {
	acted := map[string]bool{}
	for _, s := range runs {
		if !s.Complete() {
			continue
		}
		if _, known := acted[s.Transport]; !known {
			names = append(names, s.Transport)
		}
		acted[s.Transport] = acted[s.Transport] || !s.Unadjusted
	}
	return slices.DeleteFunc(names, func(name string) bool { return acted[name] })
}

// grouped holds sentences in the order of their first use, and the runs of each.
type grouped struct {
	texts []string
	of    map[string][]*record.Summary
}

func (g *grouped) add(text string, s *record.Summary) {
	if g.of == nil {
		g.of = map[string][]*record.Summary{}
	}
	if g.of[text] == nil {
		g.texts = append(g.texts, text)
	}
	g.of[text] = append(g.of[text], s)
}

// rows lists the runs of each sentence behind a prefix, and the sentence; only the first
// maxWarnings. all is the number of runs in the table.
func (g *grouped) rows(prefix string, all int) (rows [][2]string) {
	for i, text := range g.texts {
		if i == maxWarnings {
			return append(rows, [2]string{fmt.Sprintf("%s%d more", prefix, len(g.texts)-i),
				"the report of each run has its own"})
		}
		rows = append(rows, [2]string{prefix + about(g.of[text], all), text})
	}
	return rows
}

// Side is a set of runs in a comparison.
type Side struct {
	Name string // empty: the name of their transport
	Runs []*record.Summary
}

// Uncovered says which numbers of emulated runs the verdict ok does not cover; "" if none of the
// sides was emulated. An error of lateness is the same for all seeds, so no test over seeds shows
// it.
func Uncovered(sides ...Side) string {
	for _, side := range sides {
		for _, s := range side.Runs {
			if s.Fidelity != nil && !s.Fidelity.OfNothing() {
				return "of emulated runs, fidelity ok covers means and medians of completion times alone: lateness " +
					"may move queues and with them round trips, marks, p99 and maxima of all seeds alike, and no " +
					"test over seeds shows that; weft run --twice does, and the simulator has no lateness"
			}
		}
	}
	return ""
}

// Doubts lists what makes the numbers of a comparison doubtful, each text once with the sides it is
// about: a fidelity that is not ok, and the warnings of the runs. It names the first maxWarnings.
func Doubts(sides ...Side) (notes []string) {
	var all grouped
	for _, side := range sides {
		for _, s := range side.Runs {
			if text := Doubt(s); text != "" {
				all.add(text, s)
			}
		}
	}
	for _, side := range sides {
		for _, s := range side.Runs {
			for _, text := range s.Warnings {
				all.add(text, s)
			}
		}
	}
	for i, text := range all.texts {
		if i == maxWarnings {
			return append(notes, fmt.Sprintf("warning: %d more; the report of each run has its own", len(all.texts)-i))
		}
		var of []string
		for _, side := range sides {
			var some []*record.Summary
			for _, s := range side.Runs {
				if slices.Contains(all.of[text], s) {
					some = append(some, s)
				}
			}
			switch len(some) {
			case 0:
			case len(side.Runs):
				of = append(of, side.Name)
			default:
				of = append(of, fmt.Sprintf("%d of %d runs of %s%s", len(some), len(side.Runs), side.Name, which(some)))
			}
		}
		notes = append(notes, "warning: "+strings.Join(of, " and ")+": "+units.Spaced(text))
	}
	return notes
}

// Timeouts says in which sides of a comparison timeouts decide the tail, and with which minimum
// timeout: "timeouts decide the slowest messages of B (roce, 2 timeouts, minimum timeout 31ms); not
// of A (pc4, minimum timeout 1ms)". It names an unaffected side if its minimum timeout differs,
// since that alone may explain the difference. If minimum timeouts differ and no sweep varies them,
// it says what to set. It is empty if timeouts decide nothing, or all runs or sides are alike.
func Timeouts(sides ...Side) string {
	type group struct {
		side, transport string
		us              float64
		count           int64
	}
	var groups []*group
	for _, side := range sides {
		for _, s := range side.Runs {
			i := slices.IndexFunc(groups, func(g *group) bool {
				return g.side == side.Name &&
					g.transport == s.Transport && g.us == s.RTOMinUS
			})
			if i < 0 {
				i, groups = len(groups), append(groups, &group{side: side.Name, transport: s.Transport, us: s.RTOMinUS})
			}
			if s.Tail != nil {
				groups[i].count += s.Tail.Timeouts
			}
		}
	}
	alike := func(side string, g *group) bool {
		return slices.ContainsFunc(groups, func(o *group) bool {
			return o.side == side && o.transport == g.transport && o.us == g.us && o.count == g.count
		})
	}
	unlike := func(g *group) bool {
		return slices.ContainsFunc(sides, func(s Side) bool { return !alike(s.Name, g) })
	}
	if len(groups) < 2 || len(sides) > 1 && !slices.ContainsFunc(groups, unlike) {
		return ""
	}
	var decided, others []string
	var least []float64 // of the sides whose tail timeouts decide
	for _, g := range groups {
		if g.count > 0 {
			least = append(least, g.us)
		}
	}
	for _, g := range groups {
		timeout := "minimum timeout " + micros(g.us)
		if g.count > 0 {
			word := "timeouts"
			if g.count == 1 {
				word = "timeout"
			}
			timeout = fmt.Sprintf("%d %s, %s", g.count, word, timeout)
		}
		text := fmt.Sprintf("%s (%s)", g.transport, timeout)
		if g.side != "" {
			text = fmt.Sprintf("%s (%s, %s)", g.side, g.transport, timeout)
		}
		switch {
		case g.count > 0:
			decided = append(decided, text)
		case !slices.Contains(least, g.us):
			others = append(others, text)
		}
	}
	if len(decided) == 0 {
		return ""
	}
	text := "timeouts decide the slowest messages of " + strings.Join(decided, ", ")
	if len(others) > 0 {
		text += "; not of " + strings.Join(others, ", ")
	}
	return text + sameTimeout(sides)
}

// Unadjusted names the sides of a comparison in which congestion control never acted, with their
// transports, and says what follows. It is empty if it acted in a run of each.
func Unadjusted(sides ...Side) string {
	var names, acted []string
	for _, side := range sides {
		if len(side.Runs) == 0 {
			continue
		}
		if slices.ContainsFunc(side.Runs, func(s *record.Summary) bool { return !s.Unadjusted }) {
			acted = append(acted, side.Name)
			continue
		}
		var kinds []string
		for _, s := range side.Runs {
			if !slices.Contains(kinds, s.Transport) {
				kinds = append(kinds, s.Transport)
			}
		}
		names = append(names, fmt.Sprintf("%s (%s)", side.Name, strings.Join(kinds, ", ")))
	}
	follows := "so it is no part of what differs"
	switch {
	case len(names) == 0:
		return ""
	case len(acted) > 0:
		follows = "and did in " + strings.Join(acted, " and ") + ", which is part of what differs"
	}
	return "warning: congestion control changed no window and no rate in " + strings.Join(names, " and ") + ", " +
		follows
}

// sameTimeout says how to give all sides the same minimum timeout. It is empty if they have it, or
// a sweep varies it.
func sameTimeout(sides []Side) string {
	var keys []string
	var least []float64
	for _, side := range sides {
		for _, s := range side.Runs {
			if _, swept := s.Point[s.RTOMinKey]; swept {
				return ""
			}
			if s.RTOMinUS > 0 && !slices.Contains(least, s.RTOMinUS) {
				least = append(least, s.RTOMinUS)
			}
			if s.RTOMinKey != "" && !slices.Contains(keys, s.RTOMinKey) {
				keys = append(keys, s.RTOMinKey)
			}
		}
	}
	if len(least) < 2 || len(keys) == 0 {
		return ""
	}
	return "; to compare them, set the same timeout, such as strack, for all: " + strings.Join(keys, ", ")
}

// maxWhich is the number of runs that a warning about some of many names. Our own choice.
const maxWhich = 3

// which names the first maxWhich of runs, by their points or else by their labs, in brackets with a
// space before them.
func which(runs []*record.Summary) string {
	var all []string
	for _, s := range runs {
		name := s.Lab
		if len(s.Point) > 0 {
			name = Point(s.Point)
		}
		if name != "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	text := strings.Join(all[:min(len(all), maxWhich)], ", ")
	if more := len(all) - maxWhich; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " (" + text + ")"
}

// about names the runs of a warning, among all runs of the table.
func about(runs []*record.Summary, all int) string {
	switch {
	case len(runs) == all:
		return "all runs"
	case len(runs) > 1:
		return fmt.Sprintf("%d of %d runs%s", len(runs), all, which(runs))
	case len(runs[0].Point) == 0:
		return runs[0].Lab
	}
	return Point(runs[0].Point)
}
