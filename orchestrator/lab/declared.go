package lab

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"weft/params"
)

// tableOf are the defaults of a section that do not depend on other values, by the path of the key. A * stands for any index.
func tableOf(s params.Section) map[string]value {
	table := map[string]value{}
	addDeclared(table, "", s)
	return table
}

func addDeclared(table map[string]value, path string, s params.Section) {
	if s == nil {
		return
	}
	for _, k := range s.Keys() {
		if k.Text != "" {
			table[join(path, k.Name)] = value{k.Text, k.Source}
		}
		if k.Open != nil && k.As == "" {
			addDeclared(table, join(path, k.Name), k.Open())
		}
		if k.Items != nil {
			k.Items.Make(1)
			if item := k.Items.Item(0); item.Open != nil {
				addDeclared(table, join(path, k.Name+".*"), item.Open())
			}
		}
	}
}

// keyReader reads a declared section.
type keyReader struct {
	s      *section
	fields map[string]field
	shown  map[string]string     // by key: the values that are good
	inner  map[string]*keyReader // by key: of the sections in it
}

func newReader(s *section) *keyReader {
	return &keyReader{s: s, fields: map[string]field{}, shown: map[string]string{}, inner: map[string]*keyReader{}}
}

// all reads a section that is declared as a whole.
func (s *section) all(to params.Section) {
	s.read(to)
	s.close()
}

// read reads all keys of a section into where they go, and has it held to its rules; or only some, for those of which it has been held to
// them already.
func (s *section) read(to params.Section, only ...string) *keyReader {
	r := newReader(s)
	if f, ok := to.(params.Foreseeing); ok {
		f.Foresee(s.n.written)
	}
	keys := to.Keys()
	slices.SortStableFunc(keys, func(a, b params.Key) int { return last(a) - last(b) })
	for _, k := range keys {
		if len(only) == 0 || slices.Contains(only, k.Name) {
			r.key(k)
		}
	}
	if ruled, ok := to.(params.Ruled); ok && len(only) == 0 {
		ruled.Rules(r)
	}
	return r
}

func last(k params.Key) int {
	if k.First {
		return 0
	}
	return 1
}

func (r *keyReader) key(k params.Key) {
	if k.Refused != "" {
		r.s.refuse(k.Name, k.Refused)
		return
	}
	f := r.s.look(k.Name)
	if k.Foreign {
		r.s.foreign = append(r.s.foreign, k.Name)
	} else {
		f = r.s.field(k.Name)
	}
	r.take(k, k.Name, f)
}

// take reads what a key or an item of a list has.
func (r *keyReader) take(k params.Key, name string, f field) {
	r.fields[name] = f
	if k.When != nil {
		if applies, why := k.When(); !applies {
			if f.written() && why != "" && (k.Moot == "" || f.n.text != k.Moot) {
				f.problem("%s", why)
				f.silent = true
			}
			r.fields[name] = f
			return
		}
	}
	if k.Later {
		return
	}
	if k.Derived != nil && !f.written() {
		if text, source := k.Derived(); text != "" {
			f.n = nil
			f = f.or(text, source)
			f.record(text)
			r.fields[name] = f
			return
		}
	}
	switch {
	case k.Items != nil && (f.n != nil && f.n.kind == list || k.Value == nil && (k.Open == nil || f.n == nil || f.n.kind != mapping)):
		r.list(k, name, f)
		return
	case k.Open != nil && (k.Value == nil || f.n != nil && f.n.kind == mapping):
		if text, source := k.Standard(); f.n == nil && text != "" {
			f = f.or(text, source)
			r.fields[name] = f
		}
		if f.n != nil || !k.Optional {
			r.open(k, name, f)
		}
		return
	}
	if text, source := k.Standard(); f.n == nil || f.n.at.source != "" && k.From != nil {
		if text != "" {
			f.n, f.at = nil, r.s.at
			f = f.or(text, source)
		}
	}
	if f.n == nil && k.Optional {
		return
	}
	r.fields[name] = f
	if k.Names != nil && f.n != nil && f.n.kind == list {
		*k.Names = f.hosts(r.s.d.hosts)
		return
	}
	if shown, ok := f.value(k.Value); ok {
		r.shown[name] = shown
	}
}

