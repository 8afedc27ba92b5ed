package lab

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"weft/collectives/schedule"
	"weft/collectives/trace"
	"weft/params"
	"weft/units"
)

// Bounds of traces.
const (
	maxTraceItems = 20_000  // collectives that the traces of a lab become, each group of ranks and each repetition counted
	maxTraceParts = 1 << 20 // parts of ranks in them
	maxTraceFile  = 255     // bytes of its name
)

// Trace is a file that the lab names: what a training step asks of the network.
type Trace struct {
	File string // as the lab names it: relative to the lab file
	Text []byte
}

// Line is a collective of a trace, for one of the groups that its ranks form.
type Line struct {
	Trace   string // the file, as the lab names it
	Number  int    // of the collectives in it, from 1
	Name    string // as the trace calls it; "": it does not
	Step    int    // repetition of the whole trace, from 0
	Group   int    // of its ranks, from 0
	Groups  int    // how many groups there are
	Members []int  // the group, as positions in the Ranks of the item
	Root    int    // of collectives that have one: its rank in the group
	Shift   int    // of a permute: rank r sends to r + Shift, around
}

// trace reads an item that is a trace: its collectives, one after the other.
func (d *decoder) trace(s *section, index int, hosts hosts) []Item {
	defer s.close()
	f := s.field("trace")
	name, ok := f.traceFile()
	base := Item{Index: index}
	base.Ranks = s.field("ranks").ranks(hosts)
	steps := s.field("repeat").integer(1, maxRepeat)
	start := s.field("start")
	base.Start, base.Previous = start.start(index)
	for _, key := range itemKeys {
		if s.n.get(key) != nil {
			s.look(key).problem("applies to a collective; those of a trace have theirs in the file")
		}
	}
	s.foreign = append(s.foreign, itemKeys...)
	if !ok {
		return nil
	}
	lines, ok := d.readTrace(f, name)
	n := base.Ranks.count(hosts.count)
	if !ok || n == 0 || steps == 0 {
		return nil
	}
	if len(lines)*steps*max(1, base.Ranks.Groups) > maxTraceItems {
		s.field("repeat").problem("%d collectives, %d times, for %d groups of ranks are more than %d; expected fewer", len(lines), steps, max(1, base.Ranks.Groups), maxTraceItems)
		return nil
	}
	for i := range lines {
		if i > 0 && !lines[i].Previous && (steps > 1 || base.Previous) {
			s.field("repeat").problem("collective %d of %s starts at an instant of its own; expected a trace without any, or repeat: 1 and a start that is a time", i+1, name)
			break
		}
	}
	t := expansion{base: base, file: name, ranks: n, steps: steps}
	items, err := t.items(lines)
	f.problems(err)
	return items
}

// itemKeys are those of a collective that a trace has none of.
var itemKeys = []string{"collective", "algorithm", "root", "size", "type", "op", "flows", "parallel", "group", "far_first", "order", "chunk", "compute", "jitter"}

