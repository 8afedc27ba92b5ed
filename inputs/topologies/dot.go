package topologies

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"weft/collectives/graph"
	"weft/internal/clip"
	"weft/units"
)

func looksDOT(_ string, head []byte) bool {
	for line := range bytes.Lines(head) {
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

// pictures are attributes of nodes and links that are for Graphviz alone.
var pictures = []string{"arrowhead", "arrowsize", "arrowtail", "color", "constraint", "fillcolor", "fixedsize",
	"fontcolor", "fontname", "fontsize", "height", "label", "labelloc", "margin", "minlen", "pos", "penwidth",
	"peripheries", "rank", "shape", "style", "tooltip", "weight", "width"}

// layouts are attributes of graphs and subgraphs that are for Graphviz alone, in lower case:
// graphviz.org/doc/info/attrs.html.
var layouts = strings.Fields("_background bb beautify bgcolor center charset class cluster clusterrank color " +
	"colorscheme comment compound concentrate damping defaultdist dim dimen diredgeconstraints dpi epsilon esep " +
	"fillcolor fontcolor fontname fontnames fontpath fontsize forcelabels gradientangle href id imagepath inputscale " +
	"k label label_scheme labeljust labelloc landscape layerlistsep layers layerselect layersep layout levels " +
	"levelsgap lheight linelength lp lwidth margin maxiter mclimit mindist mode model newrank nodesep nojustify " +
	"normalize notranslate nslimit nslimit1 oneblock ordering orientation outputorder overlap overlap_scaling " +
	"overlap_shrink pack packmode pad page pagedir pencolor penwidth peripheries quadtree quantum rank rankdir " +
	"ranksep ratio remincross repulsiveforce resolution root rotate rotation scale searchsize sep showboxes size " +
	"smoothing sortv splines start style stylesheet target tbbalance tooltip truecolor url viewport voro_margin " +
	"xdotversion")

// dot reads a graph in the DOT language, as a stream. HTML is refused.
type dot struct {
	*Network
	r      *bufio.Reader
	line   int
	inLine bool  // something but space came before on this line
	err    error // of reading
	peeked *token
}

// token is a word of the language, or a sign such as { or --. At the end it has no text.
type token struct {
	text string
	sign bool
	line int
}

// maxToken is the maximum length of a word or a comment in bytes.
const maxToken = 1 << 16

func readDOT(n *Network, r io.Reader) error {
	d := &dot{Network: n, r: bufio.NewReader(r), line: 1}
	err := d.graph()
	if d.err != nil {
		return graph.At(fmt.Sprintf("%s:%d", n.file, d.line), d.err)
	}
	if err != nil {
		return err
	}
	return n.finish(n.called)
}

func (d *dot) errorf(format string, args ...any) error {
	return graph.Errorf(d.file, d.line, format, args...)
}

// at returns byte i of the rest, or 0 at the end.
func (d *dot) at(i int) byte {
	b, err := d.r.Peek(i + 1)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			d.err = err
		}
		return 0
	}
	return b[i]
}

// take returns the next byte, or 0 at the end.
func (d *dot) take() byte {
	c := d.at(0)
	switch c {
	case '\n':
		d.line++
		d.inLine = false
	case ' ', '\t', '\r':
	default:
		d.inLine = true
	}
	_, _ = d.r.Discard(1) // at found it, or the end
	return c
}

// next returns the next token.
func (d *dot) next() (token, error) {
	if t := d.peeked; t != nil {
		d.peeked = nil
		return *t, nil
	}
	if err := d.skip(); err != nil {
		return token{}, err
	}
	line, c := d.line, d.at(0)
	switch {
	case c == 0:
		return token{line: line}, nil
	case c == '"':
		return d.quoted()
	case c == '-' && (d.at(1) == '-' || d.at(1) == '>'):
		return token{string([]byte{d.take(), d.take()}), true, line}, nil
	case strings.IndexByte("{}[];,=:", c) >= 0:
		return token{string(d.take()), true, line}, nil
	case c == '#':
		return token{}, d.errorf("# within a line is no comment in DOT; expected // before a comment, or a name in " +
			"quotes")
	case c == '<':
		return token{}, d.errorf("HTML is not understood; expected a name")
	case !isDOTWord(c) && c != '-':
		return token{}, d.errorf("character %q is not understood; expected a name, or one in quotes", c)
	}
	word := []byte{d.take()} // a minus begins a number
	for isDOTWord(d.at(0)) {
		if word = append(word, d.take()); len(word) > maxToken {
			return token{}, d.errorf("a name of more than %d bytes; expected shorter ones", maxToken)
		}
	}
	return token{string(word), false, line}, nil
}

func isDOTWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c >= 0x80
}

