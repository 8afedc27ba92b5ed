package params

import (
	"errors"
	"fmt"
	"strings"
)

// Key is a key of a section.
type Key struct {
	Name  string
	Value Value
	About string // one sentence: what it means

	// Open returns what holds the keys of its own that a key has in the place of a Value. As is the path of the section of a lab file
	// that they are those of, where it is another.
	Open func() Section
	As   string
	// Words are what may be written in the place of keys: off, which is what a key that is not opened is, and on for the defaults.
	Words []string

	Names *[]string // of hosts, which a list in the place of Value has; nil: it is never a list

	Items *Items // of a list, which it may be; nil: it is never one

	Optional bool   // absent, it has no value
	First    bool   // it is read before those that are not, which follow from it
	Later    bool   // it is read once more of the lab is known
	Foreign  bool   // it is no key of what is written here: never suggested
	Moot     string // what may be written all the same where it is about nothing, since it is so anyway
	Refused  string // it is no key of the format any more: why, and what to write in its place

	Text, Source string // the default as it would be written, and where it is from; "": it has none

	// From is a default that follows from keys before it, which goes before Text; "": there is none.
	From func() (text, source string)

	// Derived is a value that follows from keys before and has no range; "": it is read, or has its default.
	Derived func() (text, source string)

	// When says whether the keys before it leave it anything to be about. It is refused otherwise, unless why is "".
	When func() (applies bool, why string)
}

// New declares a key.
func New(name string, v Value, about string) Key { return Key{Name: name, Value: v, About: about} }

// Sub declares a key whose value is a section.
func Sub(name string, open func() Section, about string, words ...string) Key {
	return Key{Name: name, Open: open, About: about, Words: words}
}

// Items are what a list has.
type Items struct {
	Least, Most int
	Expected    string          // of a list that is missing or too short
	Make        func(n int)     // has room for so many
	Len         func() int      // how many there are
	Item        func(i int) Key // of a Value or a section; it has no name
	Whole       bool            // they are one value for those who ask where it is from
}

// List declares a key whose value is a list.
func List(name string, items *Items, about string) Key {
	return Key{Name: name, Items: items, About: about}
}

// ItemsOf are those of a list, each of a kind.
func ItemsOf[T any](to *[]T, most int, item func(*T) Key) *Items {
	return &Items{
		Most: most, Make: func(n int) { *to = make([]T, n) }, Len: func() int { return len(*to) },
		Item: func(i int) Key { return item(&(*to)[i]) },
	}
}

// AtLeast has a list with no fewer; expected names what belongs there.
func (i *Items) AtLeast(n int, expected string) *Items {
	i.Least, i.Expected = n, expected
	return i
}

// One is an item that is a value.
func One(v Value) Key { return Key{Value: v} }

// Each is an item that is a section.
func Each(s Section) Key { return Key{Open: func() Section { return s }} }

// Refusal declares a key that is no part of the format any more.
func Refusal(name, why string) Key { return Key{Name: name, Refused: why} }

// Or has a key that is a section in the place of a list or a value.
func (k Key) Or(open func() Section) Key {
	k.Open = open
	return k
}

// Before is a key that is read before others that come before it.
func (k Key) Before() Key {
	k.First = true
	return k
}

// OnceKnown is a key that is read once more of the lab is known.
func (k Key) OnceKnown() Key {
	k.Later = true
	return k
}

// MayBe is what may be written although the key is one of something else, since it is so anyway.
func (k Key) MayBe(text string) Key {
	k.Moot = text
	return k
}

// Follows is a value that follows from the keys before in a lab that does not write it.
func (k Key) Follows(from func() (text, source string)) Key {
	k.Derived = from
	return k
}

// Same says that a section has the keys of the one at a path of the lab file.
func (k Key) Same(as string) Key {
	k.As = as
	return k
}

// OrHosts is a key that may have a list of hosts.
func (k Key) OrHosts(to *[]string) Key {
	k.Names = to
	return k
}

// OrNone is a key that may have no value.
func (k Key) OrNone() Key {
	k.Optional = true
	return k
}

// Default is what a key has that is not written, and where that is from.
func (k Key) Default(text, source string) Key {
	k.Text, k.Source = text, source
	return k
}

// Following is a default that follows from the keys before.
func (k Key) Following(from func() (text, source string)) Key {
	k.From = from
	return k
}

// Elsewhere is a key of something else than what is written here, which why says; "": that is not known.
func (k Key) Elsewhere(why string) Key {
	k.Foreign = true
	return k.Only(func() (bool, string) { return false, why })
}

// Only is a key that some values of the keys before leave nothing to say.
func (k Key) Only(when func() (applies bool, why string)) Key {
	k.When = when
	return k
}

