package lab

import (
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"weft/internal/clip"
)

// decoder reads one tree into one Lab. Problems go to report, the origins of values to sources.
type decoder struct {
	report  *report
	sources []Source
	overlay map[string]value             // defaults that precede those of the declarations
	read    func(string) ([]byte, error) // Options.Read
	files   fs.FS                        // Options.Files
	command *Command                     // Options.Program
	jobs    map[jobKey]*job              // that were read, for all points of a sweep
	traces  []Trace                      // that were read
	notes   []note                       // about files that were read
	kinds   map[string]bool              // transports that runs of the file use
	chosen  map[string]bool              // transports that runs of the command use
	seed    uint64                       // of the lab
	hosts   hosts                        // that a declared key may name

	// aside is above 0 while what is read belongs to other runs of the file: it is checked, but its
	// origins are not kept.
	aside int

	ecnOff field // queues.ecn if it is off; a field without a node if switches mark

	// keys is called with the keys of every section. Tests compare them with the schema.
	keys func(pattern string, keys []string)
}

// section is a mapping that is being read. An absent section reads as one without keys, so that the
// defaults of its fields apply.
type section struct {
	d       *decoder
	path    string
	pattern string // path with * for an index or a name that the user chose
	n       *node  // nil: absent
	at      origin
	asked   []string // keys that the section has
	foreign []string // keys that have a message of their own and are never suggested
	refused []string // keys that are no longer part of the format and have a message of their own
	broken  bool     // the node is no mapping, which was reported: stay silent about the fields
}

// field is a value that is being read: a written one or a default.
type field struct {
	d       *decoder
	path    string
	pattern string
	index   int    // the position of an item in its list
	n       *node  // nil: there is neither a written value nor a default
	at      origin // of the value, or of the section that it is missing from
	silent  bool   // a problem was reported that explains this one
}

// open begins to read f as a section.
func (f field) open() *section {
	s := &section{d: f.d, path: f.path, pattern: f.pattern, at: f.at, broken: f.silent}
	switch {
	case f.n == nil:
	case f.n.kind == mapping:
		s.n = f.n
	default:
		f.problem("%s; %s", f.n.what(), f.unlike("a section of keys"))
		s.broken = true
	}
	return s
}

// field returns the value of a key, or its default, or a field with neither. Unknown keys may be
// answered by suggesting this one.
func (s *section) field(name string) field {
	if !slices.Contains(s.asked, name) {
		s.asked = append(s.asked, name)
	}
	return s.look(name)
}

// look is field for a key that is not suggested.
func (s *section) look(name string) field {
	f := field{d: s.d, path: join(s.path, name), pattern: join(s.pattern, name), at: s.at, silent: s.broken}
	if s.n != nil {
		f.n = s.n.get(name)
	}
	if f.n != nil {
		f.at = f.n.at
		return f
	}
	if v, ok := s.d.overlay[f.pattern]; ok {
		return f.or(v.text, v.source)
	}
	return f
}

// refuse reports a written key that is no longer part of the format: why, and what to write
// instead.
func (s *section) refuse(name, why string) {
	s.refused = append(s.refused, name)
	if f := s.look(name); f.n != nil {
		f.problem("%s", why)
	}
}

// section begins to read the section under a key.
func (s *section) section(name string) *section { return s.field(name).open() }

// close reports the keys that the section does not have.
func (s *section) close() {
	if s.d.keys != nil {
		s.d.keys(s.pattern, slices.Concat(s.asked, s.foreign))
	}
	for _, k := range s.unknown() {
		path := join(s.path, clip.Text(k.name))
		expected := "expected no key here"
		if len(s.asked) > 0 {
			expected = "expected one of " + strings.Join(s.asked, ", ")
		}
		hint := s.knownKey(k.name)
		for _, name := range s.asked {
			if hint == didYouMean(name) {
				s.d.report.explained(join(s.path, name))
			}
		}
		if s.n.get(k.name).at.sweep != nil && hint == "" && len(s.asked) == 0 {
			expected += fmt.Sprintf(". If another path of the sweep decides that, let both change together: "+
				"'OTHER, %s': [[a, 1], [b, null]]", path)
		}
		s.d.report.add(k.at, path, "unknown key%s; %s", hint, expected)
	}
}

// unknown returns the written keys that were not read so far.
func (s *section) unknown() (keys []key) {
	if s.n == nil {
		return nil
	}
	for _, k := range s.n.keys {
		if !slices.Contains(s.asked, k.name) && !slices.Contains(s.foreign, k.name) &&
			!slices.Contains(s.refused, k.name) {
			keys = append(keys, k)
		}
	}
	return keys
}

// written reports whether the file, the sweep or the command line has the value.
func (f field) written() bool { return f.n != nil && f.at.source == "" }

