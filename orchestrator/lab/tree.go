package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"weft/inputs/source"
	"weft/internal/clip"
)

// MaxText is the maximum size of a lab file in bytes.
const MaxText = 1 << 20

// Bounds on what is read at all, so that a hostile file costs no more than a large one.
const (
	maxDepth  = 16      // levels of nesting; the format needs 5
	maxValues = 100_000 // keys, items and scalars; a custom topology of 10,000 nodes and links needs 80,000
)

// origin is where a value came from.
type origin struct {
	line, column int      // position in the file, from 1; 0: the value is not from there
	flag         string   // the command-line flag; "": the value is not from there
	sweep        *element // of the sweep section; nil: the value is not from there
	source       string   // the source of a default; "": the value is written
}

// element is a value in the lists of the sweep section.
type element struct {
	path string // sweep.transport.kind[3]
	sets string // transport.kind
}

// pathOf returns the path in an error about o: for a value of the sweep, where it is in the file.
func (o origin) pathOf(path string) string {
	if e := o.sweep; e != nil {
		if rest, ok := strings.CutPrefix(path, e.sets); ok && (rest == "" || rest[0] == '.') {
			return e.path + rest
		}
	}
	return path
}

// String formats the origin as Source.From.
func (o origin) String() string {
	switch {
	case o.source != "":
		return "default: " + o.source
	case o.flag != "":
		return "command line: " + o.flag
	case o.sweep != nil:
		return fmt.Sprintf("sweep, line %d", o.line)
	default:
		return fmt.Sprintf("line %d", o.line)
	}
}

type kind uint8

const (
	scalar kind = iota
	list
	mapping
	hole // where an item of a list was taken out
)

// node is a value of the file. A node never changes once it is built, because sweep points share
// nodes.
type node struct {
	kind  kind
	at    origin
	text  string  // scalar
	plain bool    // scalar: not quoted
	items []*node // list, mapping: the values
	keys  []key   // mapping: the keys of items, in order
}

// key is a key of a mapping.
type key struct {
	name string
	at   origin
}

// get returns the value of a key of a mapping, or nil.
func (n *node) get(name string) *node {
	for i, k := range n.keys {
		if k.name == name {
			return n.items[i]
		}
	}
	return nil
}

// null reports whether n is written but holds nothing.
func (n *node) null() bool {
	return n.kind == scalar && n.plain && (n.text == "" || n.text == "~" || strings.EqualFold(n.text, "null"))
}

// String formats n on one line, as flow YAML without quotes.
func (n *node) String() string {
	parts := make([]string, len(n.items))
	for i, item := range n.items {
		parts[i] = item.String()
		if n.kind == mapping {
			parts[i] = n.keys[i].name + ": " + parts[i]
		}
	}
	switch n.kind {
	case mapping:
		return "{" + strings.Join(parts, ", ") + "}"
	case list:
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return n.text
	}
}