// traceFile reads the name of a trace. It is relative to the lab file and stays in its folder.
func (f field) traceFile() (string, bool) {
	const expected = "a file below the lab file's folder, such as traces/step.csv"
	name, ok := f.text(expected)
	switch {
	case !ok:
		return "", false
	case len(name) > maxTraceFile || !filepath.IsLocal(name) || strings.Contains(name, `\`) || strings.ContainsFunc(name, unprintable) || filepath.ToSlash(filepath.Clean(name)) != name:
		f.problem("%q; expected %s", params.Clip(name), expected)
		return "", false
	}
	f.record(name)
	return name, true
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) || r == '\uFFFD' }

// readTrace returns the collectives of a trace.
func (d *decoder) readTrace(f field, name string) ([]trace.Item, bool) {
	if d.read == nil {
		f.problem("%q cannot be read here: no file goes with this lab", params.Clip(name))
		return nil, false
	}
	text, err := d.read(name)
	if err != nil {
		f.problem("%v", err)
		return nil, false
	}
	lines, err := trace.Parse(name, text)
	if err != nil {
		f.problems(err)
		return nil, false
	}
	d.keepTrace(Trace{File: name, Text: text})
	return lines, true
}

// problems reports each of the errors that err consists of; nil: none.
func (f field) problems(err error) {
	var many interface{ Unwrap() []error }
	switch {
	case err == nil:
	case errors.As(err, &many):
		for _, e := range many.Unwrap() {
			f.problem("%v", e)
		}
	default:
		f.problem("%v", err)
	}
}

// keepTrace notes a trace of the lab, once.
func (d *decoder) keepTrace(t Trace) {
	for i := range d.traces {
		if d.traces[i].File == t.File {
			return
		}
	}
	d.traces = append(d.traces, t)
}

// expansion makes the items of a trace.
type expansion struct {
	base  Item
	file  string
	ranks int // of each group of the base
	steps int
}

// items returns every collective of every step, for every group of ranks, in the order in which hosts do them.
func (t *expansion) items(lines []trace.Item) ([]Item, error) {
	if parts := len(lines) * t.steps * max(1, t.base.Ranks.Groups) * t.ranks; parts > maxTraceParts {
		return nil, fmt.Errorf("%s becomes %d parts of ranks, each repetition counted; expected at most %d", t.file, parts, maxTraceParts)
	}
	perStep := make([][]Item, len(lines))
	total := 0
	var errs []error
	for i := range lines {
		var err error
		if perStep[i], err = t.line(&lines[i], i); err != nil {
			errs = append(errs, fmt.Errorf("%s: collective %d%s: %w", t.file, i+1, called(lines[i].Name), err))
		}
		total += len(perStep[i]) * t.steps * max(1, t.base.Ranks.Groups)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if total > maxTraceItems {
		return nil, fmt.Errorf("%s becomes %d collectives, each group of ranks and each repetition counted; expected at most %d", t.file, total, maxTraceItems)
	}
	all := make([]Item, 0, total)
	for job := range max(1, t.base.Ranks.Groups) {
		for step := range t.steps {
			for i := range perStep {
				for _, it := range perStep[i] {
					line := *it.Line
					line.Step = step
					it.Line, it.Ranks.Group = &line, job
					if i == 0 && step > 0 {
						it.Start, it.Previous = 0, true
					}
					all = append(all, it)
				}
			}
		}
	}
	return all, nil
}

// line returns a collective of the trace for each of the groups that the ranks form.
func (t *expansion) line(l *trace.Item, at int) ([]Item, error) {
	groups, err := l.Groups(t.ranks)
	if err != nil {
		return nil, err
	}
	spec, err := l.Spec(len(groups[0]))
	if err != nil {
		return nil, err
	}
	facts, err := schedule.About(l.Collective, l.Algorithm)
	if err != nil {
		return nil, err
	}
	it := t.base
	it.Row = at
	it.Collective, it.Algorithm, it.Type, it.Size, it.Flows = l.Collective, l.Algorithm, l.Type, l.Size, 1
	it.Parallel, it.Group, it.Chunk, it.Repeat = l.Parallel, l.Local, l.Chunk, l.Repeat
	it.Compute, it.Jitter = l.Compute, l.Jitter
	if facts.Reduces {
		it.Op = l.Op
	}
	if at > 0 {
		it.Start, it.Previous = t.base.Start+l.Start, l.Previous
	} else {
		it.Start += l.Start
	}
	if least := it.Type.Size() * units.Bytes(spec.Ranks); facts.Shared && l.Size < least {
		return nil, fmt.Errorf("%v is less than an element for each of %d ranks; expected at least %v", l.Size, spec.Ranks, least)
	}
	if n := it.messages(facts, spec.Ranks); n > maxMessages {
		return nil, fmt.Errorf("it takes %.0f messages, more than %d", n, maxMessages)
	}
	items := make([]Item, len(groups))
	for g := range groups {
		items[g] = it
		items[g].Line = &Line{
			Trace: t.file, Number: at + 1, Name: l.Name, Group: g, Groups: len(groups), Members: groups[g], Root: l.Root, Shift: l.Shift,
		}
	}
	return items, nil
}

// called is a name as a message has it.
func called(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", name)
}
