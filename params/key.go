package params

import (
	"errors"
	"fmt"
	"strings"
)

// Key is a key of a section. It holds a Value, a section (Open), a list (Items), or one of several
// of these, such as ranks: 8, ranks: [h0, h3] and ranks: {random: 4}.
type Key struct {
	Name  string
	Value Value  // the single value; nil: the key has none
	About string // one sentence of the reference: what the key means

	// Open returns the section below the key; nil: there is none.
	Open func() Section
	// As is the path of the lab file whose documentation and defaults the section has; "": its own.
	As string
	// Words may be written in the place of a section: off if the section is absent, on for its
	// defaults.
	Words []string

	Names *[]string // where a list of host names is stored; nil: the key takes none
	Items *Items    // the list below the key; nil: there is none

	Optional bool   // an absent key is no error and has no value
	First    bool   // the key is read before all that are not First
	Later    bool   // the key is read in a second step, when more of the lab is known
	Foreign  bool   // the key belongs to something else than is written here, and is never suggested
	Free     bool   // the keys of the section below are not known without a file that the lab names
	Moot     string // the text that is accepted where the key does not apply, because it changes nothing
	Of       string // the transport that the key is of; writing it is no error if some run of the lab uses that
	Refused  string // the key is no longer part of the format: why, and what to write instead

	Text, Source string // the default as text, and its source; "": there is none

	// From returns a default that follows from earlier keys, or "" for none. It precedes Text.
	From func() (text, source string)

	// Derived returns the value of a key that is not written, as earlier keys determine it. It has
	// no range. "": the key is read, or has its default.
	Derived func() (text, source string)

	// When reports whether the key applies, given earlier keys. If it does not and is written, why
	// is the error; without a why, the key is ignored.
	When func() (applies bool, why string)
}

// New returns a key with a single value. About is a sentence of the reference.
func New(name string, v Value, about string) Key { return Key{Name: name, Value: v, About: about} }

// Sub returns a key whose value is a section. Words may be written in its place: off, on.
func Sub(name string, open func() Section, about string, words ...string) Key {
	return Key{Name: name, Open: open, About: about, Words: words}
}

// Items declares the items of a list.
type Items struct {
	Least, Most int             // the minimum and maximum number of items
	Expected    string          // what belongs there, for a list that is missing or too short
	Make        func(n int)     // makes room for n items
	Len         func() int      // returns the number of items
	Item        func(i int) Key // returns the key of item i, without a name: a Value or a section
	Whole       bool            // explain shows the list as one value, not item by item
}

// List returns a key whose value is a list.
func List(name string, items *Items, about string) Key {
	return Key{Name: name, Items: items, About: about}
}

// ItemsOf returns a list of at most the given number of items, stored in *to. item returns the key
// of one of them.
func ItemsOf[T any](to *[]T, most int, item func(*T) Key) *Items {
	return &Items{
		Most: most, Make: func(n int) { *to = make([]T, n) }, Len: func() int { return len(*to) },
		Item: func(i int) Key { return item(&(*to)[i]) },
	}
}

// AtLeast makes a list of fewer than n items an error; expected names what belongs there.
func (i *Items) AtLeast(n int, expected string) *Items {
	i.Least, i.Expected = n, expected
	return i
}

// One returns an item that is a single value.
func One(v Value) Key { return Key{Value: v} }

// Each returns an item that is a section.
func Each(s Section) Key { return Key{Open: func() Section { return s }} }

// Refusal returns a key that is no longer part of the format. The error why says what to write
// instead.
func Refusal(name, why string) Key { return Key{Name: name, Refused: why} }

// Or lets a key hold a section in the place of a list or a value.
func (k Key) Or(open func() Section) Key {
	k.Open = open
	return k
}

// Unlisted says that the section below a key has keys that follow from a file, so that the schema
// allows any.
func (k Key) Unlisted() Key {
	k.Free = true
	return k
}

// Before makes a key be read before all others that are not marked so, wherever it is in the list.
func (k Key) Before() Key {
	k.First = true
	return k
}

// OnceKnown makes a key be read in a second step, when more of the lab is known.
func (k Key) OnceKnown() Key {
	k.Later = true
	return k
}

// MayBe accepts one text for a key that does not apply, because that text describes what happens
// anyway.
func (k Key) MayBe(text string) Key {
	k.Moot = text
	return k
}

// Follows gives a key that is not written the value that follows from earlier keys.
func (k Key) Follows(from func() (text, source string)) Key {
	k.Derived = from
	return k
}

