package lab

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/invopop/jsonschema"

	"weft/fabric/queues"
	"weft/orchestrator/topology"
	"weft/params"
	"weft/transport"
	"weft/units"
)

// Schema returns the JSON Schema (draft 2020-12) of the lab file, indented, for editors to complete and check
// with. It ends in a newline.
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

// reflected is the schema of the format, without its title and defaults.
func reflected() *jsonschema.Schema {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true}
	return r.Reflect(writtenLab{})
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

// matching is a text of one of the patterns given, whole.
func matching(example string, patterns ...string) *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:     "string",
		Pattern:  "^(" + strings.Join(patterns, "|") + ")$",
		Examples: []any{example},
	}
}

// words is one of the words given.
func words(w ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, word := range w {
		s.Enum = append(s.Enum, word)
	}
	return s
}

// schema offers every word of c.
func (c choice) schema() *jsonschema.Schema { return words(c.built...) }

func oneOf(s ...*jsonschema.Schema) *jsonschema.Schema { return &jsonschema.Schema{OneOf: s} }

// anything of a YAML kind.
func anything(kind string) *jsonschema.Schema { return &jsonschema.Schema{Type: kind} }

func inRange(kind, least, most string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: kind, Minimum: json.Number(least), Maximum: json.Number(most)}
}

func listOf(s *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: s}
}

func structure(v any) *jsonschema.Schema {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true}
	s := r.Reflect(v)
	s.Version = ""
	return s
}

// The types of values, each with its schema.
type (
	nameTextType    string
	timeType        string
	offTimeType     string
	startType       string
	rateType        string
	bytesType       string
	chunkType       string
	probabilityType string
	everType        string
	linkNameType    string
	flagType        string
	orderType       string

	offType string

	transportType  string
	topologyType   string
	queuesType     string
	clocksType     string
	backgroundType string
	measureType    string
	engineType     string
	collectiveType string
	algorithmType  string
	elementType    string
	reductionType  string

	ranksType     string
	traceFileType string
	faultsType    string
	sweptType     string
)

func (nameTextType) JSONSchema() *jsonschema.Schema {
	return matching("pc4-incast", params.NamePattern)
}
func (timeType) JSONSchema() *jsonschema.Schema { return matching("10us", units.TimePattern()) }
func (offTimeType) JSONSchema() *jsonschema.Schema {
	return matching("10us", "off", units.TimePattern())
}
func (startType) JSONSchema() *jsonschema.Schema {
	return matching("previous", "previous", units.TimePattern())
}
func (rateType) JSONSchema() *jsonschema.Schema {
	return matching("100Gbps", units.BandwidthPattern())
}
func (bytesType) JSONSchema() *jsonschema.Schema { return matching("50MB", units.BytesPattern()) }
func (chunkType) JSONSchema() *jsonschema.Schema {
	return matching("128KB", "off", units.BytesPattern())
}
func (probabilityType) JSONSchema() *jsonschema.Schema {
	return oneOf(inRange("number", "0", "1"), matching("0.1%", params.Percents))
}

func (flagType) JSONSchema() *jsonschema.Schema {
	return oneOf(anything("boolean"), words("on", "off", "yes", "no"))
}

func (clocksType) JSONSchema() *jsonschema.Schema     { return objectOf(new(Clocks)) }
func (topologyType) JSONSchema() *jsonschema.Schema   { return objectOf(new(topology.Spec)) }
func (queuesType) JSONSchema() *jsonschema.Schema     { return objectOf(new(queues.Queues)) }
func (backgroundType) JSONSchema() *jsonschema.Schema { return objectOf(new(Background)) }
func (measureType) JSONSchema() *jsonschema.Schema    { return objectOf(new(Measure)) }
func (engineType) JSONSchema() *jsonschema.Schema     { return objectOf(new(Engine)) }

// JSONSchema is that of the sections of all transports.
func (transportType) JSONSchema() *jsonschema.Schema {
	object := objectOf(nil)
	kind := transportKinds().schema()
	kind.Description = "Parameters of a transport that no run uses are refused."
	object.Properties.Set("kind", kind)
	for _, name := range transport.Kinds() {
		if section, path, about := transport.Named(name); path == name {
			own := objectOf(section)
			own.Description = about
			object.Properties.Set(name, own)
		}
	}
	return object
}

func (offType) JSONSchema() *jsonschema.Schema { return words("off") }

func (collectiveType) JSONSchema() *jsonschema.Schema { return collectives.schema() }
func (orderType) JSONSchema() *jsonschema.Schema      { return orders.schema() }
func (elementType) JSONSchema() *jsonschema.Schema    { return types.schema() }
func (reductionType) JSONSchema() *jsonschema.Schema  { return reductions.schema() }
func (algorithmType) JSONSchema() *jsonschema.Schema {
	return words(append([]string{"auto"}, algorithmNames()...)...)
}

func (ranksType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("all"), inRange("integer", "1", "65536"), listOf(anything("string")), structure(writtenRandomRanks{}))
}
func (traceFileType) JSONSchema() *jsonschema.Schema { return anything("string") }

// JSONSchemaExtend says that an item is a collective or a trace.
func (writtenItem) JSONSchemaExtend(s *jsonschema.Schema) {
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"collective", "size"}}, {Required: []string{"trace"}}}
}

func (linkNameType) JSONSchema() *jsonschema.Schema {
	return matching("leaf0-spine3", params.LinkPattern)
}
func (everType) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Const: true}, &jsonschema.Schema{Type: "null"}, matching("1ms", units.TimePattern()))
}
func (faultsType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("off"), listOf(structure(writtenFault{})))
}
func (sweptType) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", MinItems: new(uint64(1)), UniqueItems: true}
}