// Section is what has keys, bound to where their values go.
type Section interface{ Keys() []Key }

// Ruled is a Section with rules about several of its keys.
type Ruled interface {
	Section
	Rules(Rules)
}

// Foreseeing is a Section whose keys depend on what is written further down in it: text is of a value that has one.
type Foreseeing interface {
	Section
	Foresee(written func(path string) (text string, ok bool))
}

// Rules is what a rule is told of the keys of its section and says of them.
type Rules interface {
	// Written says that the lab has the key.
	Written(key string) bool
	// Misspelt says that the section has keys that it knows nothing of.
	Misspelt() bool
	// Nearest is a hint at the candidate that is most like a word; "": none is.
	Nearest(word string, candidates []string) string
	// Good says that all these keys have a value that is one.
	Good(keys ...string) bool
	// Shown is the value of a key as it would be written; "" where it has none.
	Shown(key string) string
	// Off says that a section elsewhere in the lab, such as queues.ecn, is off.
	Off(path string) bool
	// Refuse reports the value of a key, which is wrong.
	Refuse(key, format string, args ...any)
	// Idle reports a key that is written and does nothing because of another, or of a section elsewhere that is off. Where a
	// sweep goes through the values of that one the key is for its other points.
	Idle(key, because, format string, args ...any)
}

// Needed says that a section without the key is wrong.
func (k Key) Needed() bool {
	return k.Text == "" && k.From == nil && k.When == nil && k.Open == nil && !k.Optional && !k.Later && (k.Items == nil || k.Items.Least > 0)
}

// SetDefaults gives every key its default.
func SetDefaults(s Section) {
	for _, k := range s.Keys() {
		text, _ := k.Standard()
		if text == "" || k.Value == nil {
			continue
		}
		if _, err := k.Value.Set(text, false); err != nil {
			panic(fmt.Sprintf("params: the default of %s: %v", k.Name, err)) // a constant of the section's package
		}
	}
}

// Standard is the default of a key and where it is from; "" if it has none or is about nothing.
func (k Key) Standard() (text, source string) {
	if k.When != nil {
		if applies, _ := k.When(); !applies {
			return "", ""
		}
	}
	if k.From != nil {
		if text, source = k.From(); text != "" {
			return text, source
		}
	}
	return k.Text, k.Source
}

// Check returns an error that names the first key whose value is out of range. Keys that are about nothing have none.
func Check(name string, s Section) error {
	for _, k := range s.Keys() {
		err := k.check()
		if k.When != nil {
			if applies, why := k.When(); !applies {
				err = nil
				if !k.Value.None() {
					err = fmt.Errorf("%s", why)
				}
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %s: %w", name, k.Name, err)
		}
	}
	return nil
}

// check checks a value, or each item of a list.
func (k Key) check() error {
	switch {
	case k.Value != nil:
		return k.Value.Check()
	case k.Items == nil:
		return nil
	}
	for i := range k.Items.Len() {
		if err := k.Items.Item(i).check(); err != nil {
			return err
		}
	}
	if n := k.Items.Len(); n < k.Items.Least || n > k.Items.Most {
		return fmt.Errorf("%d items; expected %d to %d", n, k.Items.Least, k.Items.Most)
	}
	return nil
}

// Shown is the value of a key as it would be written, that of a list without its brackets; "" if nobody set it.
func (k Key) Shown() string {
	if k.Items == nil {
		if k.Value == nil || k.Value.None() {
			return ""
		}
		return k.Value.Shown()
	}
	var all []string
	for i := range k.Items.Len() {
		all = append(all, k.Items.Item(i).Shown())
	}
	return strings.Join(all, ",")
}

// Validate is Check that also holds a section to its rules.
func Validate(name string, s Section) error {
	if err := Check(name, s); err != nil {
		return err
	}
	r := &refusals{name: name}
	if ruled, ok := s.(Ruled); ok {
		ruled.Rules(r)
	}
	return errors.Join(r.found...)
}

// refusals are what rules say of values that no text is of.
type refusals struct {
	name  string
	found []error
}

func (r *refusals) Written(string) bool                 { return false }
func (r *refusals) Misspelt() bool                      { return false }
func (r *refusals) Nearest(string, []string) string     { return "" }
func (r *refusals) Good(...string) bool                 { return true }
func (r *refusals) Shown(string) string                 { return "" }
func (r *refusals) Off(string) bool                     { return false }
func (r *refusals) Idle(string, string, string, ...any) {}
func (r *refusals) Refuse(key, format string, args ...any) {
	r.found = append(r.found, fmt.Errorf("%s: %s: %s", r.name, key, fmt.Sprintf(format, args...)))
}
