package params

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Value is a kind of value, bound to where it goes.
type Value interface {
	// Set reads text and returns it as it would be written. The error says what was expected.
	Set(text string, quoted bool) (shown string, err error)
	// Expected names what belongs there, for a value that is missing.
	Expected() string
	// Form is what the text looks like.
	Form() Form
	// Check returns an error if the value is out of range, however it got there.
	Check() error
	// None says that the value is that of a key nobody set.
	None() bool
	// Shown is the value as it would be written.
	Shown() string
}

// Form is what the text of a value looks like: one of some words, a bare number, a text by one of some patterns.
type Form struct {
	Words    []string
	Number   string // "integer", "number"; "": it is no bare number
	Least    string // of a Number
	Most     string
	Patterns []string
	Example  string // of a text
	Flag     bool   // true or false, and what YAML 1.1 has for them
	Multiple string // of which a Number is one; "": any
	Null     bool   // nothing is the same as true
}

// Unknown is the error of a word that is none of those that a key knows.
type Unknown struct {
	Word     string
	Known    []string
	Expected string
}

func (e *Unknown) Error() string { return e.With("") }

// With is the error with a hint at what was meant.
func (e *Unknown) With(hint string) string {
	return fmt.Sprintf("unknown value %q%s; expected %s", Clip(e.Word), hint, e.Expected)
}

// Of is a Value of a type.
type Of[T comparable] struct {
	to       *T
	parse    func(string) (T, error)
	show     func(T) string
	within   func(T) bool  // nil: all that parse reads
	bounds   func() string // what is within
	expected func() string
	bare     func() string // what a quoted text is not, and what was expected; nil: quotes change nothing
	form     func() Form
	words    []word[T]
}

type word[T any] struct {
	text string
	is   T
}

// Or lets a key have a word, too, which stands for a value.
func (v Of[T]) Or(text string, is T) Of[T] {
	v.words = append(slices.Clone(v.words), word[T]{text, is})
	return v
}

// Like is v where its text is said to look otherwise.
func (v Of[T]) Like(pattern, example string) Of[T] {
	v.form = always(Form{Patterns: []string{pattern}, Example: example})
	return v
}

// Set implements Value.
func (v Of[T]) Set(text string, quoted bool) (string, error) {
	for _, w := range v.words {
		if w.text == text {
			*v.to = w.is
			return text, nil
		}
	}
	if quoted && v.bare != nil {
		return "", fmt.Errorf("%q is not %s", Clip(text), v.bare())
	}
	x, err := v.parse(text)
	if err == nil && v.within != nil && !v.within(x) {
		err = fmt.Errorf("%q is out of range; expected %s", Clip(text), v.bounds())
	}
	if err != nil {
		return "", err
	}
	*v.to = x
	return v.show(x), nil
}

// Expected implements Value.
func (v Of[T]) Expected() string { return v.expected() }

// Form implements Value.
func (v Of[T]) Form() Form {
	f := v.form()
	for _, w := range v.words {
		f.Words = append(f.Words, w.text)
	}
	return f
}

// Check implements Value.
func (v Of[T]) Check() error {
	if v.within == nil || v.within(*v.to) || slices.ContainsFunc(v.words, func(w word[T]) bool { return w.is == *v.to }) {
		return nil
	}
	return fmt.Errorf("%v is out of range; expected %s", *v.to, v.bounds())
}

// None implements Value.
func (v Of[T]) None() bool {
	var none T
	return *v.to == none
}

// Shown implements Value.
func (v Of[T]) Shown() string {
	for _, w := range v.words {
		if w.is == *v.to {
			return w.text
		}
	}
	return v.show(*v.to)
}

// Even is v where the form of its text says that it is an even number.
func (v Of[T]) Even() Of[T] {
	f := v.form()
	f.Multiple = "2"
	v.form = always(f)
	return v
}

// Bare is v where a text in quotes is not what it says, but for its words.
func (v Of[T]) Bare(what string) Of[T] {
	v.bare = always(what)
	return v
}

// Lazy is a value whose range follows from keys before it.
func Lazy(of func() Value) Value { return lazy(of) }

type lazy func() Value