// Same gives the section below a key the documentation and defaults of another path of the lab
// file.
func (k Key) Same(as string) Key {
	k.As = as
	return k
}

// OrHosts lets a key hold a list of host names, stored in *to.
func (k Key) OrHosts(to *[]string) Key {
	k.Names = to
	return k
}

// OrNone makes a key optional: absent, it has no value.
func (k Key) OrNone() Key {
	k.Optional = true
	return k
}

// Default gives a key its default as text, and the source of that default.
func (k Key) Default(text, source string) Key {
	k.Text, k.Source = text, source
	return k
}

// Following gives a key a default that follows from earlier keys; where from returns "", that of
// Default holds.
func (k Key) Following(from func() (text, source string)) Key {
	k.From = from
	return k
}

// Elsewhere marks a key of something else than is written here. Writing it is the error why; with
// an empty why it is ignored here, because another error explains it.
func (k Key) Elsewhere(why string) Key {
	k.Foreign = true
	return k.Only(func() (bool, string) { return false, why })
}

// Only restricts a key to some values of earlier keys. Writing it elsewhere is the error why.
func (k Key) Only(when func() (applies bool, why string)) Key {
	k.When = when
	return k
}

// OnlyOf is Only for a section that two transports share: the key is for runs of the named one.
func (k Key) OnlyOf(transport string, when func() (applies bool, why string)) Key {
	k.Of = transport
	return k.Only(when)
}

// Section is a struct with keys, bound to the fields that their values are stored in.
type Section interface{ Keys() []Key }

// Ruled is a Section with rules that concern several of its keys.
type Ruled interface {
	Section
	Rules(Rules)
}

// Prescanner is a Section whose list of keys depends on what is written in it. Prescan is called
// before Keys; written returns the text of a value below the section.
type Prescanner interface {
	Section
	Prescan(written func(path string) (text string, ok bool))
}

// Reading is a Section whose list of keys depends on a file that the lab names. ReadWith is called
// before Keys, and before Prescan; read returns the content of a file by its path below the lab
// file's folder, and an error where a lab cannot name files.
type Reading interface {
	Section
	ReadWith(read func(name string) ([]byte, error))
}

// Naming is a Section whose keys are whatever is written in it. ReadNames is called before Keys,
// with the names in the order of the file.
type Naming interface {
	Section
	ReadNames(names []string)
}

// Rules lets a rule ask about the keys of its section and report errors at them. A key may be the
// path of one in an inner section or list, such as nodes.3.name; "" is the section itself.
type Rules interface {
	// Written reports whether the file, its sweep or the command line has the key.
	Written(key string) bool
	// Misspelt reports whether the section has unknown keys.
	Misspelt() bool
	// Nearest returns a hint at the candidate most like a word, or "" if none is close.
	Nearest(word string, candidates []string) string
	// Good reports whether all these keys have a valid value.
	Good(keys ...string) bool
	// Shown returns the value of a key as it would be written, or "" without a valid one.
	Shown(key string) string
	// Off reports whether a section elsewhere in the lab, such as queues.ecn, is off.
	Off(path string) bool
	// Refuse reports the value of a key as wrong.
	Refuse(key, format string, args ...any)
	// Idle reports a key that is written but has no effect, because of another key or of a section
	// elsewhere that is off. It does not report if a sweep varies that other one, since the key is
	// then for other points of the sweep.
	Idle(key, because, format string, args ...any)
}

// Needed reports whether a section without the key is an error.
func (k Key) Needed() bool {
	return k.Text == "" && k.From == nil && k.When == nil && k.Open == nil && !k.Optional && !k.Later &&
		(k.Items == nil || k.Items.Least > 0)
}

// SetDefaults sets every key of a section to its default. It panics if a default is no valid text.
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

// Defaults returns a T whose every key has its default. *T must be a Section.
func Defaults[T any, S interface {
	*T
	Section
}]() (v T) {
	SetDefaults(S(&v))
	return v
}

// Standard returns the default of a key and its source, or "" if the key has none or does not
// apply.
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

// Check returns an error that names the first key whose value is out of range, or that has a value
// although it does not apply.
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

// check checks a value, or the number of items of a list and each of them.
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

// Shown returns the value of a key as it would be written, that of a list without its brackets, or
// "" if it is not set.
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

// Validate is Check, and also applies the rules of a section.
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

// refusals implements Rules for values that did not come from a text.
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