// list reads the items of a list.
func (r *keyReader) list(k params.Key, name string, f field) {
	all := k.Items
	if f.n == nil {
		if all.Expected != "" && !k.Optional {
			f.problem("missing; expected %s", all.Expected)
		}
		return
	}
	if all.Expected != "" && f.n.kind == list && (len(f.n.items) < all.Least || all.Least > 0 && len(f.n.items) > all.Most) {
		f.problem("expected %s", all.Expected)
		return
	}
	if f.n.isOne(k.Words) {
		return
	}
	items := f.items(all.Most)
	if f.n.kind != list {
		return
	}
	inner := newReader(r.s)
	r.inner[name] = inner
	all.Make(len(items))
	if all.Whole {
		r.s.d.aside++
	}
	var shown []string
	for i, item := range items {
		inner.take(all.Item(i), strconv.Itoa(i), item)
		shown = append(shown, inner.shown[strconv.Itoa(i)])
	}
	if all.Whole {
		r.s.d.aside--
		f.record("[" + strings.Join(shown, ", ") + "]")
	}
}

// mostNames is how many hosts a key names at most.
const mostNames = 1 << 14

// hosts reads a list of hosts, each of which is there once.
func (f field) hosts(known hosts) (names []string) {
	for _, item := range f.items(mostNames) {
		name := item.host(known)
		if name != "" && slices.Contains(names, name) {
			item.problem("%s is named twice", name)
		}
		names = append(names, name)
	}
	return names
}

// host reads the name of a host of the lab; "": it is reported.
func (f field) host(known hosts) (name string) {
	f.value(known.name(&name, f.d))
	return name
}

// open reads the keys of a key, or a word in their place.
func (r *keyReader) open(k params.Key, name string, f field) {
	if f.n != nil && f.n.kind == scalar && len(k.Words) > 0 && examples[f.pattern] == "" || f.n.isOne(k.Words) {
		var word string
		if _, ok := f.value(params.Word(&word, k.Words...)); !ok || word == "off" {
			return
		}
		f.n = nil // its defaults
	}
	inner := f.open()
	if k.As != "" {
		inner.pattern = k.As
	}
	r.inner[name] = inner.read(k.Open())
	inner.close()
}

// isOne says that n is one of some words.
func (n *node) isOne(words []string) bool {
	return n != nil && n.kind == scalar && slices.Contains(words, n.text)
}

// written is what a section has at a path, for keys that depend on what comes after them. A section has no text, and a key without
// a value is true, as it is for the kinds of value that allow it.
func (n *node) written(path string) (text string, ok bool) {
	for _, name := range strings.Split(path, ".") {
		if n = n.at0(name); n == nil {
			return "", false
		}
	}
	if n.null() {
		return "true", true
	}
	return n.text, true
}

// value reads f as a value of its kind.
func (f field) value(v params.Value) (shown string, ok bool) {
	if f.n != nil && f.n.null() && v.Form().Null {
		n := *f.n
		n.text, f.n = "true", &n
	}
	text, ok := f.text(v.Expected())
	if !ok {
		return "", false
	}
	shown, err := v.Set(text, !f.n.plain)
	var unknown *params.Unknown
	switch {
	case errors.As(err, &unknown):
		f.problem("%s", unknown.With(f.d.knownValue(text, unknown.Known)))
	case err != nil:
		f.problem("%v", err)
	default:
		f.record(shown)
	}
	return shown, err == nil
}

// Written implements params.Rules.
func (r *keyReader) Written(key string) bool {
	f, ok := r.of(key)
	return ok && f.written()
}

// Misspelt implements params.Rules.
func (r *keyReader) Misspelt() bool { return len(r.s.unknown()) > 0 }

