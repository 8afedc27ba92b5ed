package topologies

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"weft/collectives/graph"
)

func looksDOT(text []byte) bool {
	for line := range bytes.Lines(text[:min(len(text), 1<<16)]) {
		words := bytes.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n{\"", r) })
		if len(words) == 0 || line[0] == '#' || bytes.HasPrefix(words[0], []byte("//")) ||
			bytes.HasPrefix(words[0], []byte("/*")) {
			continue
		}
		word := strings.ToLower(string(words[0]))
		return word == "graph" || word == "digraph" || word == "strict"
	}
	return false
}

// dot reads a graph in the DOT language. Subgraphs and HTML are refused; attributes of the graph
// are pictures and are skipped, as are those of nodes and links that say nothing about the network.
type dot struct {
	file   string
	text   []byte
	at     int
	line   int
	net    Network
	known  map[string]bool
	roles  map[string]string
	peeked *token
}

// token is a word of the language, or a sign such as { or --.
type token struct {
	text string
	sign bool
	line int
}

func readDOT(file string, text []byte) (*Network, error) {
	d := &dot{file: file, text: text, line: 1, known: map[string]bool{}, roles: map[string]string{}}
	if err := d.graph(); err != nil {
		return nil, err
	}
	d.net.byDegree(func(name string) (bool, bool) {
		isSwitch, ok := roles[strings.ToLower(d.roles[name])]
		return isSwitch, ok
	})
	return &d.net, nil
}

func (d *dot) errorf(format string, args ...any) error {
	return graph.Errorf(d.file, d.line, format, args...)
}

// next returns the next token, one without text at the end.
func (d *dot) next() (token, error) {
	if t := d.peeked; t != nil {
		d.peeked = nil
		return *t, nil
	}
	if err := d.skip(); err != nil {
		return token{}, err
	}
	if d.at == len(d.text) {
		return token{line: d.line}, nil
	}
	c := d.text[d.at]
	switch {
	case c == '"':
		return d.quoted()
	case c == '-' && d.at+1 < len(d.text) && (d.text[d.at+1] == '-' || d.text[d.at+1] == '>'):
		d.at += 2
		return token{string(d.text[d.at-2 : d.at]), true, d.line}, nil
	case strings.IndexByte("{}[];,=:", c) >= 0:
		d.at++
		return token{string(c), true, d.line}, nil
	case c == '<':
		return token{}, d.errorf("HTML is not understood; expected a name")
	}
	from := d.at
	for d.at < len(d.text) && isDOTWord(d.text[d.at]) {
		d.at++
	}
	if from == d.at {
		return token{}, d.errorf("character %q", c)
	}
	return token{string(d.text[from:d.at]), false, d.line}, nil
}

func isDOTWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c >= 0x80
}

// skip skips space and comments.
func (d *dot) skip() error {
	for d.at < len(d.text) {
		rest := d.text[d.at:]
		switch c := rest[0]; {
		case c == '\n':
			d.line++
			d.at++
		case c == ' ' || c == '\t' || c == '\r':
			d.at++
		case c == '#' || bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			d.at += end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest, []byte("*/"))
			if end < 0 {
				return d.errorf("a comment without an end")
			}
			d.line += bytes.Count(rest[:end], []byte("\n"))
			d.at += end + 2
		default:
			return nil
		}
	}
	return nil
}

// quoted reads a name in quotes.
func (d *dot) quoted() (token, error) {
	var b strings.Builder
	line := d.line
	for d.at++; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; {
		case c == '"':
			d.at++
			return token{b.String(), false, line}, nil
		case c == '\\' && d.at+1 < len(d.text):
			d.at++
			b.WriteByte(d.text[d.at])
		default:
			if c == '\n' {
				d.line++
			}
			b.WriteByte(c)
		}
	}
	return token{}, d.errorf("a name without a closing quote")
}

