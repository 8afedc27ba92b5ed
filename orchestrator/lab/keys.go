package lab

import (
	"slices"
	"strings"
	"sync"

	"github.com/invopop/jsonschema"
)

// Key is a key of the format, for completion.
type Key struct {
	Path    string   // with * for an index or a name
	About   string   // what it means
	Values  []string // words that it may be
	Section bool     // it may have keys of its own
}

// Keys lists all keys of the format from its schema, those of outer sections first. The list is
// shared: do not change it.
func Keys() []Key { return keys() }

var keys = sync.OnceValue(func() (all []Key) {
	known := map[string]int{}
	walk(reflected(), "", func(path string, s *jsonschema.Schema, _ bool) {
		i, twice := known[path]
		if !twice {
			i = len(all)
			known[path] = i
			all = append(all, Key{Path: path, About: s.Description})
		}
		k := &all[i]
		k.Values = append(k.Values, wordsOf(s)...)
		k.Section = k.Section || nests(s)
	})
	slices.SortStableFunc(all, func(a, b Key) int { return strings.Count(a.Path, ".") - strings.Count(b.Path, ".") })
	return all
})

// nests reports whether a value may be a section or a list of sections.
func nests(s *jsonschema.Schema) bool {
	return s.Properties != nil || s.Items != nil && nests(s.Items) || slices.ContainsFunc(s.OneOf, nests)
}

// wordsOf returns the words that are valid for a value.
func wordsOf(s *jsonschema.Schema) (words []string) {
	for _, v := range s.Enum {
		if word, ok := v.(string); ok {
			words = append(words, word)
		}
	}
	for _, alternative := range s.OneOf {
		words = append(words, wordsOf(alternative)...)
	}
	if s.Type == "boolean" {
		words = append(words, "true", "false")
	}
	return words
}

// Values returns the words that are valid for the value at a path.
func Values(path string) []string {
	for _, k := range Keys() {
		if matches(k.Path, path) {
			return k.Values
		}
	}
	return nil
}