// idle reports f, if it is written, because another setting makes it have no effect. It does not
// report if a sweep varies that other one: f is then for other points of the sweep. If only the
// command line has the other one, what the file says is for runs without that, and is noted.
func (f field) idle(because field, format string, args ...any) {
	switch {
	case !f.written() || because.n != nil && because.n.at.sweep != nil:
	case because.n != nil && because.n.at.flag != "" && f.at.flag == "":
		f.addNote(format, args...)
	default:
		f.problem(format, args...)
	}
}

// unused notes that f, if it is written, has no effect because of another setting, unless a sweep
// varies that one: f is then for other points of the sweep.
func (f field) unused(because field, format string, args ...any) {
	if f.written() && (because.n == nil || because.n.at.sweep == nil) {
		f.addNote(format, args...)
	}
}

// addNote adds a note of what the file says and this run does not do.
func (f field) addNote(format string, args ...any) {
	if !f.silent && f.d.aside == 0 {
		f.d.notes = append(f.d.notes, note{f.path, fmt.Sprintf(format, args...)})
	}
}

// empty reports whether f is a section without keys.
func (f field) empty() bool { return f.n != nil && f.n.kind == mapping && len(f.n.keys) == 0 }

// or returns f, or a field with the given default if f has no value.
func (f field) or(text, source string) field {
	if f.n == nil && !f.silent {
		f.at = origin{source: source, line: f.at.line, column: f.at.column, flag: f.at.flag}
		f.n = &node{text: text, plain: true, at: f.at}
	}
	return f
}

// problem reports a problem with f, unless another one explains it.
func (f field) problem(format string, args ...any) {
	if !f.silent {
		f.d.report.add(f.at, f.path, format, args...)
	}
}

// record keeps the value, as it would be written, and its origin for weft explain.
func (f field) record(value string) {
	if f.n != nil && f.d.aside == 0 {
		f.d.sources = append(f.d.sources, Source{Path: f.path, Value: value, From: f.at.String(), Line: f.at.line,
			Column: f.at.column, Flag: f.at.flag})
	}
}

// what describes the kind of a node, for a message.
func (n *node) what() string {
	switch {
	case n.null():
		return "has no value"
	case n.kind == mapping:
		return "is a section of keys"
	case n.kind == list:
		return "is a list"
	default:
		return fmt.Sprintf("is the single value %q", clip.Text(n.text))
	}
}

// text returns the scalar in f. It reports a field that is missing or is no scalar; expected names
// what belongs there.
func (f field) text(expected string) (string, bool) {
	switch {
	case f.n == nil:
		f.problem(missing+"expected %s", expected)
	case f.n.several() && f.at.sweep == nil:
		f.problem("is a list; expected %s. To run the lab with each of several values: --set 'sweep.%s=%s', or "+
			"sweep: {%s: %s} in the file",
			expected, f.path, clip.Text(f.n.String()), f.path, clip.Text(f.n.String()))
	case f.n.kind != scalar || f.n.null():
		f.problem("%s; expected %s", f.n.what(), expected)
	default:
		return f.n.text, true
	}
	return "", false
}

// several reports whether n is a list of two or more single values, as in a sweep.
func (n *node) several() bool {
	return n.kind == list && len(n.items) > 1 &&
		!slices.ContainsFunc(n.items, func(i *node) bool { return i.kind != scalar })
}

// read reads f with parse, whose error says what was expected, and records the value as show
// writes it.
func read[T any](f field, expected string, parse func(string) (T, error), show func(T) string) (T, bool) {
	var none T
	text, ok := f.text(expected)
	if !ok {
		return none, false
	}
	v, err := parse(text)
	if err != nil {
		f.problem("%v", err)
		return none, false
	}
	f.record(show(v))
	return v, true
}

// items returns the fields of a list, at most most. It returns none if f is absent or no list.
func (f field) items(most int) []field {
	switch {
	case f.n == nil:
		return nil
	case f.n.kind != list:
		f.problem("%s; %s", f.n.what(), f.unlike("a list"))
		return nil
	case len(f.n.items) > most:
		f.problem("has %d items; expected at most %d", len(f.n.items), most)
		return nil
	}
	items := make([]field, 0, len(f.n.items))
	for i, n := range f.n.items {
		if n.kind != hole {
			items = append(items, field{d: f.d, path: join(f.path, strconv.Itoa(i)), pattern: join(f.pattern, "*"),
				index: i, n: n, at: n.at})
		}
	}
	return items
}

// positions returns the indices of the items of a list, skipping holes.
func (f field) positions() (at []int) {
	if f.n == nil || f.n.kind != list {
		return nil
	}
	for i, n := range f.n.items {
		if n.kind != hole {
			at = append(at, i)
		}
	}
	return at
}
