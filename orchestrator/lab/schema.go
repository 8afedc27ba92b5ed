package lab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"weft/units"
)

// Schema returns the JSON Schema (draft 2020-12) of the lab file, indented, for editors to complete and check
// with. It describes the whole format; what it accepts may still be not yet supported. It ends in a newline.
func Schema() []byte {
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, ExpandedStruct: true}
	s := r.Reflect(writtenLab{})
	s.Title = "Weft lab"
	s.Description = "One file is one lab: a network, a transport, a workload, and what is expected of them."
	addDefaults(s, "")
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("lab: the schema cannot be written: %v", err)) // plain data of this package
	}
	return append(text, '\n')
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

// schema offers every word of c, the later ones too: editors need not know what is built.
func (c choice) schema() *jsonschema.Schema { return words(slices.Concat(c.built, c.later)...) }

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

const (
	plainNumber  = `[0-9]+(\.[0-9]+)?`
	percentText  = plainNumber + `%`
	fractionText = plainNumber + `/` + plainNumber
	bdpText      = plainNumber + `%?bdp`
)

// The types of values, each with its schema.
type (
	nameTextType    string
	timeType        string
	offTimeType     string
	qtimeType       string
	startType       string
	rateType        string
	bytesType       string
	chunkType       string
	initialType     string
	sizeType        string
	autoSizeType    string
	autoTimeType    string
	autoBytesType   string
	autoPairsType   string
	bdpBytesType    string
	lineRateType    string
	offLineRateType string
	gainType        string
	alphaType       string
	probabilityType string
	offPortType     string
	everType        string
	linkNameType    string
	mtuType         string
	percentType     string
	shareType       string
	offShareType    string
	roundTripsType  string
	flagType        string
	orderType       string

	clockTimeType string
	clockSkewType string

	clockNoiseType  string
	oscillatorType  string
	priorityType    string
	mechanismType   string
	transparentType string
	boundaryType    string
	offType         string
	filterType      string
	servoType       string

	topologyKindType  string
	routingType       string
	markType          string
	syncType          string
	transportKindType string
	baseRateType      string
	presetType        string
	dcqcnModeType     string
	innerType         string
	clampType         string
	splitType         string
	recoveryType      string
	routesType        string
	repathType        string
	roundTripType     string
	collectiveType    string
	algorithmType     string
	elementType       string
	reductionType     string
	engineKindType    string
	runtimeType       string
	datapathType      string

	dilationType  string
	ranksType     string
	traceFileType string
	downType      string
	leavesType    string
	ecnType       string
	pfcType       string
	sharedType    string
	faultsType    string
	sweptType     string
)

func (nameTextType) JSONSchema() *jsonschema.Schema {
	return matching("pc4-incast", strings.Trim(nameText.String(), "^$"))
}
func (timeType) JSONSchema() *jsonschema.Schema { return matching("10us", units.TimePattern()) }
func (offTimeType) JSONSchema() *jsonschema.Schema {
	return matching("10us", "off", units.TimePattern())
}
func (qtimeType) JSONSchema() *jsonschema.Schema {
	return matching("2us", "scaled", units.TimePattern())
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
func (repathType) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
		{Type: "string", Enum: []any{"off"}}, {Type: "integer", Minimum: "1", Maximum: "1000"},
	}}
}
func (initialType) JSONSchema() *jsonschema.Schema {
	return matching("base-rate", "base-rate", "line", units.BytesPattern())
}
func (sizeType) JSONSchema() *jsonschema.Schema {
	return matching("25%bdp", bdpText, units.BytesPattern()+"("+perRate()+")?")
}
func (autoSizeType) JSONSchema() *jsonschema.Schema {
	return matching("auto", "auto", bdpText, units.BytesPattern()+"("+perRate()+")?")
}
func (autoTimeType) JSONSchema() *jsonschema.Schema {
	return matching("auto", "auto", units.TimePattern())
}
func (autoBytesType) JSONSchema() *jsonschema.Schema {
	return matching("auto", "auto", units.BytesPattern())
}
func (autoPairsType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("auto"), inRange("integer", "1", "65536"))
}
func (bdpBytesType) JSONSchema() *jsonschema.Schema {
	return matching("bdp", "bdp", units.BytesPattern())
}
func (lineRateType) JSONSchema() *jsonschema.Schema {
	return matching("5Mbps/25Gbps", units.BandwidthPattern()+"("+perRate()+")?")
}
func (offLineRateType) JSONSchema() *jsonschema.Schema {
	return matching("off", "off", units.BandwidthPattern()+"("+perRate()+")?")
}
func (gainType) JSONSchema() *jsonschema.Schema {
	return oneOf(inRange("number", "0", "1"), matching("1/256", percentText, fractionText))
}
func (alphaType) JSONSchema() *jsonschema.Schema {
	return oneOf(inRange("number", "0", fmt.Sprint(maxAlpha)), matching("1/8", percentText, fractionText))
}
func (probabilityType) JSONSchema() *jsonschema.Schema {
	return oneOf(inRange("number", "0", "1"), matching("0.1%", percentText))
}

// perRate is the second part of a quantity that is in proportion to a rate.
func perRate() string { return "/" + units.BandwidthPattern() }

func (mtuType) JSONSchema() *jsonschema.Schema {
	return oneOf(inRange("integer", "64", "9000"), bytesType("").JSONSchema())
}
func (percentType) JSONSchema() *jsonschema.Schema { return matching("0.5%", percentText) }
func (shareType) JSONSchema() *jsonschema.Schema {
	return oneOf(inRange("number", "0", "1"), matching("50%", percentText))
}
func (offShareType) JSONSchema() *jsonschema.Schema {
	return oneOf(inRange("number", "0", "1"), matching("50%", "off", percentText))
}
func (roundTripsType) JSONSchema() *jsonschema.Schema {
	return matching("1.25rtt", "off", plainNumber+"rtt")
}
func (flagType) JSONSchema() *jsonschema.Schema {
	return oneOf(anything("boolean"), words("on", "off", "yes", "no"))
}