// load reads text as one YAML document into a tree. If it cannot, it reports why and returns nil.
// at maps a position in the text to an origin.
func load(r *report, text []byte, at func(line, column int) origin) *node {
	if len(text) > MaxText {
		r.add(at(1, 1), "", "more than 1 MiB; a lab file has at most that")
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	if line, column, problem := badText(text); problem != "" {
		r.add(at(line, column), "", "%s", problem)
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, second yaml.Node
	switch err := decodeYAML(decoder, &document); {
	case errors.Is(err, io.EOF):
		r.add(at(1, 1), "", "the file is empty; expected a lab, which begins with weft: 1")
		return nil
	case err != nil:
		reportSyntax(r, text, at, err)
		return nil
	}
	if err := decodeYAML(decoder, &second); err == nil {
		r.add(at(second.Line, second.Column), "", "a second document begins here; one file is one lab")
		return nil
	} else if !errors.Is(err, io.EOF) {
		reportSyntax(r, text, at, err)
		return nil
	}
	b := builder{report: r, at: at}
	root := b.build(document.Content[0], "", 0)
	if b.broken {
		return nil
	}
	return root
}

// decodeYAML calls Decode. If hostile text makes the YAML library panic, it returns an error.
func decodeYAML(decoder *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	return decoder.Decode(into)
}

// badText finds the first byte that is not UTF-8 or the first control character.
func badText(text []byte) (line, column int, problem string) {
	line, column = 1, 1
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		switch {
		case c == utf8.RuneError && size == 1:
			return line, column, fmt.Sprintf("the byte 0x%02x is not UTF-8", text[0])
		case c == '\n':
			line, column = line+1, 0
		case c != '\t' && c != '\r' && clip.Forbidden(c):
			return line, column, fmt.Sprintf("the control character %U is not allowed", c)
		}
		text, column = text[size:], column+1
	}
	return 0, 0, ""
}

// reportSyntax reports an error of the YAML library, which knows at most the line.
func reportSyntax(r *report, text []byte, at func(line, column int) origin, err error) {
	line, message := source.PlainYAML(err)
	for i, l := range strings.Split(string(text), "\n") {
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if tab := strings.IndexByte(indent, '\t'); tab >= 0 && strings.TrimSpace(l) != "" {
			r.add(at(i+1, tab+1), "", "a tab in the indentation; YAML requires spaces")
			return
		}
	}
	r.add(at(line, 1), "", "not valid YAML: %s", message)
}

// builder turns YAML nodes into nodes, and rejects what a lab file has no use for.
type builder struct {
	report  *report
	at      func(line, column int) origin
	values  int  // the number of values so far
	aliased bool // an alias was reported
	broken  bool // something is missing that would cause further problems
}

// refuse reports what cannot be read at all.
func (b *builder) refuse(n *node, path, format string, args ...any) *node {
	b.broken = true
	b.report.add(n.at, path, format, args...)
	return n
}

// build returns the node of y.
func (b *builder) build(y *yaml.Node, path string, depth int) *node {
	n := &node{at: b.at(y.Line, y.Column)}
	b.values++
	switch {
	case b.values > maxValues+1 || b.aliased && y.Kind == yaml.AliasNode:
		return n // said once
	case b.values > maxValues:
		return b.refuse(n, "", "more than %d values; a lab file has fewer", maxValues)
	case depth > maxDepth:
		return b.refuse(n, path, "nested more than %d deep", maxDepth)
	case y.Kind == yaml.AliasNode:
		b.aliased = true
		return b.refuse(n, path, "the alias *%s is not supported; write the value out", clip.Text(y.Value))
	case y.Style&yaml.TaggedStyle != 0:
		return b.refuse(n, path, "the tag %s is not supported; leave it out", clip.Text(y.Tag))
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = mapping
		b.mapping(n, y, path, depth)
	case yaml.SequenceNode:
		n.kind = list
		for i, item := range y.Content {
			n.items = append(n.items, b.build(item, join(path, strconv.Itoa(i)), depth+1))
		}
	default:
		const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
		n.text, n.plain = y.Value, y.Style&quoted == 0
		if i := strings.IndexFunc(n.text, func(c rune) bool { return c != '\n' && clip.Forbidden(c) }); i >= 0 {
			c, _ := utf8.DecodeRuneInString(n.text[i:])
			b.report.add(n.at, path, "the control character %U is not allowed", c)
		}
	}
	return n
}

// mapping fills in the keys and values of a mapping.
func (b *builder) mapping(n *node, y *yaml.Node, path string, depth int) {
	first := make(map[string]int, len(y.Content)/2) // line of each key
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		at := b.at(k.Line, k.Column)
		switch line, twice := first[k.Value]; {
		case k.Kind != yaml.ScalarNode:
			b.report.add(at, path, "a key must be a word")
			continue
		case k.Tag == "!!merge" || k.Value == "<<":
			b.report.add(at, path, "the merge key << is not supported; write the keys out")
			continue
		case twice:
			b.report.add(at, join(path, clip.Text(k.Value)), "the key is listed twice; the first is in line %d", line)
			continue
		}
		first[k.Value] = k.Line
		n.keys = append(n.keys, key{k.Value, at})
		n.items = append(n.items, b.build(y.Content[i+1], join(path, clip.Text(k.Value)), depth+1))
	}
}

// join appends a name to a path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// at0 returns the value of a key, or nil. n may be nil or no mapping.
func (n *node) at0(name string) *node {
	if n == nil || n.kind != mapping {
		return nil
	}
	return n.get(name)
}

// textOr returns the text of a scalar, or the given text if n is none.
func (n *node) textOr(text string) string {
	if n == nil || n.kind != scalar || n.null() {
		return text
	}
	return n.text
}
