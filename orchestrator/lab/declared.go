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

// tableOf returns the defaults of a section that do not depend on other values, by the path of the
// key. A * stands for any index.
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

// keyReader reads a declared section, or the items of a list in it. A lab may have thousands of
// both, so the keys that were read are one slice of exactly the size that is needed, and no maps.
type keyReader struct {
	s     *section
	keys  []readKey // in the order in which they were read
	items bool      // the keys are items, each at its index
}

// readKey is a key, or an item of a list, that was read.
type readKey struct {
	name  string // "": an item
	field field
	shown string     // the value as it would be written
	good  bool       // there is a value, and it is valid
	inner *keyReader // of the section or list below the key; nil: there is none
}

// key returns what was read of a key or, by its index, of an item; nil if nothing was.
func (r *keyReader) key(name string) *readKey {
	if r.items {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(r.keys) {
			return &r.keys[i]
		}
		return nil
	}
	for i := range r.keys {
		if r.keys[i].name == name {
			return &r.keys[i]
		}
	}
	return nil
}

// field returns the field of a key; one without a node if the key was not read.
func (r *keyReader) field(name string) field {
	if k := r.key(name); k != nil {
		return k.field
	}
	return field{}
}

// inner returns the reader of the section or list below a key, nil if there is none.
func (r *keyReader) inner(name string) *keyReader {
	if k := r.key(name); k != nil {
		return k.inner
	}
	return nil
}

// all reads a section that is declared as a whole, and reports keys that it does not have.
func (s *section) all(to params.Section) {
	s.read(to)
	s.close()
}

// read reads the keys of a section into the fields that they are bound to, and applies its rules.
// With only, it reads just those keys and applies no rules: they were applied before.
func (s *section) read(to params.Section, only ...string) *keyReader {
	if f, ok := to.(params.Reading); ok {
		f.ReadWith(s.d.file)
	}
	if f, ok := to.(params.Prescanner); ok {
		f.Prescan(s.n.written)
	}
	if f, ok := to.(params.Naming); ok {
		f.ReadNames(s.n.names())
	}
	keys := to.Keys()
	r := &keyReader{s: s, keys: make([]readKey, 0, len(keys))}
	slices.SortStableFunc(keys, func(a, b params.Key) int { return last(a) - last(b) })
	for _, k := range keys {
		if len(only) == 0 || slices.Contains(only, k.Name) {
			r.read(k)
		}
	}
	if ruled, ok := to.(params.Ruled); ok && len(only) == 0 {
		ruled.Rules(r)
	}
	return r
}

// last orders keys: 0 for those that are read first, 1 for the others.
func last(k params.Key) int {
	if k.First {
		return 0
	}
	return 1
}

