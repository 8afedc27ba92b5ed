package lab

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("lab.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("lab.json")
	if err != nil {
		t.Fatalf("the schema is not one: %v", err)
	}
	return s
}

// asJSON reads YAML as the values that a JSON Schema is about.
func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	asText, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asText))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestSchemaAcceptsGoodLabs(t *testing.T) {
	schema := compileSchema(t)
	good := slices.Concat(filesMatching(t, "testdata/good/*.yaml"), filesMatching(t, "../../labs/*.yaml"), filesMatching(t, "../../labs/*/*.yaml"))
	for _, file := range good {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// An editor should underline what Parse refuses, where a schema can know it.
func TestSchemaRefusesBadLabs(t *testing.T) {
	schema := compileSchema(t)
	for _, name := range []string{"unknown-key", "bare-number", "rate-without-unit", "name-leaves-folder", "k-odd",
		"wrong-types", "missing-everything", "unknown-enums", "pc4-out-of-range", "roce", "swift", "hpcc", "faults"} {
		text, err := os.ReadFile(filepath.Join("testdata/bad", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, text)); err == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
	}
}

// The keys of the schema and those that Parse asks for are the same, section by section.
func TestSchemaHasTheKeysOfParse(t *testing.T) {
	asked := make(map[string]map[string]bool)
	keys := func(pattern string, keys []string) {
		if asked[pattern] == nil {
			asked[pattern] = make(map[string]bool)
		}
		for _, k := range keys {
			asked[pattern][k] = true
		}
	}
	for _, file := range append(filesMatching(t, "testdata/good/*.yaml"), filesMatching(t, "testdata/bad/*.yaml")...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = parse(file, text, Options{}, keys)
	}
	var doc map[string]any
	if err := json.Unmarshal(Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"", "topology", "topology.link", "topology.tiers", "topology.tiers.*", "topology.tiers.*.queues", "topology.nodes.*",
		"topology.links.*", "topology.links.*.queues",
		"queues", "queues.ecn", "clocks", "queues.shared", "queues.pfc", "transport", "transport.pc4", "transport.roce", "transport.swift", "transport.hpcc", "faults.*", "workload.*", "workload.*.ranks", "measure", "engine"} {
		want := sorted(asked[pattern])
		got := schemaKeys(doc, pattern)
		if !slices.Equal(got, want) {
			t.Errorf("keys of %q:\nthe schema has %v\nParse asks for %v", pattern, got, want)
		}
	}
}

func sorted(set map[string]bool) []string {
	var keys []string
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// schemaKeys returns the properties at a pattern; a * stands for the items of a list or any
// property.
func schemaKeys(doc map[string]any, pattern string) []string {
	all := []map[string]any{doc}
	for _, name := range splitPattern(pattern) {
		var next []map[string]any
		for _, s := range all {
			if items, ok := s["items"].(map[string]any); ok && name == "*" {
				next = append(next, items)
			}
			properties, _ := s["properties"].(map[string]any)
			for key, p := range properties {
				if key == name || name == "*" {
					next = append(next, p.(map[string]any))
				}
			}
		}
		all = next
		for _, s := range next {
			alternatives, _ := s["oneOf"].([]any)
			for _, a := range alternatives {
				all = append(all, a.(map[string]any))
			}
		}
	}
	keys := make(map[string]bool)
	for _, s := range all {
		properties, _ := s["properties"].(map[string]any)
		for k := range properties {
			keys[k] = true
		}
	}
	return sorted(keys)
}

func splitPattern(pattern string) []string {
	if pattern == "" {
		return nil
	}
	path, _ := splitPath(pattern)
	return path
}
