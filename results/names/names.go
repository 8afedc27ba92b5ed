// Package names says in a few words what tells a run from those beside it, for titles and legends:
// "pc4, ranks 16".
//
// Input: paths and values of settings, as records have them. Output: text. The package is pure.
// Start reading at Point.
package names

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weft/results/record"
	"weft/units"
)

// Transport returns the name of a transport with that of its congestion control, if that is
// another: roce (DCQCN).
func Transport(kind, control string) string {
	if control == "" {
		return kind
	}
	return kind + " (" + control + ")"
}

// Point names a run by its point of a sweep, with the seed last; empty outside a sweep.
func Point(m *record.Manifest) string {
	at := make(map[string]string, len(m.Point))
	for path, v := range m.Point {
		at[path] = fmt.Sprint(v)
		if f, is := v.(float64); is {
			at[path] = strconv.FormatFloat(f, 'f', -1, 64) // not 1e+06
		}
	}
	paths := slices.Sorted(maps.Keys(at))
	if i := slices.Index(paths, "seed"); i >= 0 {
		paths = append(slices.Delete(paths, i, i+1), "seed")
	}
	if kind, swept := at["transport.kind"]; swept {
		at["transport.kind"] = Transport(kind, m.Control)
	}
	return Label(at, paths)
}

// Label names a run by its values at the paths of by: "pc4, adjust interval 2rtt". It leaves out
// parameters of a transport that the run does not use.
func Label(at map[string]string, by []string) string {
	var parts []string
	for _, path := range by {
		v, ok := at[path]
		if !ok || foreignParameter(at, path) {
			continue
		}
		name := Last(path)
		_, notList := strconv.Atoi(name)
		if v = Value(v); name != "kind" && name != "lab" && notList != nil {
			v = name + " " + v
		}
		parts = append(parts, v)
	}
	return strings.Join(parts, ", ")
}

// foreignParameter reports whether path is a parameter of a transport that the run does not use.
func foreignParameter(at map[string]string, path string) bool {
	kind, swept := at["transport.kind"]
	kind, _, _ = strings.Cut(kind, " ")
	p := strings.Split(path, ".")
	return swept && len(p) > 2 && p[0] == "transport" && p[1] != kind
}

// Last returns the last element of a path as words: adjust interval.
func Last(path string) string {
	return strings.ReplaceAll(path[strings.LastIndex(path, ".")+1:], "_", " ")
}

// Value writes a value of a lab file for people: "all-gather, algorithm ring, size 1 MB" for
// {collective: all-gather, algorithm: ring, size: 1MB}.
func Value(v string) string {
	if len(v) < 2 || !isList(v) {
		return units.Spaced(v)
	}
	var parts []string
	for _, part := range split(v[1 : len(v)-1]) {
		key, value, pair := strings.Cut(part, ": ")
		switch {
		case !pair || isList(part):
			key, value = "", part
		case key == "kind" || key == "collective":
			key = ""
		}
		text := Value(strings.Trim(value, `"'`))
		if isList(value) {
			text = "(" + text + ")"
		}
		parts = append(parts, strings.TrimSpace(strings.ReplaceAll(key, "_", " ")+" "+text))
	}
	return strings.Join(parts, ", ")
}

// isList reports whether a value begins as a list or a section.
func isList(v string) bool { return v != "" && strings.ContainsRune("{[", rune(v[0])) }

// split splits a list at the commas outside of braces and brackets.
func split(list string) (parts []string) {
	depth, from := 0, 0
	for i, c := range list {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(list[from:i]))
				from = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(list[from:]))
}
