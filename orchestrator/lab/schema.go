package lab

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"
)

// Schema returns the JSON Schema (draft 2020-12) of the lab file, indented and with a final
// newline. Editors complete and check with it.
func Schema() []byte {
	s := reflected()
	s.Title = "Weft lab"
	s.Description = "One file is one lab: a network, a transport, a workload, and what is expected of them."
	addDefaults(s, "")
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("lab: the schema cannot be written: %v", err)) // plain data of this package
	}
	return append(text, '\n')
}

// reflected returns the schema of the format, without its title and defaults.
func reflected() *jsonschema.Schema {
	s := objectOf(new(file))
	s.Version = jsonschema.Version
	s.Required = []string{"weft", "name", "topology"}
	of := func(key string) *jsonschema.Schema { return s.Properties.Value(key) }
	of("weft").Enum = []any{1}
	of("weft").Minimum, of("weft").Maximum = "", ""
	of("workload").Items.AnyOf = []*jsonschema.Schema{
		{Required: []string{"collective", "size"}},
		{Required: []string{"trace"}},
		{Required: []string{"flows"}},
		{Required: []string{"program"}},
	}
	of("sweep").AdditionalProperties = &jsonschema.Schema{Type: "array", MinItems: new(uint64(1)), UniqueItems: true}
	of("sweep").Properties = nil
	return s
}

// walk visits every key in the order of the schema, a section before its keys.
func walk(s *jsonschema.Schema, path string, visit func(path string, p *jsonschema.Schema, required bool)) {
	if s.Items != nil {
		walk(s.Items, join(path, "*"), visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Properties != nil {
		walk(s.AdditionalProperties, join(path, "*"), visit)
	}
	for _, alternative := range s.OneOf {
		walk(alternative, path, visit)
	}
	if s.Properties == nil {
		return
	}
	needed := map[string]bool{}
	for _, name := range s.Required {
		needed[name] = true
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		at := join(path, p.Key)
		visit(at, p.Value, needed[p.Key])
		walk(p.Value, at, visit)
	}
}

// matches reports whether path matches a pattern, in which * stands for any part.
func matches(pattern, path string) bool {
	a, b := strings.Split(pattern, "."), strings.Split(path, ".")
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != "*" && a[i] != b[i] {
			return false
		}
	}
	return true
}

// addDefaults gives every key under pattern the default of the table.
func addDefaults(s *jsonschema.Schema, pattern string) {
	if s.Items != nil {
		addDefaults(s.Items, join(pattern, "*"))
	}
	for _, alternative := range s.OneOf {
		addDefaults(alternative, pattern)
	}
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		path := join(pattern, p.Key)
		if d, ok := defaults[path]; ok {
			p.Value.Default = (&node{text: d.text, plain: true}).value()
		}
		addDefaults(p.Value, path)
	}
}

// matching is a text that one of the patterns matches as a whole.
func matching(example string, patterns ...string) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:     "string",
		Pattern:  "^(" + strings.Join(patterns, "|") + ")$",
		Examples: []any{example},
	}
}

// words is one of the given words.
func words(w ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, word := range w {
		s.Enum = append(s.Enum, word)
	}
	return s
}

func oneOf(s ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{OneOf: s} }

// anything is any value of a JSON type.
func anything(kind string) *jsonschema.Schema { return &jsonschema.Schema{Type: kind} }

func inRange(kind, least, most string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: kind, Minimum: json.Number(least), Maximum: json.Number(most)}
}

func listOf(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: s}
}
