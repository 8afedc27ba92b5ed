package topologies

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
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
	depth, graphs, line := 0, 0, 1
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
			depth--
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		if depth++; depth > maxDepth {
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
		case "graphml", "desc":
		case "graph":
			if graphs++; graphs > 1 {
				return fail("a second graph; expected one")
			}
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
			var inside struct {
				Data []struct {
					Key  string `xml:"key,attr"`
					Text string `xml:",chardata"`
				} `xml:"data"`
				Graph []struct{} `xml:"graph"`
			}
			if err := d.DecodeElement(&inside, &start); err != nil {
				return graph.At(fmt.Sprintf("%s:%d", n.file, line), err)
			}
			depth--
			if len(inside.Graph) > 0 {
				return fail("a graph within a node; expected one graph")
			}
			l := Link{A: attr("source"), B: attr("target"), Line: line}
			if name == "node" {
				if _, err := n.newNode(attr("id"), line); err != nil {
					return err
				}
			}
			for _, x := range inside.Data {
				key, text := cmp.Or(keys[x.Key], x.Key), strings.TrimSpace(x.Text)
				switch {
				case name == "edge":
					if err := n.property(&l, key, text); err != nil {
						return err
					}
				case isRole(key):
					if err := n.call(attr("id"), text, line); err != nil {
						return err
					}
				default:
					n.Notes.Add(n.file, line, "attribute "+clip.Text(key)+" of nodes")
				}
			}
			if name == "edge" {
				if err := n.link(l); err != nil {
					return err
				}
			}
		default:
			n.Notes.Add(n.file, line, "<"+clip.Text(name)+">")
		}
	}
	return n.finish(n.called)
}