func (transparentType) JSONSchema() *jsonschema.Schema {
	return oneOf(anything("boolean"), words("on", "off", "yes", "no", "peer"))
}

func (clockTimeType) JSONSchema() *jsonschema.Schema {
	return matching("±1ms", "off", `±?`+units.TimePattern())
}
func (clockNoiseType) JSONSchema() *jsonschema.Schema {
	return matching("uniform ±100ns", "off", `((uniform|normal|exponential) )?±?`+units.TimePattern())
}
func (offType) JSONSchema() *jsonschema.Schema        { return words("off") }
func (mechanismType) JSONSchema() *jsonschema.Schema  { return delayMechanisms.schema() }
func (filterType) JSONSchema() *jsonschema.Schema     { return delayFilters.schema() }
func (servoType) JSONSchema() *jsonschema.Schema      { return servos.schema() }
func (oscillatorType) JSONSchema() *jsonschema.Schema { return oscillators().schema() }
func (priorityType) JSONSchema() *jsonschema.Schema   { return priorities.schema() }
func (clockSkewType) JSONSchema() *jsonschema.Schema {
	return matching("±20ppm", "off", `±?`+plainNumber+`(ppm|ppb)(/(√s|sqrt\(s\)))?`)
}

func (topologyKindType) JSONSchema() *jsonschema.Schema  { return topologyKinds.schema() }
func (routingType) JSONSchema() *jsonschema.Schema       { return routings.schema() }
func (markType) JSONSchema() *jsonschema.Schema          { return markings.schema() }
func (syncType) JSONSchema() *jsonschema.Schema          { return syncKinds.schema() }
func (transportKindType) JSONSchema() *jsonschema.Schema { return transportKinds().schema() }
func (baseRateType) JSONSchema() *jsonschema.Schema      { return baseRates.schema() }
func (presetType) JSONSchema() *jsonschema.Schema        { return presetNames().schema() }
func (innerType) JSONSchema() *jsonschema.Schema         { return inners.schema() }
func (dcqcnModeType) JSONSchema() *jsonschema.Schema     { return dcqcnModes.schema() }
func (clampType) JSONSchema() *jsonschema.Schema         { return clamps.schema() }
func (splitType) JSONSchema() *jsonschema.Schema         { return splits.schema() }
func (routesType) JSONSchema() *jsonschema.Schema        { return routeKinds.schema() }
func (recoveryType) JSONSchema() *jsonschema.Schema      { return recoveries.schema() }
func (roundTripType) JSONSchema() *jsonschema.Schema     { return roundTrips.schema() }
func (collectiveType) JSONSchema() *jsonschema.Schema    { return collectives.schema() }
func (orderType) JSONSchema() *jsonschema.Schema         { return orders.schema() }
func (elementType) JSONSchema() *jsonschema.Schema       { return types.schema() }
func (reductionType) JSONSchema() *jsonschema.Schema     { return reductions.schema() }
func (engineKindType) JSONSchema() *jsonschema.Schema    { return engineKinds.schema() }
func (runtimeType) JSONSchema() *jsonschema.Schema       { return runtimes.schema() }
func (datapathType) JSONSchema() *jsonschema.Schema      { return datapaths.schema() }
func (algorithmType) JSONSchema() *jsonschema.Schema {
	return words(append([]string{"auto"}, algorithmNames()...)...)
}

func (dilationType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("auto"), inRange("number", "1", "1e9"))
}
func (ranksType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("all"), inRange("integer", "1", "65536"), listOf(anything("string")), structure(writtenRandomRanks{}))
}
func (boundaryType) JSONSchema() *jsonschema.Schema {
	return oneOf(boundaries.schema(), listOf(anything("string")))
}
func (traceFileType) JSONSchema() *jsonschema.Schema { return anything("string") }

// JSONSchemaExtend says that an item is a collective or a trace.
func (writtenItem) JSONSchemaExtend(s *jsonschema.Schema) {
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"collective", "size"}}, {Required: []string{"trace"}}}
}

func (downType) JSONSchema() *jsonschema.Schema {
	return oneOf(listOf(linkNameType("").JSONSchema()), structure(writtenRandomLinks{}))
}
func (leavesType) JSONSchema() *jsonschema.Schema {
	return matching("16 leaves", strings.Trim(leavesText.String(), "^$"))
}
func (linkNameType) JSONSchema() *jsonschema.Schema {
	return matching("leaf0-spine3", strings.Trim(linkText.String(), "^$"))
}
func (offPortType) JSONSchema() *jsonschema.Schema {
	return matching("switch0->h0", "off", strings.Trim(portText.String(), "^$"))
}
func (everType) JSONSchema() *jsonschema.Schema {
	return oneOf(&jsonschema.Schema{Const: true}, &jsonschema.Schema{Type: "null"}, matching("1ms", units.TimePattern()))
}
func (ecnType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("on", "off"), structure(writtenECN{}))
}
func (pfcType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("on", "off"), structure(writtenPFC{}))
}
func (sharedType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("off"), structure(writtenShared{}))
}
func (faultsType) JSONSchema() *jsonschema.Schema {
	return oneOf(words("off"), listOf(structure(writtenFault{})))
}
func (sweptType) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", MinItems: new(uint64(1)), UniqueItems: true}
}
