package lab

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/invopop/jsonschema"

	"weft/params"
	"weft/results/expect"
	"weft/units"
)

// Reference returns the reference of the lab file as Markdown: every key with its type, default,
// source and meaning. It takes them from the schema and from labs that leave everything at its
// default.
func Reference() []byte {
	root := reflected()
	p := page{defaults: allDefaults(), notes: map[string]string{}}
	p.find(root)
	p.section("", root)
	var b strings.Builder
	b.WriteString("# The lab file: reference\n\n" +
		"Every key of a lab. `weft explain LAB` shows a lab with all its values and where each is from.\n" +
		"`make reference` writes this page from the code.\n\n")
	p.index(&b)
	b.WriteString("\n" + typesText)
	for _, h := range p.headings {
		level := "##"
		if h.nested() {
			level = "###"
		}
		fmt.Fprintf(&b, "\n%s %s\n\n%s", level, h.path, h.text)
	}
	b.WriteString("\n")
	for _, note := range slices.Sorted(maps.Keys(p.notes)) {
		fmt.Fprintf(&b, "[^%s]: %s\n", note, p.notes[note])
	}
	return []byte(b.String())
}

// topTitle is the heading of the keys that are in no section.
const topTitle = "The file"

// typesText explains the words of the column type.
const typesText = `## Types

A quantity has its unit. A default without a footnote is Weft's own; ` + "`weft explain`" + ` says why.

|type|such as|
|---|---|
|time|` + "`10us`" + `; ps, ns, us, ms, s|
|rate|` + "`100Gbps`; `5Mbps/25Gbps`" + ` where it may follow the line rate|
|bytes|` + "`64KB`, `4KiB`" + `|
|size|bytes; ` + "`5bdp`, `25%bdp`" + `: bandwidth-delay products of the link; ` + "`16MB/50Gbps`" + `: by its rate|
|share|` + "`0.5`, `50%`, `1/256`" + `|
|flag|` + "`true`, `false`" + `|
`

// page is the reference while it is written.
type page struct {
	headings []heading
	sections []part            // all sections, those nearest to the top first
	defaults map[string]value  // by the path of the key
	notes    map[string]string // the source of each footnote, by its name
}

// heading is a section of the page.
type heading struct{ path, text string }

func (h heading) nested() bool { return strings.Contains(h.path, ".") }

// part is a section of the file. The page describes equal sections once, at the first path.
type part struct {
	path string
	keys map[string]string // fingerprint of each key's schema
}

// find lists all sections, those nearest to the top first, so that equal sections further down
// refer to them.
func (p *page) find(root *jsonschema.Schema) {
	type found struct {
		path   string
		schema *jsonschema.Schema
	}
	for level := []found{{"", root}}; len(level) > 0; {
		var next []found
		for _, at := range level {
			for k := at.schema.Properties.Oldest(); k != nil; k = k.Next() {
				for _, o := range objects(k.Value) {
					if path := inside(at.path, k.Key); p.alike(o) == nil {
						p.sections = append(p.sections, part{path, fingerprints(o)})
						next = append(next, found{path, o})
					}
				}
			}
		}
		level = next
	}
}

// inside returns the path of a section in another. All tiers have the same keys, so they share a
// path.
func inside(path, key string) string {
	if path == "topology.tiers" {
		key = "NAME"
	}
	return join(path, key)
}

