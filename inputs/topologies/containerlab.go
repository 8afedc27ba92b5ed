package topologies

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"weft/collectives/graph"
	"weft/internal/clip"
)

func looksContainerlab(text []byte) bool {
	var head struct {
		Topology yaml.Node `yaml:"topology"`
	}
	return len(text) <= maxYAML && yaml.Unmarshal(text, &head) == nil && head.Topology.Kind == yaml.MappingNode
}

// maxYAML is the maximum size of a YAML file in bytes.
const maxYAML = 4 << 20

// readContainerlab reads the nodes and links of a containerlab topology. A node of kind linux with
// one link is a host; all others are switches. Programs, images and addresses are not part of the
// network and stay behind.
func readContainerlab(file string, text []byte) (*Network, error) {
	type node struct {
		Kind  string `yaml:"kind"`
		Group string `yaml:"group"`
	}
	var lab struct {
		Topology struct {
			Defaults node            `yaml:"defaults"`
			Groups   map[string]node `yaml:"groups"`
			Nodes    yaml.Node       `yaml:"nodes"`
			Links    []yaml.Node     `yaml:"links"`
		} `yaml:"topology"`
	}
	if err := yaml.Unmarshal(text, &lab); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	n := &Network{}
	kinds := map[string]string{}
	t := &lab.Topology
	for i := 0; i+1 < len(t.Nodes.Content); i += 2 {
		name := t.Nodes.Content[i].Value
		var x node
		if err := t.Nodes.Content[i+1].Decode(&x); err != nil {
			return nil, graph.Errorf(file, t.Nodes.Content[i+1].Line, "node %s: %w", clip.Text(name), err)
		}
		for _, kind := range []string{x.Kind, t.Groups[x.Group].Kind, t.Defaults.Kind} {
			if kind != "" {
				kinds[name] = kind
				break
			}
		}
		n.Nodes = append(n.Nodes, Node{Name: name})
	}
	for i := range t.Links {
		var x struct {
			Endpoints []yaml.Node `yaml:"endpoints"`
			Type      string      `yaml:"type"`
		}
		line := t.Links[i].Line
		if err := t.Links[i].Decode(&x); err != nil {
			return nil, graph.Errorf(file, line, "link: %w", err)
		}
		if x.Type != "" && x.Type != "veth" || len(x.Endpoints) != 2 {
			return nil, graph.Errorf(file, line,
				"a link of type %q with %d endpoints; expected a veth between two nodes",
				clip.Text(x.Type), len(x.Endpoints))
		}
		var ends [2]string
		for k := range x.Endpoints {
			var end struct {
				Node string `yaml:"node"`
			}
			if x.Endpoints[k].Kind == yaml.ScalarNode {
				end.Node, _, _ = strings.Cut(x.Endpoints[k].Value, ":")
			} else if err := x.Endpoints[k].Decode(&end); err != nil {
				return nil, graph.Errorf(file, line, "endpoint: %w", err)
			}
			ends[k] = end.Node
		}
		n.Links = append(n.Links, Link{A: ends[0], B: ends[1], Line: line})
	}
	n.byDegree(func(name string) (bool, bool) { return true, kinds[name] != "linux" })
	return n, nil
}