// Nearest implements params.Rules.
func (r *keyReader) Nearest(word string, candidates []string) string {
	return r.s.d.nearest(word, candidates)
}

// Good implements params.Rules.
func (r *keyReader) Good(keys ...string) bool {
	for _, k := range keys {
		if _, ok := r.shown[k]; !ok {
			return false
		}
	}
	return true
}

// Shown implements params.Rules.
func (r *keyReader) Shown(key string) string { return r.shown[key] }

// Off implements params.Rules.
func (r *keyReader) Off(path string) bool {
	return r.s.d.aside == 0 && path == "queues.ecn" && r.s.d.ecnOff.n != nil
}

// Refuse implements params.Rules.
func (r *keyReader) Refuse(key, format string, args ...any) {
	if f, ok := r.of(key); ok {
		f.problem(format, args...)
	}
}

// Idle implements params.Rules.
func (r *keyReader) Idle(key, because, format string, args ...any) {
	if f, ok := r.of(key); ok {
		f.idle(r.at(because), format, args...)
	}
}

// of is the field of a key of the section, or of a section in it.
func (r *keyReader) of(key string) (field, bool) {
	if key == "" {
		return field{d: r.s.d, path: r.s.path, at: r.s.at, silent: r.s.broken}, true
	}
	if section, rest, nested := strings.Cut(key, "."); nested && r.inner[section] != nil {
		return r.inner[section].of(rest)
	}
	f, ok := r.fields[key]
	return f, ok
}

// at is the field of a key of the section, or that of a section elsewhere.
func (r *keyReader) at(path string) field {
	if path == "queues.ecn" {
		return r.s.d.ecnOff
	}
	return r.fields[path]
}

// objectOf is the schema of a declared section.
func objectOf(s params.Section) *jsonschema.Schema {
	object := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	if s == nil {
		return object
	}
	for _, k := range s.Keys() {
		if k.Refused != "" {
			continue
		}
		key := keySchema(k)
		key.Description = k.About
		object.Properties.Set(k.Name, key)
		if k.Needed() {
			object.Required = append(object.Required, k.Name)
		}
	}
	return object
}

// keySchema is the schema of a key.
func keySchema(k params.Key) *jsonschema.Schema {
	var all []*jsonschema.Schema
	if k.Value != nil {
		all = append(all, schemaOf(k.Value.Form()))
	}
	if len(k.Words) > 0 {
		all = append(all, words(k.Words...))
	}
	if k.Names != nil {
		all = append(all, listOf(anything("string")))
	}
	if k.Items != nil {
		k.Items.Make(1)
		items := listOf(keySchema(k.Items.Item(0)))
		if k.Items.Least > 0 {
			items.MinItems = new(uint64(k.Items.Least))
			items.MaxItems = new(uint64(k.Items.Most))
		}
		all = append(all, items)
	}
	if k.Open != nil {
		all = append(all, objectOf(k.Open()))
	}
	if len(all) == 1 {
		return all[0]
	}
	return oneOf(all...)
}

// schemaOf is the schema of a value.
func schemaOf(f params.Form) *jsonschema.Schema {
	var all []*jsonschema.Schema
	if f.Null {
		return oneOf(&jsonschema.Schema{Const: true}, anything("null"), matching(f.Example, f.Patterns...))
	}
	switch {
	case f.Flag:
		all = append(all, anything("boolean"), words(append([]string{"on", "off", "yes", "no"}, f.Words...)...))
	case len(f.Words) > 0 && len(f.Patterns) == 0:
		all = append(all, words(f.Words...))
	}
	if f.Number != "" {
		number := inRange(f.Number, f.Least, f.Most)
		number.MultipleOf = json.Number(f.Multiple)
		all = append(all, number)
	}
	if len(f.Patterns) > 0 {
		all = append(all, matching(f.Example, append(f.Words, f.Patterns...)...))
	}
	if len(all) == 0 {
		return anything("string")
	}
	if len(all) == 1 {
		return all[0]
	}
	return oneOf(all...)
}
