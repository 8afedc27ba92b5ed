package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	broken  bool     // it is not a mapping, which was reported: stay silent about its fields
	lenient bool     // unknown keys were explained otherwise
}

// field is a value that is being read: one written, or a default.
type field struct {
	d       *decoder
	path    string
	pattern string
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
		f.problem("%s; expected a section of keys", f.n.what())
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
	if v, ok := defaults[f.pattern]; ok {
		return f.or(v.text, v.source)
	}
	return f
}

// section begins to read the section under a key.
func (s *section) section(name string) *section { return s.field(name).open() }

// close reports the keys that nothing asked for.
func (s *section) close() {
	if s.d.keys != nil {
		s.d.keys(s.pattern, slices.Concat(s.asked, s.foreign))
	}
	if s.n == nil || s.lenient {
		return
	}
	for _, k := range s.n.keys {
		if !slices.Contains(s.asked, k.name) && !slices.Contains(s.foreign, k.name) {
			s.d.report.add(k.at, join(s.path, clip(k.name)), "unknown key%s; expected one of %s", s.d.nearest(k.name, s.asked), strings.Join(s.asked, ", "))
		}
	}
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
		return fmt.Sprintf("is the single value %q", clip(n.text))
	}
}

// text returns the scalar in f. It reports a field that is missing or holds something else; expected names
// what belongs there.
func (f field) text(expected string) (string, bool) {
	switch {
	case f.n == nil:
		f.problem("missing; expected %s", expected)
	case f.n.kind != scalar || f.n.null():
		f.problem("%s; expected %s", f.n.what(), expected)
	default:
		return f.n.text, true
	}
	return "", false
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

// number is what a bounded value is made of.
type number interface {
	~int | ~int64 | ~uint64 | ~float64
}

// between is parse with an inclusive range.
func between[T number](parse func(string) (T, error), lo, hi T, show func(T) string) func(string) (T, error) {
	return func(text string) (T, error) {
		v, err := parse(text)
		if err == nil && (v < lo || v > hi) {
			err = fmt.Errorf("%q is out of range; expected %s to %s", clip(text), show(lo), show(hi))
		}
		return v, err
	}
}

// quantity reads a value with a unit, within lo and hi.
func quantity[T interface {
	number
	fmt.Stringer
}](f field, parse func(string) (T, error), lo, hi T) (T, bool) {
	show := func(v T) string { return v.String() }
	return read(f, fmt.Sprintf("a value from %v to %v", lo, hi), between(parse, lo, hi, show), show)
}

// integer reads a whole number within lo and hi.
func (f field) integer(lo, hi int) int {
	expected := fmt.Sprintf("a whole number from %d to %d", lo, hi)
	v, _ := read(f, expected, func(text string) (int, error) {
		if !f.n.plain || !digits(text) {
			return 0, fmt.Errorf("%q is not a whole number; expected %s", clip(text), expected)
		}
		v, err := strconv.Atoi(text)
		if err != nil || v < lo || v > hi {
			return 0, fmt.Errorf("%q is out of range; expected %s", clip(text), expected)
		}
		return v, nil
	}, strconv.Itoa)
	return v
}

// decimal reads a number without a unit within lo and hi.
func (f field) decimal(lo, hi float64) (float64, bool) {
	return read(f, fmt.Sprintf("a number from %v to %v", lo, hi), between(parseDecimal, lo, hi, showDecimal), showDecimal)
}

func parseDecimal(text string) (float64, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if !digits(whole) || point && !digits(fraction) || len(text) > 32 {
		return 0, fmt.Errorf("%q is not a decimal number; expected one such as 1.25", clip(text))
	}
	return strconv.ParseFloat(text, 64)
}

func showDecimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// flag reads true or false.
func (f field) flag() bool { return f.flagOr("") }

// flagOr is flag for a key that may also be another word, which its reader looks for first.
func (f field) flagOr(other string) bool {
	expected, neither := "true or false", "neither true nor false"
	if other != "" {
		expected, neither = "true, false or "+other, "none of true, false and "+other
	}
	v, _ := read(f, expected, func(text string) (bool, error) {
		switch text {
		case "true", "on", "yes":
			return true, nil
		case "false", "off", "no":
			return false, nil
		}
		return false, fmt.Errorf("%q is %s", clip(text), neither)
	}, strconv.FormatBool)
	return v
}

// choice is the values a field can have. Those of later are part of the format, but no code honours them yet.
type choice struct{ built, later []string }

// enum reads one of a set of words.
func (f field) enum(c choice) (string, bool) {
	expected := strings.Join(c.built, ", ")
	if len(c.built) > 1 {
		expected = "one of " + expected
	}
	return read(f, expected, func(text string) (string, error) {
		switch {
		case slices.Contains(c.built, text):
			return text, nil
		case slices.Contains(c.later, text):
			return "", fmt.Errorf("%q is not yet supported; expected %s", text, expected)
		default:
			return "", fmt.Errorf("unknown value %q%s; expected %s", clip(text), f.d.nearest(text, slices.Concat(c.built, c.later)), expected)
		}
	}, func(v string) string { return v })
}

// later refuses a part of the format that no code honours yet. Not writing it is fine, and so is one of off,
// which says that the part is not wanted.
func (f field) later(what string, off ...string) {
	if f.n == nil || f.n.kind == scalar && slices.Contains(off, f.n.text) {
		return
	}
	if f.n.kind == list && len(f.n.items) == 0 && slices.Contains(off, "[]") {
		return
	}
	f.problem("%s not yet supported; leave it out", what)
}

// items returns the fields of a list; none if it is absent.
func (f field) items(most int) []field {
	switch {
	case f.n == nil:
		return nil
	case f.n.kind != list:
		f.problem("%s; expected a list", f.n.what())
		return nil
	case len(f.n.items) > most:
		f.problem("has %d items; expected at most %d", len(f.n.items), most)
		return nil
	}
	items := make([]field, len(f.n.items))
	for i, n := range f.n.items {
		items[i] = field{d: f.d, path: join(f.path, strconv.Itoa(i)), pattern: join(f.pattern, "*"), n: n, at: n.at}
	}
	return items
}