// skip skips space and comments.
func (d *dot) skip() error {
	for {
		switch c := d.at(0); {
		case c == '\n' || c == ' ' || c == '\t' || c == '\r':
			d.take()
		case c == '#' && !d.inLine || c == '/' && d.at(1) == '/':
			for d.at(0) != 0 && d.at(0) != '\n' {
				d.take()
			}
		case c == '/' && d.at(1) == '*':
			d.take()
			for d.take(); d.at(0) != '*' || d.at(1) != '/'; d.take() {
				if d.at(0) == 0 {
					return d.errorf("a comment without an end; expected */")
				}
			}
			d.take()
			d.take()
		default:
			return nil
		}
	}
}

// quoted reads a name in quotes.
func (d *dot) quoted() (token, error) {
	var text []byte
	line := d.line
	d.take()
	for len(text) <= maxToken {
		switch c := d.take(); {
		case c == '"':
			return token{string(text), false, line}, nil
		case c == '\\' && d.at(0) != 0:
			text = append(text, d.take())
		case c == 0:
			return token{}, graph.Errorf(d.file, line, "a name without a closing quote")
		default:
			text = append(text, c)
		}
	}
	return token{}, graph.Errorf(d.file, line, "a name of more than %d bytes; expected shorter ones", maxToken)
}

// graph reads the whole file.
func (d *dot) graph() error {
	for {
		t, err := d.next()
		switch {
		case err != nil:
			return err
		case t.text == "" && !t.sign:
			return d.errorf("a graph without {; expected graph name { ... }")
		case t.sign && t.text == "{":
			return d.statements(0)
		case strings.EqualFold(t.text, "strict"):
			d.strict = true
		}
	}
}

// deepest is how far subgraphs may be within each other. They group nodes in pictures.
const deepest = 100

func (d *dot) statements(depth int) error {
	for {
		t, err := d.next()
		switch {
		case err != nil:
			return err
		case t.sign && t.text == "}" && depth > 0:
			return nil
		case t.sign && t.text == "}":
			if t, err = d.next(); err == nil && (t.text != "" || d.at(0) != 0) {
				err = d.errorf("%q behind the graph; expected one graph", clip.Text(t.text))
			}
			return err
		case t.sign && t.text == ";":
			continue
		case t.sign && t.text == "{", strings.EqualFold(t.text, "subgraph") && !t.sign:
			if err := d.subgraph(t, depth+1); err != nil {
				return err
			}
			continue
		case t.text == "" && !t.sign && d.at(0) == 0:
			return d.errorf("the file ends within the graph; expected }")
		case t.sign || t.text == "":
			return d.errorf("%q; expected a node or a link", t.text)
		}
		if err := d.statement(t); err != nil {
			return err
		}
	}
}

// subgraph reads a subgraph that begins with t. Its nodes and links are those of the graph.
func (d *dot) subgraph(t token, depth int) (err error) {
	for n := 0; err == nil && !t.sign && n < 2; n++ { // the word, and a name
		t, err = d.next()
	}
	switch {
	case err != nil:
		return err
	case !t.sign || t.text != "{":
		return d.errorf("%q; expected the { of a subgraph", clip.Text(t.text))
	case depth > deepest:
		return d.errorf("subgraphs within each other %d times; expected fewer", depth)
	}
	if err = d.statements(depth); err != nil {
		return err
	}
	if t, err = d.next(); err == nil && t.sign && (t.text == "--" || t.text == "->") {
		return d.errorf("a link of all nodes of a subgraph is not understood; expected one for each node")
	}
	d.peeked = &t
	return err
}

// compass are the points of a node at which a picture may draw a link. They are no ports.
var compass = []string{"n", "ne", "e", "se", "s", "sw", "w", "nw", "c", "_"}

// dotEnd is a node of a statement.
type dotEnd struct {
	name, port string
	arrow      bool // a -> leads to it
}

// statement reads a node, a chain of links or an attribute.
func (d *dot) statement(first token) error {
	ends := []dotEnd{{name: first.text}}
	for {
		t, err := d.next()
		if err != nil {
			return err
		}
		switch {
		case t.sign && t.text == ":": // a port of the node
			port, err := d.next()
			if err != nil {
				return err
			}
			if end := &ends[len(ends)-1]; end.port == "" && !slices.Contains(compass, port.text) {
				end.port = port.text
			}
		case t.sign && t.text == "=" && len(ends) == 1: // an attribute of the graph
			value, err := d.next()
			if err != nil {
				return err
			}
			return d.defaults("graph", []attribute{{first.text, value.text}}, first.line)
		case t.sign && (t.text == "--" || t.text == "->"):
			end, err := d.next()
			if err != nil {
				return err
			}
			if end.sign || end.text == "" || strings.EqualFold(end.text, "subgraph") {
				return d.errorf("%q; expected the other end of a link", clip.Text(end.text))
			}
			if ends = append(ends, dotEnd{name: end.text, arrow: t.text == "->"}); len(ends) > maxNodes {
				return d.errorf("more than %d nodes in a chain; expected fewer", maxNodes)
			}
		default:
			d.peeked = &t
			return d.finish(ends, first.line)
		}
	}
}

