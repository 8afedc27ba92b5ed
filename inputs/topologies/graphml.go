package topologies

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"weft/collectives/graph"
)

func looksGraphML(text []byte) bool {
	return bytes.Contains(text[:min(len(text), 1<<12)], []byte("<graphml"))
}

// readGraphML reads a graph in GraphML. The data of nodes and links count by the names of their
// keys: a node's type, role, kind or function, and a link's rate and delay.
func readGraphML(file string, text []byte) (*Network, error) {
	type data struct {
		Key  string `xml:"key,attr"`
		Text string `xml:",chardata"`
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	names := map[string]string{} // of keys
	kinds := map[string]string{}
	n := &Network{}
	at := func() int {
		line, _ := d.InputPos()
		return line
	}
	graphs := 0
	for {
		t, err := d.Token()
		if t == nil && err != nil {
			if err.Error() == "EOF" {
				break
			}
			return nil, &graph.Error{At: fmt.Sprintf("%s:%d", file, at()), Err: err}
		}
		start, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		attr := func(name string) string {
			for _, a := range start.Attr {
				if a.Name.Local == name {
					return a.Value
				}
			}
			return ""
		}
		var inside struct {
			Data  []data     `xml:"data"`
			Graph []struct{} `xml:"graph"`
			Hyper []struct{} `xml:"endpoint"`
		}
		line := at()
		switch start.Name.Local {
		case "graph":
			if graphs++; graphs > 1 {
				return nil, graph.Errorf(file, line, "a second graph; expected one")
			}
			continue
		case "key":
			names[attr("id")] = attr("attr.name")
			continue
		case "hyperedge":
			return nil, graph.Errorf(file, line, "a hyperedge; expected links between two nodes")
		case "node", "edge":
			if err := d.DecodeElement(&inside, &start); err != nil {
				return nil, &graph.Error{At: fmt.Sprintf("%s:%d", file, line), Err: err}
			}
		default:
			continue
		}
		if len(inside.Graph) > 0 {
			return nil, graph.Errorf(file, line, "a graph within a node; expected one graph")
		}
		if start.Name.Local == "node" {
			n.Nodes = append(n.Nodes, Node{Name: attr("id")})
			for _, x := range inside.Data {
				switch strings.ToLower(names[x.Key]) {
				case "type", "role", "kind", "function":
					kinds[attr("id")] = strings.ToLower(strings.TrimSpace(x.Text))
				}
			}
			continue
		}
		l := Link{A: attr("source"), B: attr("target"), Line: line}
		for _, x := range inside.Data {
			if _, err := l.property(names[x.Key], strings.TrimSpace(x.Text)); err != nil {
				return nil, &graph.Error{At: fmt.Sprintf("%s:%d", file, line), Err: err}
			}
		}
		n.Links = append(n.Links, l)
	}
	n.byDegree(func(name string) (bool, bool) {
		isSwitch, ok := roles[kinds[name]]
		return isSwitch, ok
	})
	return n, nil
}
