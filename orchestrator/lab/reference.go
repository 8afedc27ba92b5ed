package lab

import (
	"fmt"
	"sort"
	"strings"

	"github.com/invopop/jsonschema"

	"weft/results/expect"
)

// Reference returns the reference of the lab file as Markdown: every key with its type, default, source and meaning, from the
// schema and the table of defaults.
func Reference() []byte {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true}
	s := r.Reflect(writtenLab{})
	var b strings.Builder
	b.WriteString("# The lab file: reference\n\n" +
		"Made from the schema (`make reference`); do not edit. `weft schema` prints the schema for editors, and `weft explain LAB` a lab with every\n" +
		"value and where it came from. In a path, `*` stands for any index or name. A quantity always has its unit: `100Gbps`, `1us`, `4KiB`, `25%bdp`, `20ppm`.\n")
	section := ""
	walk(s, "", func(path string, p *jsonschema.Schema, required bool) {
		top, _, nested := strings.Cut(path, ".")
		if top != section {
			section = top
			fmt.Fprintf(&b, "\n## %s\n\n", top)
			if p.Description != "" && !nested && p.Properties != nil {
				fmt.Fprintf(&b, "%s\n\n", p.Description)
			}
			b.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", path, kindOf(p), defaultOf(path, required), inCell(p.Description))
	})
	b.WriteString("\n## Names in expectations\n\n" +
		"What `expect` can ask of a run, beside the lab's own settings by their path. `N` is a number from 0. What they mean is in\n" +
		"[results.md](results.md), [clocks.md](clocks.md) and [ccm.md](ccm.md).\n\n| name | is |\n|---|---|\n")
	for _, name := range expect.Names() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, expect.Kind(name))
	}
	return []byte(b.String())
}

// walk visits every key, sections before what is in them, in the order of the schema.
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

// kindOf says in a few words what a value may be.
func kindOf(s *jsonschema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		var words []string
		for _, v := range s.Enum {
			words = append(words, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(words, ", ")
	case len(s.OneOf) > 0:
		var kinds []string
		for _, alternative := range s.OneOf {
			if k := kindOf(alternative); len(kinds) == 0 || kinds[len(kinds)-1] != k {
				kinds = append(kinds, k)
			}
		}
		return strings.Join(kinds, ", or ")
	case len(s.Examples) > 0:
		return fmt.Sprintf("such as `%v`", s.Examples[0])
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case s.Type == "object":
		return "a section"
	case s.Type == "array" && s.Items != nil:
		return "a list: " + kindOf(s.Items)
	case s.Type == "":
		return "a value"
	}
	return map[string]string{"integer": "a whole number", "number": "a number", "boolean": "`true`, `false`", "string": "text"}[s.Type]
}

// defaultOf is a key's default with its source.
func defaultOf(path string, required bool) string {
	if d, ok := defaults[path]; ok {
		return fmt.Sprintf("`%s` (%s)", d.text, inCell(d.source))
	}
	for _, pattern := range sortedDefaults() {
		if strings.Contains(pattern, "*") && matches(pattern, path) {
			return fmt.Sprintf("`%s` (%s)", defaults[pattern].text, inCell(defaults[pattern].source))
		}
	}
	if required {
		return "required"
	}
	return ""
}

func sortedDefaults() []string {
	out := make([]string, 0, len(defaults))
	for path := range defaults {
		out = append(out, path)
	}
	sort.Strings(out)
	return out
}

// matches compares a path with one in which * stands for any part.
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

// inCell is text as a cell of a table has it.
func inCell(s string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s) }
