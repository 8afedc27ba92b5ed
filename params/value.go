package params

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/internal/clip"
)

// Value is a kind of value, bound to the variable that the value is stored in.
type Value interface {
	// Set parses text, stores the value and returns it as it would be written. quoted reports
	// whether the text was in quotes in the file. The error says what was expected.
	Set(text string, quoted bool) (shown string, err error)
	// Expected names what belongs there, for the message about a missing value.
	Expected() string
	// Form describes valid texts, for the JSON Schema.
	Form() Form
	// Check returns an error if the stored value is out of range, whatever stored it.
	Check() error
	// None reports whether the variable has its zero value, as if the key was never set.
	None() bool
	// Shown returns the stored value as it would be written.
	Shown() string
}

// Form describes the texts of a value: words, a bare number, or texts that match a pattern.
type Form struct {
	Words    []string // words that are valid
	Number   string   // "integer" or "number"; "": a bare number is invalid
	Least    string   // minimum of a Number; "": none
	Most     string   // maximum of a Number; "": none
	Patterns []string // a text matches one of these regular expressions as a whole
	Example  string   // a valid text, for people
	Flag     bool     // true and false are valid, and what YAML 1.1 has for them
	Multiple string   // a Number is a multiple of this; "": any number
	Null     bool     // a key without a value is valid and means true
	Scalar   bool     // every number, true and false are valid beside every text, and mean their text
}

// Unknown is the error of a word that a key does not know.
type Unknown struct {
	Word     string   // as it was written
	Known    []string // the words that are valid
	Expected string   // what was expected, in words
}

func (e *Unknown) Error() string { return e.With("") }

// With returns the message with a hint at what was probably meant, such as ` (did you mean
// "ring"?)`.
func (e *Unknown) With(hint string) string {
	return fmt.Sprintf("unknown value %q%s; expected %s", clip.Text(e.Word), hint, e.Expected)
}

// Of is a Value of type T. Texts of messages are functions, because most values are valid and never
// need them.
type Of[T comparable] struct {
	to       *T                      // where the value is stored
	parse    func(string) (T, error) // the error says what was expected
	show     func(T) string          // the inverse of parse
	within   func(T) bool            // reports whether a value is in range; nil: all are
	bounds   func() string           // the range, for messages
	expected func() string           // implements Expected
	bare     func() string           // what a quoted text is not; nil: quotes change nothing
	form     func() Form             // implements Form, without the words
	words    []word[T]               // words with a value of their own; they need not be in range
}

// word is a text that stands for a value.
type word[T any] struct {
	text string
	is   T
}

// Or accepts a word as well, which stands for the value is.
func (v Of[T]) Or(text string, is T) Of[T] {
	v.words = append(slices.Clone(v.words), word[T]{text, is})
	return v
}

// Like replaces the description of the text by one pattern and an example.
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
		return "", fmt.Errorf("%q in quotes is text, not %s", clip.Text(text), v.bare())
	}
	x, err := v.parse(text)
	if err == nil && v.within != nil && !v.within(x) {
		err = fmt.Errorf("%q is out of range; expected %s", clip.Text(text), v.bounds())
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
	named := func(w word[T]) bool { return w.is == *v.to }
	if v.within == nil || v.within(*v.to) || slices.ContainsFunc(v.words, named) {
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

// Even adds to the description of the text that the number is even.
func (v Of[T]) Even() Of[T] {
	f := v.form()
	f.Multiple = "2"
	v.form = always(f)
	return v
}

// Bare rejects a text in quotes, except for words: it "is not" what.
func (v Of[T]) Bare(what string) Of[T] {
	v.bare = always(what)
	return v
}

// Lazy returns a value that is made when it is used, so that its range can follow from earlier
// keys.
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

// ranged returns v with the inclusive range from lo to hi.
func ranged[T cmp.Ordered](v Of[T], lo, hi T) Of[T] {
	v.within = func(x T) bool { return x >= lo && x <= hi }
	if v.bounds == nil {
		v.bounds = func() string { return v.show(lo) + " to " + v.show(hi) }
	}
	return v
}

// Word is one of the known words.
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

// Custom is a kind of value that only one section has.
func Custom[T comparable](
	to *T, parse func(string) (T, error), show func(T) string, expected string, form func() Form,
) Of[T] {
	return Of[T]{to: to, parse: parse, show: show, expected: always(expected), form: form}
}

// Text is any text.
func Text(to *string, expected string) Of[string] {
	parse := func(text string) (string, error) { return text, nil }
	return Custom(to, parse, same, expected, func() Form { return Form{} })
}

// Within returns v with a range; bounds describes it for messages.
func (v Of[T]) Within(bounds string, within func(T) bool) Of[T] {
	v.bounds, v.within = always(bounds), within
	return v
}

// Choice is a bool that is written as one of two words: no for false, yes for true.
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

// Option is one of the known words, stored as its position among them.
func Option[T ~uint8](to *T, known ...string) Of[T] {
	var word string
	words := Word(&word, known...)
	return Of[T]{
		to: to, expected: words.expected, form: words.form, bounds: words.bounds,
		parse: func(text string) (T, error) {
			_, err := words.parse(text)
			return T(max(0, slices.Index(known, text))), err
		},
		show:   func(v T) string { return known[v] },
		within: func(v T) bool { return int(v) < len(known) },
	}
}

// Maybe is a value that may be absent, stored as nil. If word is not "", that word means absent.
func Maybe[T comparable](to **T, word string, kind func(*T) Of[T]) Value {
	return maybe[T]{to, word, kind}
}

type maybe[T comparable] struct {
	to   **T
	word string
	kind func(*T) Of[T]
}

// Set implements Value. A text in error still stores a value, the zero value, so that the key
// counts as present.
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

// Union acts as the first of some values, and its Form also accepts the numbers of the others.
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
		for _, p := range o.Patterns {
			if !slices.Contains(f.Patterns, p) {
				f.Patterns = append(slices.Clip(f.Patterns), p)
			}
		}
		if f.Example = cmp.Or(f.Example, o.Example); o.Number == "" {
			continue // it has no bounds
		}
		if number(o.Least) < number(f.Least) {
			f.Least = o.Least
		}
		if number(o.Most) > number(f.Most) {
			f.Most = o.Most
		}
	}
	return f
}

// number returns the number in a bound of a Form, 0 if there is none.
func number(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}
