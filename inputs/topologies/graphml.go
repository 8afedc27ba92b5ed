package topologies

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"weft/collectives/graph"
	"weft/inputs/source"
	"weft/internal/clip"
)

func looksGraphML(_ string, head []byte) bool { return bytes.Contains(head, []byte("<graphml")) }

// maxDepth bounds the elements of XML within each other.
const maxDepth = 16

// readGraphML reads a graph in GraphML. The data of nodes and links count by the names of their
// keys: a node's type, role, kind or function, and a link's rate, delay and loss.
func readGraphML(n *Network, r io.Reader) error {
	values := source.NewValues(n.file, r)
	d := xml.NewDecoder(values)
	keys := map[string]string{} // names by id
	roots, graphs, line := 0, 0, 1
	var open []string // names of the elements that are not closed yet
	directed := false
	var nodes, edges string // how many there are, as the graph says; empty: it does not
	fail := func(format string, args ...any) error { return graph.Errorf(n.file, line, format, args...) }
	for {
		values.Next()
		t, err := d.Token()
		line, _ = d.InputPos()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return graph.At(fmt.Sprintf("%s:%d", n.file, line), err)
		}
		if _, ok := t.(xml.EndElement); ok {
			open = open[:len(open)-1] // the decoder has them in pairs
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		if open = append(open, start.Name.Local); len(open) > maxDepth {
			return fail("elements within each other more than %d times; expected nodes and edges", maxDepth)
		}
		attr := func(name string) string {
			for _, a := range start.Attr {
				if a.Name.Local == name {
					return a.Value
				}
			}
			return ""
		}
		switch name := start.Name.Local; name {
		case "desc":
		case "graphml":
			if roots++; roots > 1 {
				return fail("a second <graphml>; expected one")
			}
		case "graph":
			if graphs++; graphs > 1 {
				return fail("a second graph; expected one")
			}
			directed = attr("edgedefault") == "directed"
			nodes, edges = attr("parse.nodes"), attr("parse.edges")
		case "key":
			if len(keys) == maxNodes {
				return fail("more than %d keys; expected fewer", maxNodes)
			}
			if _, twice := keys[attr("id")]; twice {
				return fail("a second key %s; expected different ids", clip.Text(attr("id")))
			}
			keys[attr("id")] = attr("attr.name")
		case "hyperedge":
			return fail("a hyperedge; expected links between two nodes")
		case "node", "edge":
			if len(open) == 1 || open[len(open)-2] != "graph" {
				return fail("<%s> outside of the graph; expected it between <graph> and </graph>", name)
			}
			x := graphMLItem{start: start, line: line, keys: keys, directed: directed}
			if err := d.DecodeElement(&x.inside, &start); err != nil {
				return graph.At(fmt.Sprintf("%s:%d", n.file, line), err)
			}
			open = open[:len(open)-1]
			if err := n.graphML(&x); err != nil {
				return err
			}
		default:
			n.Notes.Add(n.file, line, "<"+clip.Text(name)+">")
		}
	}
	for _, c := range []struct {
		counted, what string
		found         int
	}{{nodes, "nodes", len(n.Nodes)}, {edges, "edges", len(n.Links)}} {
		if c.counted != "" && c.counted != strconv.Itoa(c.found) {
			return fail("the file ends with %d %s; parse.%s counts %s", c.found, c.what, c.what, clip.Text(c.counted))
		}
	}
	return n.finish(n.called)
}

// graphMLItem is a node or an edge.
type graphMLItem struct {
	start    xml.StartElement
	line     int
	keys     map[string]string // names by id
	directed bool              // edges are, unless they say it themselves
	inside   struct {
		Data []struct {
			Key  string `xml:"key,attr"`
			Text string `xml:",chardata"`
		} `xml:"data"`
		Graph []struct{} `xml:"graph"`
		Other []struct {
			XMLName xml.Name
		} `xml:",any"`
	}
}

// of returns what notes call all items of this kind.
func (x *graphMLItem) of() string {
	if x.start.Name.Local == "edge" {
		return "links"
	}
	return "nodes"
}

// graphML adds a node or a link.
func (n *Network) graphML(x *graphMLItem) error {
	if len(x.inside.Graph) > 0 {
		return graph.Errorf(n.file, x.line, "a graph within a node or an edge; expected one graph")
	}
	for _, o := range x.inside.Other {
		if name := o.XMLName.Local; name != "desc" {
			n.Notes.Add(n.file, x.line, "<"+clip.Text(name)+"> of "+x.of())
		}
	}
	if x.start.Name.Local == "edge" {
		return n.graphMLEdge(x)
	}
	id := ""
	for _, a := range x.start.Attr {
		switch name := a.Name.Local; {
		case name == "id":
			id = a.Value
		case !strings.HasPrefix(name, "parse.") && a.Name.Space == "":
			n.Notes.Add(n.file, x.line, "attribute "+clip.Text(name)+" of nodes")
		}
	}
	if _, err := n.newNode(id, x.line); err != nil {
		return err
	}
	for i := range x.inside.Data {
		key, text := x.data(i)
		if !isRole(key) {
			n.Notes.Add(n.file, x.line, "attribute "+clip.Text(key)+" of nodes")
			continue
		}
		if err := n.call(id, text, x.line); err != nil {
			return err
		}
	}
	return nil
}

// data returns the name and the text of a data element.
func (x *graphMLItem) data(i int) (key, text string) {
	d := &x.inside.Data[i]
	return cmp.Or(x.keys[d.Key], d.Key), strings.TrimSpace(d.Text)
}

// graphMLEdge adds a link.
func (n *Network) graphMLEdge(x *graphMLItem) error {
	l := Link{Line: x.line, directed: x.directed}
	for _, a := range x.start.Attr {
		switch name := a.Name.Local; {
		case name == "source":
			l.A = a.Value
		case name == "target":
			l.B = a.Value
		case name == "sourceport":
			l.ports[0] = a.Value
		case name == "targetport":
			l.ports[1] = a.Value
		case name == "directed":
			l.directed = a.Value == "true"
		case name != "id" && a.Name.Space == "":
			n.Notes.Add(n.file, x.line, "attribute "+clip.Text(name)+" of links")
		}
	}
	for i := range x.inside.Data {
		key, text := x.data(i)
		if err := n.property(&l, key, text); err != nil {
			return err
		}
	}
	return n.link(l)
}