// section adds the table of a section's keys, and then the sections below it that are not described
// elsewhere.
func (p *page) section(path string, s *jsonschema.Schema) {
	at := len(p.headings)
	p.headings = append(p.headings, heading{path: cmp.Or(path, topTitle)})
	var b strings.Builder
	if example := sectionExamples[path]; example != "" {
		fmt.Fprintf(&b, "```yaml\n%s```\n\n", example)
	}
	b.WriteString(row("key", "type", "default", "meaning") + row("---", "---", "---", "---"))
	base := p.within(s, path)
	if base != nil {
		b.WriteString(row(fmt.Sprintf("keys of [%s](#%s)", base.path, anchor(base.path)), "", "", "as there"))
	}
	var homes []string                 // sections that explain keys of this one
	elsewhere := map[string][]string{} // those keys, by section
	for k := s.Properties.Oldest(); k != nil; k = k.Next() {
		if base != nil && base.keys[k.Key] != "" {
			continue
		}
		kind := kindOf(k.Value)
		inner, where := objects(k.Value), join(path, k.Key)
		for _, o := range inner {
			same := p.alike(o).path
			kind = strings.Replace(kind, "section", fmt.Sprintf("[section](#%s)", anchor(same)), 1)
			if same == inside(path, k.Key) && !p.described(same) {
				p.section(same, o)
			}
		}
		if sectionExamples[where] != "" && len(inner) == 0 { // a list or section without keys of its own
			p.headings = append(p.headings, heading{where, p.alone(where, k.Value)})
			kind = fmt.Sprintf("[%s](#%s)", kind, anchor(where))
		}
		if other := p.twin(where, k.Value); other != "" {
			if elsewhere[other] == nil {
				homes = append(homes, other)
			}
			elsewhere[other] = append(elsewhere[other], "`"+k.Key+"`")
			continue
		}
		standard := p.defaultOf(pattern(where), slices.Contains(s.Required, k.Key))
		b.WriteString(row("`"+k.Key+"`", kind, standard, inCell(k.Value.Description)))
	}
	for _, home := range homes {
		b.WriteString(row(strings.Join(elsewhere[home], ", "), "", "", fmt.Sprintf("as in [%s](#%s)", home, anchor(home))))
	}
	p.headings[at].text = b.String()
}

// row formats a row of a table.
func row(cells ...string) string { return "|" + strings.Join(cells, "|") + "|\n" }

// twin returns the section whose key of the same name needs the same explanation, or "": the
// section that the description names ("As queues.buffer."), or the first transport if type, default
// and meaning are the same.
func (p *page) twin(path string, s *jsonschema.Schema) string {
	_, name := parentOf(path)
	if other, ok := strings.CutPrefix(strings.TrimSuffix(s.Description, "."), "As "); ok {
		if section, key := parentOf(other); key == name && p.defaults[path] == p.defaults[other] {
			return section
		}
	}
	const first = "transport.pc4"
	section, _ := parentOf(path)
	if outer, _ := parentOf(section); outer != "transport" || section == first {
		return ""
	}
	for _, q := range p.sections {
		if q.path == first && q.keys[name] == fingerprint(s) && p.defaults[path] == p.defaults[join(first, name)] {
			return first
		}
	}
	return ""
}

// described reports whether the page has a section already.
func (p *page) described(path string) bool {
	return slices.ContainsFunc(p.headings, func(h heading) bool { return h.path == path })
}

// alone describes a list or section without keys of its own.
func (p *page) alone(path string, s *jsonschema.Schema) string {
	text := fmt.Sprintf("%s\n\n```yaml\n%s```\n", s.Description, sectionExamples[path])
	if path == "expect" {
		text += "\nNames, besides lab keys by path; `N` counts from 0. [results.md](results.md),\n" +
			"[clocks.md](clocks.md) and [ccm.md](ccm.md) define them.\n\n" + namesText()
	}
	return text
}

// pattern returns a path of the schema as the table of defaults has it: with * for items of lists.
func pattern(path string) string {
	for _, list := range []string{"topology.nodes", "topology.links", "workload", "faults"} {
		if rest, ok := strings.CutPrefix(path, list+"."); ok {
			return list + ".*." + rest
		}
	}
	return path
}

// anchor returns the anchor that Markdown gives a heading.
func anchor(title string) string {
	return strings.NewReplacer(".", "", " ", "-").Replace(strings.ToLower(title))
}

// index writes the list of sections.
func (p *page) index(b *strings.Builder) {
	b.WriteString("- [Types](#types)")
	for _, h := range p.headings {
		before := "\n- "
		title := h.path
		if h.nested() {
			before, title = ", ", h.path[strings.IndexByte(h.path, '.')+1:]
		}
		fmt.Fprintf(b, "%s[%s](#%s)", before, title, anchor(h.path))
	}
	b.WriteString("\n")
}

// objects returns the sections that a value may be or be a list of.
func objects(s *jsonschema.Schema) (all []*jsonschema.Schema) {
	if s.Properties != nil && s.Properties.Len() > 0 {
		all = append(all, s)
	}
	if s.Items != nil {
		all = append(all, objects(s.Items)...)
	}
	for _, alternative := range s.OneOf {
		all = append(all, objects(alternative)...)
	}
	return all
}

