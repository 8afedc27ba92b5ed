package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"weft/collectives/graph"
	"weft/collectives/schedule"
	"weft/collectives/trace"
	"weft/inputs/source"
	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// Bounds of traces.
const (
	maxTraceItems = 20_000  // collectives of all traces of a lab, counting each group of ranks and repetition
	maxTraceParts = 1 << 20 // ranks of these collectives
)

// Trace is a file or a folder of the workload that the lab names, such as the collectives of a
// training step.
type Trace struct {
	File string // as the lab names it: relative to the lab file
	Sum  string // SHA-256 of what was read, with the names of the files, in hexadecimal digits
}

// Line is a collective of a trace, for one of the groups that its ranks form.
type Line struct {
	Trace   string // the file, as the lab names it
	Number  int    // position of the collective in the file, from 1
	Name    string // the trace's name for the collective; "": none
	Step    int    // repetition of the whole trace, from 0
	Group   int    // the group of ranks, from 0
	Groups  int    // the number of groups
	Members []int  // the group, as positions in the Ranks of the item
	Root    int    // rank of the root in the group, for collectives with a root
	Shift   int    // of a permute: rank r sends to rank r + Shift, modulo the group's size
}

// readTrace reads the collectives of an item that is a trace, in order.
func (r *itemReader) readTrace(rules params.Rules) {
	if r.trace == "" {
		return // reported
	}
	lines, err := r.d.readTrace(r.trace)
	if refuseAll(rules, "trace", err); err != nil {
		return
	}
	base := Item{Index: r.Index, Ranks: r.Ranks, Start: r.Start, Previous: r.Previous}
	n, steps := base.Ranks.count(r.hosts.count), r.Repeat
	if n == 0 || steps == 0 {
		return
	}
	if len(lines)*steps*max(1, base.Ranks.Groups) > maxTraceItems {
		rules.Refuse("repeat", "%d collectives, %d times, for %d groups of ranks are more than %d; expected fewer",
			len(lines), steps, max(1, base.Ranks.Groups), maxTraceItems)
		return
	}
	for i := range lines {
		if i > 0 && !lines[i].Previous && (steps > 1 || base.Previous) {
			rules.Refuse("repeat", "collective %d of %s starts at an instant of its own; expected a trace without "+
				"any, or repeat: 1 and a start that is a time", i+1, r.trace)
			break
		}
	}
	t := expansion{base: base, file: r.trace, ranks: n, steps: steps}
	r.lines, err = t.items(lines)
	refuseAll(rules, "trace", err)
}

// readTrace returns the collectives of a trace.
func (d *decoder) readTrace(name string) ([]trace.Item, error) {
	text, err := d.file(name)
	if err != nil {
		return nil, err
	}
	plain, err := d.decompressed(name, text)
	if err != nil {
		return nil, err
	}
	lines, err := trace.Parse(name, plain)
	if err == nil {
		d.keepTrace(Trace{File: name, Sum: sumOf(name, text)})
	}
	return lines, err
}

// maxTraceText is the maximum size of a trace of collectives in bytes, after decompression.
const maxTraceText = 64 << 20

// decompressed returns the content of a file that may be compressed with gzip.
func (d *decoder) decompressed(name string, text []byte) (_ []byte, err error) {
	if !bytes.HasPrefix(text, []byte{0x1f, 0x8b}) {
		if strings.HasSuffix(name, ".gz") && !utf8.Valid(text) {
			return nil, fmt.Errorf("%s: a damaged gzip file: it does not begin like one; copy or compress it again",
				name)
		}
		return text, nil
	}
	same := FilesOf(func(string) ([]byte, error) { return text, nil })
	r, err := source.Open(same, name, name)
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxTraceText+1))
	switch {
	case err != nil:
		return nil, errors.Join(err, r.Close())
	case len(plain) > maxTraceText:
		return nil, errors.Join(fmt.Errorf("%s: more than %d MiB; expected a smaller trace", name, maxTraceText>>20),
			r.Close())
	}
	return plain, r.Close()
}

// file returns the content of a file that the lab names.
func (d *decoder) file(name string) ([]byte, error) {
	if d.read == nil {
		return nil, fmt.Errorf("%q cannot be read here: no file goes with this lab", clip.Text(name))
	}
	return d.read(name)
}

// keepTrace adds a trace to those of the lab, once.
func (d *decoder) keepTrace(t Trace) {
	for i := range d.traces {
		if d.traces[i].File == t.File {
			return
		}
	}
	d.traces = append(d.traces, t)
}

// note keeps what an importer says about a file.
func (d *decoder) note(path string, notes *graph.Notes) {
	for _, text := range notes.Texts() {
		d.notes = append(d.notes, note{path, text})
	}
}

// expansion makes the items of a trace.
type expansion struct {
	base  Item
	file  string
	ranks int // ranks of each group of the base
	steps int // repetitions of the trace
}

// items returns every collective of every step, for every group of ranks, in the order in which
// hosts run them.
func (t *expansion) items(lines []trace.Item) ([]Item, error) {
	if parts := len(lines) * t.steps * max(1, t.base.Ranks.Groups) * t.ranks; parts > maxTraceParts {
		return nil, fmt.Errorf("%s becomes %d parts of ranks, each repetition counted; expected at most %d", t.file,
			parts, maxTraceParts)
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
		return nil, fmt.Errorf("%s becomes %d collectives, each group of ranks and each repetition counted; "+
			"expected at most %d", t.file, total, maxTraceItems)
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

// line returns one item of the trace for each of the groups that its ranks form.
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
		return nil, fmt.Errorf("%v is less than an element for each of %d ranks; expected at least %v", l.Size,
			spec.Ranks, least)
	}
	if all, most := it.messages(facts, spec.Ranks); !it.fits(facts, spec.Ranks) {
		return nil, fmt.Errorf("it takes %.0f messages, up to %.0f per rank; expected at most %d, and %d per rank",
			all, most, maxMessages, maxRankMessages)
	}
	items := make([]Item, len(groups))
	for g := range groups {
		items[g] = it
		items[g].Line = &Line{
			Trace: t.file, Number: at + 1, Name: l.Name, Group: g, Groups: len(groups), Members: groups[g],
			Root: l.Root, Shift: l.Shift,
		}
	}
	return items, nil
}

// called returns a name in parentheses for a message, or "".
func called(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", name)
}
