package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/params"
)

// decoder reads one tree into one Lab. What it finds wrong goes to report, what it reads to sources.
type decoder struct {
	report  *report
	sources []Source
	overlay map[string]value // defaults that go before those of the table
	read    func(string) ([]byte, error)
	traces  []Trace
	kinds   map[string]bool                     // transports that runs of the file use
	seed    uint64                              // of the lab
	aside   int                                 // above 0: what is read is not part of this lab, and its sources are not kept
	hosts   hosts                               // that a declared key may name
	ecnOff  field                               // queues.ecn where it is off; without a node where switches mark
	keys    func(pattern string, keys []string) // told the keys of every section; tests compare them with the schema
}

// section is a mapping that is being read. A section that is absent reads as one without keys, so that the
// defaults of its fields apply.
type section struct {
	d       *decoder
	path    string
	pattern string // path with * for an index or a name that the user chose
	n       *node  // nil: absent
	at      origin
	asked   []string
	foreign []string // keys that were explained, but are not to be suggested
	refused []string // keys that are no part of the format and have a message of their own
	broken  bool     // it is not a mapping, which was reported: stay silent about its fields
}

// field is a value that is being read: one written, or a default.
type field struct {
	d       *decoder
	path    string
	pattern string
	index   int    // of an item in its list
	n       *node  // nil: neither written nor a default
	at      origin // of the value, or of the section it is missing from
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

// field returns the value of a key, or its default, or a field with neither.
func (s *section) field(name string) field {
	if !slices.Contains(s.asked, name) {
		s.asked = append(s.asked, name)
	}
	return s.look(name)
}

// look is field for a key that is not to be suggested to who misspelt one.
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

// refuse reports a key, if it is written, that is no part of the format: why, and what to write in its place.
func (s *section) refuse(name, why string) {
	s.refused = append(s.refused, name)
	if f := s.look(name); f.n != nil {
		f.problem("%s", why)
	}
}

// section begins to read the section under a key.
func (s *section) section(name string) *section { return s.field(name).open() }

// close reports the keys that nothing asked for.
func (s *section) close() {
	if s.d.keys != nil {
		s.d.keys(s.pattern, slices.Concat(s.asked, s.foreign))
	}
	for _, k := range s.unknown() {
		s.d.report.add(k.at, join(s.path, params.Clip(k.name)), "unknown key%s; expected one of %s", s.knownKey(k.name), strings.Join(s.asked, ", "))
	}
}

// unknown returns the keys that nothing asked for so far.
func (s *section) unknown() (keys []key) {
	if s.n == nil {
		return nil
	}
	for _, k := range s.n.keys {
		if !slices.Contains(s.asked, k.name) && !slices.Contains(s.foreign, k.name) && !slices.Contains(s.refused, k.name) {
			keys = append(keys, k)
		}
	}
	return keys
}

// written says that the file, the sweep or the command line has the value.
func (f field) written() bool { return f.n != nil && f.at.source == "" }

// idle reports f, if it is written: because of another setting it would do nothing. Where a sweep goes through the values of that one, f is
// for its other points.
func (f field) idle(because field, format string, args ...any) {
	if f.written() && (because.n == nil || !because.n.at.sweep) {
		f.problem(format, args...)
	}
}

// empty says that f is a section without keys.
func (f field) empty() bool { return f.n != nil && f.n.kind == mapping && len(f.n.keys) == 0 }

// or returns f, or a field with a default that depends on other values.
func (f field) or(text, source string) field {
	if f.n == nil && !f.silent {
		f.at = origin{source: source, line: f.at.line, column: f.at.column, flag: f.at.flag}
		f.n = &node{text: text, plain: true, at: f.at}
	}
	return f
}

func (f field) problem(format string, args ...any) {
	if !f.silent {
		f.d.report.add(f.at, f.path, format, args...)
	}
}

// record keeps the value for `weft explain`, as it would be written.
func (f field) record(value string) {
	if f.n != nil && f.d.aside == 0 {
		f.d.sources = append(f.d.sources, Source{Path: f.path, Value: value, From: f.at.String(), Line: f.at.line, Column: f.at.column, Flag: f.at.flag})
	}
}

// what says what a node is, for a message.
func (n *node) what() string {
	switch {
	case n.null():
		return "has no value"
	case n.kind == mapping:
		return "is a section of keys"
	case n.kind == list:
		return "is a list"
	default:
		return fmt.Sprintf("is the single value %q", params.Clip(n.text))
	}
}

// text returns the scalar in f. It reports a field that is missing or holds something else; expected names
// what belongs there.
func (f field) text(expected string) (string, bool) {
	switch {
	case f.n == nil:
		f.problem("missing; expected %s", expected)
	case f.n.several() && !f.at.sweep:
		f.problem("is a list; expected %s. To run the lab with each of several values: --set 'sweep.%s=%s', or sweep: {%s: %s} in the file",
			expected, f.path, params.Clip(f.n.String()), f.path, params.Clip(f.n.String()))
	case f.n.kind != scalar || f.n.null():
		f.problem("%s; expected %s", f.n.what(), expected)
	default:
		return f.n.text, true
	}
	return "", false
}

// several says that n is a list of single values, as a sweep has them.
func (n *node) several() bool {
	return n.kind == list && len(n.items) > 1 && !slices.ContainsFunc(n.items, func(i *node) bool { return i.kind != scalar })
}

// read reads f with parse, whose error says what was expected, and records what show makes of it.
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

// items returns the fields of a list; none if it is absent.
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
			items = append(items, field{d: f.d, path: join(f.path, strconv.Itoa(i)), pattern: join(f.pattern, "*"), index: i, n: n, at: n.at})
		}
	}
	return items
}

// positions are those of the items of a list, where holes may be between them.
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