// fingerprints returns the fingerprint of each key. It covers all that a key allows, so keys with
// the same one are equal.
func fingerprints(s *jsonschema.Schema) map[string]string {
	keys := make(map[string]string)
	for k := s.Properties.Oldest(); k != nil; k = k.Next() {
		keys[k.Key] = fingerprint(k.Value)
	}
	return keys
}

// fingerprint returns the schema of a key as JSON.
func fingerprint(s *jsonschema.Schema) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("lab: the schema cannot be written: %v", err)) // plain data of this package
	}
	return string(text)
}

// alike returns the section that stands for all with the same keys, or nil.
func (p *page) alike(s *jsonschema.Schema) *part {
	keys := fingerprints(s)
	for i := range p.sections {
		if q := &p.sections[i]; len(q.keys) == len(keys) && contains(keys, q.keys) {
			return q
		}
	}
	return nil
}

// within returns a section with more than three keys, all of which s has besides others, or nil.
func (p *page) within(s *jsonschema.Schema, path string) *part {
	keys := fingerprints(s)
	for i := range p.sections {
		if q := &p.sections[i]; q.path != path && len(q.keys) > 3 && len(q.keys) < len(keys) && contains(keys, q.keys) {
			return q
		}
	}
	return nil
}

// contains reports whether all has every entry of some.
func contains(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return true
}

// wordsFirst matches the words that a pattern begins with, such as auto and off.
var wordsFirst = regexp.MustCompile(`^\^\(((?:[a-z-]+\|)*)`)

// kindOf returns the type of a value in the words of typesText.
func kindOf(s *jsonschema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		return quoted(s.Enum)
	case len(s.OneOf) > 0:
		return alternatives(s.OneOf)
	case s.Pattern != "":
		kinds := strings.Split(strings.TrimSuffix(wordsFirst.FindStringSubmatch(s.Pattern)[1], "|"), "|")
		kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "" })
		for i := range kinds {
			kinds[i] = "`" + kinds[i] + "`"
		}
		return strings.Join(append(kinds, quantityOf(s)), ", ")
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case s.Extras["type"] != nil:
		return "text"
	case s.Type == "object":
		return "section"
	case s.Type == "array" && s.Items == nil:
		return "list"
	case s.Type == "array":
		return "list: " + kindOf(s.Items)
	}
	return map[string]string{"integer": "integer", "number": "number", "boolean": "flag", "string": "text"}[s.Type]
}

// quantityOf returns the type of a value that has a pattern.
func quantityOf(s *jsonschema.Schema) string {
	has := func(part string) bool { return strings.Contains(s.Pattern, part) }
	switch {
	case has("(" + params.NamePattern + ")"):
		return "name"
	case has(params.LinkPattern):
		return "link name"
	case has(`(ppm|ppb)`), has("±?"), has("rtt"), has("leaves"), has("->"):
		return fmt.Sprintf("`%v`", s.Examples[0])
	case has("bdp)"), has(params.Multiple):
		return "size"
	case has(units.TimePattern()):
		return "time"
	case has(units.BytesPattern()):
		return "bytes"
	case has(units.BandwidthPattern()):
		return "rate"
	case has(params.Percents):
		return "share"
	}
	return fmt.Sprintf("`%v`", s.Examples[0])
}

// quoted returns values as the reference prints them.
func quoted(values []any) string {
	var words []string
	for _, v := range values {
		words = append(words, fmt.Sprintf("`%v`", v))
	}
	return strings.Join(words, ", ")
}