func (l lazy) Set(text string, quoted bool) (string, error) { return l().Set(text, quoted) }
func (l lazy) Expected() string                             { return l().Expected() }
func (l lazy) Form() Form                                   { return l().Form() }
func (l lazy) Check() error                                 { return l().Check() }
func (l lazy) None() bool                                   { return l().None() }
func (l lazy) Shown() string                                { return l().Shown() }

func same(text string) string { return text }

func always[T any](v T) func() T { return func() T { return v } }

// ranged is v with an inclusive range.
func ranged[T cmp.Ordered](v Of[T], lo, hi T) Of[T] {
	v.within = func(x T) bool { return x >= lo && x <= hi }
	if v.bounds == nil {
		v.bounds = func() string { return v.show(lo) + " to " + v.show(hi) }
	}
	return v
}

// Word is one of some words.
func Word(to *string, known ...string) Of[string] {
	expected := func() string {
		if len(known) == 1 {
			return known[0]
		}
		return "one of " + strings.Join(known, ", ")
	}
	return Of[string]{
		to: to, show: same, expected: expected, bounds: expected,
		form:   func() Form { return Form{Words: slices.Clone(known)} },
		within: func(text string) bool { return slices.Contains(known, text) },
		parse: func(text string) (string, error) {
			if !slices.Contains(known, text) {
				return "", &Unknown{text, known, expected()}
			}
			return text, nil
		},
	}
}

// Custom is a kind of value that one section alone has.
func Custom[T comparable](to *T, parse func(string) (T, error), show func(T) string, expected string, form func() Form) Of[T] {
	return Of[T]{to: to, parse: parse, show: show, expected: always(expected), form: form}
}

// Text is any text.
func Text(to *string, expected string) Of[string] {
	return Custom(to, func(text string) (string, error) { return text, nil }, same, expected, func() Form { return Form{} })
}

// Within is v with a range, which bounds says in words.
func (v Of[T]) Within(bounds string, within func(T) bool) Of[T] {
	v.bounds, v.within = always(bounds), within
	return v
}

// Choice is one of two words, the second of which is true.
func Choice(to *bool, no, yes string) Of[bool] {
	var word string
	words := Word(&word, no, yes)
	return Of[bool]{
		to: to, expected: words.expected, form: words.form,
		parse: func(text string) (bool, error) {
			_, err := words.parse(text)
			return text == yes, err
		},
		show: func(v bool) string {
			if v {
				return yes
			}
			return no
		},
	}
}

// Maybe is a value that may be absent: nil. A word, unless it is "", says so.
func Maybe[T comparable](to **T, word string, kind func(*T) Of[T]) Value {
	return maybe[T]{to, word, kind}
}

type maybe[T comparable] struct {
	to   **T
	word string
	kind func(*T) Of[T]
}

// Set implements Value. A text that is wrong is there all the same.
func (m maybe[T]) Set(text string, quoted bool) (string, error) {
	if m.word != "" && text == m.word {
		*m.to = nil
		return text, nil
	}
	*m.to = new(T)
	return m.kind(*m.to).Set(text, quoted)
}

// Expected implements Value.
func (m maybe[T]) Expected() string { return m.kind(nil).Expected() }

// Form implements Value.
func (m maybe[T]) Form() Form {
	f := m.kind(nil).Form()
	if m.word != "" {
		f.Words = append(f.Words, m.word)
	}
	return f
}

// Check implements Value.
func (m maybe[T]) Check() error {
	if *m.to == nil {
		return nil
	}
	return m.kind(*m.to).Check()
}

// None implements Value.
func (m maybe[T]) None() bool { return *m.to == nil }

// Shown implements Value.
func (m maybe[T]) Shown() string {
	if *m.to == nil {
		return m.word
	}
	return m.kind(*m.to).Shown()
}

// Union is the first of some values, whose text may look like that of any of them.
func Union(all ...Value) Value { return union{all[0], all} }

type union struct {
	Value
	all []Value
}

// Form implements Value.
func (u union) Form() Form {
	f := u.Value.Form()
	for _, v := range u.all[1:] {
		o := v.Form()
		if number(o.Least) < number(f.Least) {
			f.Least = o.Least
		}
		if number(o.Most) > number(f.Most) {
			f.Most = o.Most
		}
	}
	return f
}

func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}