// graph reads the whole file.
func (d *dot) graph() error {
	for {
		t, err := d.next()
		switch {
		case err != nil:
			return err
		case t.text == "" && !t.sign:
			return d.errorf("a graph without {")
		case t.sign && t.text == "{":
			return d.statements()
		}
	}
}

func (d *dot) statements() error {
	for {
		t, err := d.next()
		switch {
		case err != nil:
			return err
		case t.sign && t.text == "}":
			return nil
		case t.sign && t.text == ";":
			continue
		case t.sign && t.text == "{", strings.EqualFold(t.text, "subgraph") && !t.sign:
			return d.errorf("subgraphs are not understood; expected nodes and links")
		case t.sign || t.text == "":
			return d.errorf("%q; expected a node or a link", t.text)
		}
		if err := d.statement(t); err != nil {
			return err
		}
	}
}

// statement reads a node, a chain of links or an attribute.
func (d *dot) statement(first token) error {
	ends := []string{first.text}
	for {
		t, err := d.next()
		if err != nil {
			return err
		}
		switch {
		case t.sign && t.text == ":": // a port of the node
			if _, err := d.next(); err != nil {
				return err
			}
		case t.sign && t.text == "=" && len(ends) == 1:
			_, err := d.next()
			return err
		case t.sign && (t.text == "--" || t.text == "->"):
			end, err := d.next()
			if err != nil {
				return err
			}
			if end.sign || end.text == "" {
				return d.errorf("%q; expected the other end of a link", end.text)
			}
			ends = append(ends, end.text)
		default:
			d.peeked = &t
			return d.finish(ends, first.line)
		}
	}
}

// finish reads the attributes of a statement.
func (d *dot) finish(ends []string, line int) error {
	attrs, err := d.attributes()
	if err != nil {
		return err
	}
	if len(ends) == 1 {
		switch strings.ToLower(ends[0]) {
		case "node", "graph", "edge":
			for name := range attrs {
				if used, _ := new(Link).property(name, "1"); used {
					return d.errorf("defaults of links are not understood; give each link its %s", name)
				}
			}
			return nil
		}
		d.node(ends[0])
		for _, name := range []string{"function", "role", "type", "kind"} {
			if value, ok := attrs[name]; ok {
				d.roles[ends[0]] = value
				break
			}
		}
		return nil
	}
	for i := range len(ends) - 1 {
		l := Link{A: ends[i], B: ends[i+1], Line: line}
		d.node(l.A)
		d.node(l.B)
		for name, value := range attrs {
			if _, err := l.property(name, value); err != nil {
				return &graph.Error{At: fmt.Sprintf("%s:%d", d.file, line), Err: err}
			}
		}
		d.net.Links = append(d.net.Links, l)
	}
	return nil
}

func (d *dot) node(name string) {
	if !d.known[name] {
		d.known[name] = true
		d.net.Nodes = append(d.net.Nodes, Node{Name: name})
	}
}

var errAttributes = errors.New("expected attributes such as [rate=100Gbps]")

// attributes reads lists such as [rate=100Gbps, delay=1us], if there are any.
func (d *dot) attributes() (map[string]string, error) {
	attrs := map[string]string{}
	for {
		t, err := d.next()
		if err != nil {
			return nil, err
		}
		if !t.sign || t.text != "[" {
			d.peeked = &t
			return attrs, nil
		}
		for {
			name, err := d.next()
			if err != nil {
				return nil, err
			}
			if name.sign && name.text == "]" {
				break
			}
			if name.sign && (name.text == "," || name.text == ";") {
				continue
			}
			if name.sign || name.text == "" {
				return nil, d.errorf("%q: %w", name.text, errAttributes)
			}
			sign, err := d.next()
			if err != nil {
				return nil, err
			}
			if !sign.sign || sign.text != "=" {
				return nil, d.errorf("%q: %w", sign.text, errAttributes)
			}
			value, err := d.next()
			if err != nil {
				return nil, err
			}
			attrs[name.text] = value.text
		}
	}
}