// alternatives lists the types that a value may have, each once. A number or a percentage is a
// share; a boolean and the words for it are a flag.
func alternatives(all []*jsonschema.Schema) string {
	var kinds []string
	for _, s := range all {
		k := kindOf(s)
		switch {
		case s.Type == "null": // the same as true
			k = ""
		case strings.HasSuffix(k, "share"):
			kinds = slices.DeleteFunc(kinds, func(k string) bool { return k == "number" })
		case strings.HasPrefix(k, "`on`, `off`, `yes`, `no`"):
			k = strings.TrimPrefix(strings.TrimPrefix(k, "`on`, `off`, `yes`, `no`"), ", ")
		}
		if k != "" && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return strings.Join(kinds, ", ")
}

// ownSource matches the source of a default that is Weft's own.
var ownSource = regexp.MustCompile(`^ours\b`)

// defaultOf returns a key's default, with a footnote for its source.
func (p *page) defaultOf(path string, required bool) string {
	d, ok := p.defaults[path]
	switch {
	case ok && ownSource.MatchString(d.source):
		return "`" + d.text + "`"
	case ok:
		source := inCell(d.source)
		note := noteOf(source)
		p.notes[note] = source
		return fmt.Sprintf("`%s`[^%s]", d.text, note)
	case required:
		return "required"
	}
	return ""
}

// longestNote is the maximum length of a footnote's name, in bytes, without a checksum.
const longestNote = 40

// noteOf names the footnote of a source by its words, so that a new source does not rename the
// others. A long name is cut and ends in a checksum, which distinguishes sources that begin alike.
func noteOf(source string) string {
	words := strings.FieldsFunc(strings.ToLower(source),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	name := strings.Join(words, "-")
	if len(name) <= longestNote {
		return name
	}
	return fmt.Sprintf("%s-%04x", name[:strings.LastIndexByte(name[:longestNote], '-')],
		uint16(crc32.ChecksumIEEE([]byte(source))))
}

// bareLabs are labs that together leave every key with a default at it.
var bareLabs = func() (all []string) {
	const net = "weft: 1\nname: lab\ntopology: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}\n"
	for _, rest := range []string{
		"clocks: {sync: ptp}\ntransport: {kind: roce}", "clocks: {sync: huygens}\ntransport: {kind: ccm}",
		"clocks: {sync: none}\ntransport: {kind: roce, roce: {preset: paper}}",
		"queues: {shared: {total: 32MB}, pfc: on}",
		"background: {load: 10%}",
	} {
		all = append(all, net+rest+"\n")
	}
	return all
}()

// dependent are keys whose default differs from lab to lab. Their descriptions explain it.
var dependent = []string{"topology.oversubscription", "workload.*.root", "workload.*.chunk"}

// allDefaults returns the table of defaults, with those that only code knows.
func allDefaults() map[string]value {
	all := make(map[string]value)
	for _, text := range bareLabs {
		labs, err := Parse("lab.yaml", []byte(text), Options{})
		if err != nil {
			panic(fmt.Sprintf("lab: a lab of the reference is wrong: %v", err)) // a constant of this package
		}
		for _, s := range labs[0].Sources {
			source, ok := strings.CutPrefix(s.From, "default: ")
			path := regexp.MustCompile(`\.[0-9]+(\.|$)`).ReplaceAllString(s.Path, ".*$1")
			if _, known := all[path]; ok && !known && !slices.Contains(dependent, path) {
				all[path] = value{s.Value, source}
			}
		}
	}
	for path, d := range defaults {
		all[path] = d
	}
	return all
}

// namesText returns a table of the names that expectations may use, by their kind. Names that
// differ only in their last part share an entry.
func namesText() string {
	var b strings.Builder
	b.WriteString(row("is", "names") + row("---", "---"))
	var kinds []string
	names := map[string][]string{}
	for _, name := range expect.Names() {
		kind := expect.Kind(name)
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		names[kind] = append(names[kind], name)
	}
	for _, kind := range kinds {
		b.WriteString(row(kind, strings.Join(folded(names[kind]), ", ")))
	}
	return b.String()
}

// folded writes a.x and a.y as a.{x,y}. The names must be sorted.
func folded(names []string) (all []string) {
	for i := 0; i < len(names); {
		cut := strings.LastIndexByte(names[i], '.') + 1
		last := []string{names[i][cut:]}
		j := i + 1
		for cut > 0 && j < len(names) && strings.LastIndexByte(names[j], '.')+1 == cut &&
			names[j][:cut] == names[i][:cut] {
			last = append(last, names[j][cut:])
			j++
		}
		text := names[i][:cut] + last[0]
		if len(last) > 1 {
			text = names[i][:cut] + "{" + strings.Join(last, ",") + "}"
		}
		all = append(all, "`"+text+"`")
		i = j
	}
	return all
}

// inCell escapes text for a cell of a table.
func inCell(s string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s) }