// finish reads the attributes of a statement.
func (d *dot) finish(ends []dotEnd, line int) error {
	attrs, err := d.attributes()
	if err != nil {
		return err
	}
	if len(ends) == 1 {
		name := ends[0].name
		switch strings.ToLower(name) {
		case "node", "graph", "edge":
			return d.defaults(strings.ToLower(name), attrs, line)
		}
		if _, err := d.node(name, line); err != nil {
			return err
		}
		for _, a := range attrs {
			if isRole(a.name) {
				if err := d.call(name, a.value, line); err != nil {
					return err
				}
			} else if !slices.Contains(pictures, strings.ToLower(a.name)) {
				d.Notes.Add(d.file, line, "attribute "+clip.Text(a.name)+" of nodes")
			}
		}
		return nil
	}
	for i := range len(ends) - 1 {
		a, b := ends[i], ends[i+1]
		l := Link{A: a.name, B: b.name, Line: line, ports: [2]string{a.port, b.port}, directed: b.arrow}
		for _, end := range ends[i : i+2] {
			if _, err := d.node(end.name, line); err != nil {
				return err
			}
		}
		label := "" // it may stand for the rate
		for _, a := range attrs {
			if err := d.property(&l, a.name, a.value, pictures...); err != nil {
				return err
			}
			if a.name == "label" {
				label = a.value
			}
		}
		if l.Rate == 0 && strings.ContainsAny(label, "0123456789") {
			d.Notes.Add(d.file, line, "attribute label of links")
		}
		if other := labelRate(label, l.Rate); other != "" {
			d.doubt("label", line, fmt.Sprintf("the label of a link says %s, and its rate is %v, which counts",
				clip.Text(other), l.Rate))
		}
		if err := d.link(l); err != nil {
			return err
		}
	}
	return nil
}

// labelRate returns the rate that the label of a link says if the link has another rate, else "".
// A number without a unit may be anything.
func labelRate(label string, rate units.Bandwidth) (other string) {
	if rate == 0 {
		return ""
	}
	words := strings.FieldsFunc(label, func(r rune) bool { return strings.ContainsRune(" ,;/()[]|\n", r) })
	for i, word := range words {
		if i+1 < len(words) && isNumber(word) {
			word += words[i+1]
		}
		if says, err := rateOf(word); err != nil || isNumber(word) {
			continue
		} else if says == rate {
			return ""
		}
		other = word
	}
	return other
}

// defaults refuses what nodes or links have unless they say it themselves: few programs write that.
func (d *dot) defaults(of string, attrs []attribute, line int) error {
	things, silent := "nodes", pictures
	switch of {
	case "edge":
		things = "links"
	case "graph":
		things, silent = "the graph", layouts
	}
	for _, a := range attrs {
		used, _ := new(Link).property(a.name, "1")
		switch {
		case used:
			return graph.Errorf(d.file, line, "defaults of links are not understood; give each link its %s", a.name)
		case of == "node" && isRole(a.name):
			return graph.Errorf(d.file, line, "defaults of nodes are not understood; give each node its %s", a.name)
		case !slices.Contains(silent, strings.ToLower(a.name)):
			d.Notes.Add(d.file, line, "attribute "+clip.Text(a.name)+" of "+things)
		}
	}
	return nil
}

var errAttributes = errors.New("expected attributes such as [rate=100Gbps]")

// maxAttributes bounds those of one node or link.
const maxAttributes = 1000

// attribute is a name with its value.
type attribute struct{ name, value string }

// attributes reads lists such as [rate=100Gbps, delay=1us], if there are any, in their order.
func (d *dot) attributes() (attrs []attribute, err error) {
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
				return nil, d.errorf("%q: %w", clip.Text(name.text), errAttributes)
			}
			sign, err := d.next()
			if err != nil {
				return nil, err
			}
			if !sign.sign || sign.text != "=" {
				return nil, d.errorf("%q: %w", clip.Text(sign.text), errAttributes)
			}
			value, err := d.next()
			if err != nil {
				return nil, err
			}
			if attrs = append(attrs, attribute{name.text, value.text}); len(attrs) > maxAttributes {
				return nil, d.errorf("more than %d attributes; expected fewer", maxAttributes)
			}
		}
	}
}
