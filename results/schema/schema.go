// Package schema describes the JSON files of a run as JSON Schema (draft 2020-12), for programs
// that read them. It derives them from the types of package record. It is pure.
package schema

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"weft/results/record"
	"weft/results/store"
)

// Summary returns the JSON Schema of summary.json, indented, with a final newline. `weft run
// --json` prints the same format.
func Summary() []byte {
	return describe(record.Summary{}, "Weft summary", "What a run came down to. Times and rates are in lab units; "+
		"names end in their unit.", ended()...)
}

// Manifest returns the JSON Schema of manifest.json.
func Manifest() []byte {
	return describe(record.Manifest{}, "Weft manifest", "What was run, where and by which program.",
		append([]any{record.Running}, ended()...)...)
}

// ended returns the statuses of a run that ended.
func ended() []any {
	return []any{record.OK, record.Unverified, record.Unfinished, record.Failed, record.Interrupted}
}

func describe(v any, title, about string, statuses ...any) []byte {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true,
		AllowAdditionalProperties: true}
	s := r.Reflect(v)
	s.Title, s.Description = title, about
	if p, ok := s.Properties.Get("format"); ok {
		p.Const = store.Format
	}
	if p, ok := s.Properties.Get("status"); ok {
		p.Enum = statuses
	}
	addUnits(s)
	for _, name := range []string{"verified", "base_rtt_us", "rtt_us", "flows", "network", "clocks", "expect"} {
		if p, ok := s.Properties.Get(name); ok {
			mayLack(p)
		}
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("schema: it cannot be written: %v", err)) // cannot happen: plain data of this module
	}
	return append(text, '\n')
}

// mayLack lets the numbers and truths in s be null: without a value (record.Summary.Unmeasured).
func mayLack(s *jsonschema.Schema) {
	switch s.Type {
	case "number", "integer", "boolean":
		s.OneOf, s.Type = []*jsonschema.Schema{{Type: s.Type}, {Type: "null"}}, ""
		return
	}
	for _, one := range s.OneOf {
		if one.Items != nil && one.Items.Properties != nil {
			if got, ok := one.Items.Properties.Get("got"); ok {
				mayLack(got)
			}
		}
	}
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if p.Value.Type != "array" {
			mayLack(p.Value)
		}
	}
}

// addUnits adds the unit to the description of every number whose name ends in one.
func addUnits(s *jsonschema.Schema) {
	if s.Items != nil {
		addUnits(s.Items)
	}
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		for _, u := range [][2]string{
			{"_us", "microseconds of lab time"}, {"_ns", "nanoseconds of lab time"},
			{"_gbps", "Gb/s: 10^9 bits per second"},
			{"_bytes", "bytes"}, {"_ticks", "clock ticks"},
			{"cpu_s", "seconds of processor time"}, {"_s", "seconds of wall time"},
		} {
			if strings.HasSuffix(p.Key, u[0]) {
				p.Value.Description = u[1]
				break
			}
		}
		if p.Value.Type == "array" && p.Value.Items != nil {
			p.Value.Type = "" // an empty list may be null
			p.Value.OneOf = []*jsonschema.Schema{{Type: "array", Items: p.Value.Items}, {Type: "null"}}
			addUnits(p.Value.Items)
			p.Value.Items = nil
			continue
		}
		addUnits(p.Value)
	}
}
