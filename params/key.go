package params

import (
	"fmt"
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

	Optional bool // absent, it has no value

	Text, Source string // the default as it would be written, and where it is from; "": it has none

	// From is a default that follows from keys before it, which goes before Text; "": there is none.
	From func() (text, source string)

	// When says whether the keys before it leave it anything to be about. It is refused otherwise, unless why is "".
	When func() (applies bool, why string)
}

// New declares a key.
func New(name string, v Value, about string) Key { return Key{Name: name, Value: v, About: about} }

// Sub declares a key whose value is a section.
func Sub(name string, open func() Section, about string, words ...string) Key {
	return Key{Name: name, Open: open, About: about, Words: words}
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
	return k.Text == "" && k.From == nil && k.When == nil && k.Open == nil && !k.Optional
}

// SetDefaults gives every key its default.
func SetDefaults(s Section) {
	for _, k := range s.Keys() {
		text, _ := k.Standard()
		if text == "" || k.Open != nil {
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
		if k.Open != nil {
			continue
		}
		err := k.Value.Check()
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

// Names are the names of keys.
func Names(keys []Key) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return names
}