// read reads a key of the section.
func (r *keyReader) read(k params.Key) {
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

// take reads the value, list or section of a key or an item; an item has no name. It is called
// again for a key that is read once more of the lab is known.
func (r *keyReader) take(k params.Key, name string, f field) {
	to := r.key(name)
	if r.items || to == nil {
		r.keys = append(r.keys, readKey{})
		to = &r.keys[len(r.keys)-1]
	}
	*to = readKey{name: name, field: f}
	if k.When != nil {
		if applies, why := k.When(); !applies {
			if f.written() && why != "" && (k.Moot == "" || f.n.text != k.Moot) && !r.s.d.kinds[k.Of] {
				f.problem("%s", why)
				f.silent = true
			}
			to.field = f
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
			to.field = f
			return
		}
	}
	switch {
	case k.Items != nil && (f.n != nil && f.n.kind == list ||
		k.Value == nil && (k.Open == nil || f.n == nil || f.n.kind != mapping)):
		to.inner = r.list(k, f)
		return
	case k.Open != nil && (k.Value == nil || f.n != nil && f.n.kind == mapping):
		if text, source := k.Standard(); f.n == nil && text != "" {
			f = f.or(text, source)
			to.field = f
		}
		if f.n != nil || !k.Optional {
			to.inner = r.open(k, f)
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
	to.field = f
	if k.Names != nil && f.n != nil && f.n.kind == list {
		*k.Names = f.hosts(r.s.d.hosts)
		return
	}
	if shown, ok := f.value(k.Value); ok {
		to.shown, to.good = shown, true
	}
}

// list reads the items of a list. It returns nil if there are none to read.
func (r *keyReader) list(k params.Key, f field) *keyReader {
	all := k.Items
	if f.n == nil {
		if all.Expected != "" && !k.Optional {
			f.problem(missing+"expected %s", all.Expected)
		}
		return nil
	}
	if all.Expected != "" && f.n.kind == list &&
		(len(f.n.items) < all.Least || all.Least > 0 && len(f.n.items) > all.Most) {
		f.problem("expected %s", all.Expected)
		return nil
	}
	if f.n.isOne(k.Words) {
		return nil
	}
	items := f.items(all.Most)
	if f.n.kind != list {
		return nil
	}
	inner := &keyReader{s: r.s, keys: make([]readKey, 0, len(items)), items: true}
	all.Make(len(items))
	if all.Whole {
		r.s.d.aside++
	}
	for i, item := range items {
		inner.take(all.Item(i), "", item)
	}
	if all.Whole {
		r.s.d.aside--
		shown := make([]string, len(items))
		for i := range items {
			shown[i] = inner.keys[i].shown
		}
		f.record("[" + strings.Join(shown, ", ") + "]")
	}
	return inner
}

// maxNames is the maximum number of hosts that a key names.
const maxNames = 1 << 14

// hosts reads a list of host names and reports those that appear twice.
func (f field) hosts(known hosts) (names []string) {
	for _, item := range f.items(maxNames) {
		name := item.host(known)
		if name != "" && slices.Contains(names, name) {
			item.problem("%s is listed twice", name)
		}
		names = append(names, name)
	}
	return names
}

// host reads the name of a host of the lab. It returns "" if it reported a problem.
func (f field) host(known hosts) (name string) {
	f.value(known.name(&name, f.d))
	return name
}

// open reads the section below a key, or a word in its place. It returns nil if there is no
// section.
func (r *keyReader) open(k params.Key, f field) *keyReader {
	if f.n != nil && f.n.kind == scalar && len(k.Words) > 0 && examples[f.pattern] == "" || f.n.isOne(k.Words) {
		var word string
		if _, ok := f.value(params.Word(&word, k.Words...)); !ok || word == "off" {
			return nil
		}
		f.n = nil // its defaults
	}
	inner := f.open()
	if k.As != "" {
		inner.pattern = k.As
	}
	keys := inner.read(k.Open())
	inner.close()
	return keys
}

// isOne reports whether n is one of some words.
func (n *node) isOne(words []string) bool {
	return n != nil && n.kind == scalar && slices.Contains(words, n.text)
}

// names returns the names of the keys of a mapping.
func (n *node) names() (names []string) {
	for i := 0; n != nil && i < len(n.keys); i++ {
		names = append(names, n.keys[i].name)
	}
	return names
}

// written returns the text at a path of a section, for sections whose keys depend on it. The text
// of a section is "". A key without a value counts as true, as it does for the kinds of value that
// allow it.
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

// value reads f as a value of its kind, and returns it as it would be written.
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
		if read := r.key(k); read == nil || !read.good {
			return false
		}
	}
	return true
}

// Shown implements params.Rules.
func (r *keyReader) Shown(key string) string {
	if k := r.key(key); k != nil {
		return k.shown
	}
	return ""
}

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

// of returns the field of a key of the section, or of one further down: a path such as
// nodes.3.name.
func (r *keyReader) of(key string) (field, bool) {
	if key == "" {
		return field{d: r.s.d, path: r.s.path, at: r.s.at, silent: r.s.broken}, true
	}
	if section, rest, nested := strings.Cut(key, "."); nested {
		if inner := r.inner(section); inner != nil {
			return inner.of(rest)
		}
	}
	k := r.key(key)
	if k == nil {
		return field{}, false
	}
	return k.field, true
}

// at returns the field of a key of the section, or of queues.ecn, which is elsewhere.
func (r *keyReader) at(path string) field {
	if path == "queues.ecn" {
		return r.s.d.ecnOff
	}
	return r.field(path)
}

// objectOf returns the schema of a declared section.
func objectOf(s params.Section) *jsonschema.Schema {
	object := &jsonschema.Schema{
		Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema,
	}
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

// keySchema returns the schema of a key.
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
	switch {
	case k.Free:
		all = append(all, anything("object"))
	case k.Open != nil:
		all = append(all, objectOf(k.Open()))
	}
	if len(all) == 1 {
		return all[0]
	}
	return oneOf(all...)
}

// schemaOf returns the schema of a value.
func schemaOf(f params.Form) *jsonschema.Schema {
	var all []*jsonschema.Schema
	if f.Null {
		return oneOf(&jsonschema.Schema{Const: true}, anything("null"), matching(f.Example, f.Patterns...))
	}
	switch {
	case f.Scalar:
		return &jsonschema.Schema{Extras: map[string]any{"type": []string{"string", "number", "boolean"}}}
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
