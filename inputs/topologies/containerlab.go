package topologies

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"weft/collectives/graph"
	"weft/inputs/source"
	"weft/internal/clip"
)

// looksContainerlab is tried last: any other YAML file is a containerlab file with an error.
func looksContainerlab(file string, head []byte) bool {
	ext := path.Ext(strings.TrimSuffix(file, ".gz"))
	return ext == ".yml" || ext == ".yaml" || topologyKey.Match(head)
}

var topologyKey = regexp.MustCompile(`(?m)^"?topology"?\s*:`)

// maxYAML is the maximum size of a YAML file in bytes.
const maxYAML = 4 << 20

// yamlError returns an error of yaml with its place.
func yamlError(file string, err error) error {
	line, text := source.PlainYAML(err)
	if kind, ok := strings.CutPrefix(text, "cannot unmarshal !!"); ok {
		kind, _, _ = strings.Cut(kind, " ")
		text = "a " + kind + " where another kind of value belongs"
	}
	return graph.Errorf(file, line, "%s; expected the YAML of containerlab", text)
}

// noteKeys notes keys that are not used.
func (n *Network) noteKeys(keys map[string]yaml.Node, of string) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		n.Notes.Add(n.file, keys[key].Line, "attribute "+clip.Text(key)+" of "+of)
	}
}

// clabFile is a containerlab file. Other holds the keys that are not used.
type clabFile struct {
	Topology struct {
		Defaults clabNode             `yaml:"defaults"`
		Groups   map[string]clabNode  `yaml:"groups"`
		Kinds    yaml.Node            `yaml:"kinds"`
		Nodes    yaml.Node            `yaml:"nodes"`
		Links    []yaml.Node          `yaml:"links"`
		Other    map[string]yaml.Node `yaml:",inline"`
	} `yaml:"topology"`
	Name  string               `yaml:"name"`
	Other map[string]yaml.Node `yaml:",inline"`
}

// clabNode is a node of it, or the defaults of some.
type clabNode struct {
	Kind  string               `yaml:"kind"`
	Group string               `yaml:"group"`
	Other map[string]yaml.Node `yaml:",inline"`
}

// noteUnused notes what is not used outside of nodes and links.
func (n *Network) noteUnused(lab *clabFile) {
	t := &lab.Topology
	n.noteKeys(lab.Other, "the file")
	n.noteKeys(t.Other, "topology")
	n.noteKeys(t.Defaults.Other, "defaults")
	for _, group := range slices.Sorted(maps.Keys(t.Groups)) {
		n.noteKeys(t.Groups[group].Other, "groups")
	}
	if t.Kinds.Kind != 0 {
		n.Notes.Add(n.file, t.Kinds.Line, "attribute kinds of topology")
	}
}

// readContainerlab reads the nodes and links of a containerlab topology. A node of kind linux with
// one link is a host; all others are switches. Programs, images and addresses are not part of the
// network and stay behind.
func readContainerlab(n *Network, r io.Reader) (err error) {
	defer func() {
		if p := recover(); p != nil { // hostile text makes the library panic
			err = graph.Errorf(n.file, 1, "YAML that cannot be read (%v); expected that of containerlab", p)
		}
	}()
	text, err := io.ReadAll(io.LimitReader(r, maxYAML+1))
	switch {
	case err != nil:
		return graph.At(n.file, err)
	case len(text) > maxYAML:
		return graph.Errorf(n.file, 1+bytes.Count(text, []byte("\n")),
			"more than %d MiB of YAML; expected a smaller file", maxYAML>>20)
	}
	var lab clabFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&lab); err != nil && !errors.Is(err, io.EOF) {
		return yamlError(n.file, err)
	}
	var second yaml.Node
	switch err := d.Decode(&second); {
	case err == nil:
		return graph.Errorf(n.file, second.Line, "a second document begins here; expected one: one file is one network")
	case !errors.Is(err, io.EOF):
		return yamlError(n.file, err)
	}
	kinds := map[string]string{}
	t := &lab.Topology
	if t.Nodes.Kind != yaml.MappingNode {
		return graph.Errorf(n.file, max(1, t.Nodes.Line),
			"no topology.nodes; expected those of containerlab by their names")
	}
	n.noteUnused(&lab)
	for i := 0; i+1 < len(t.Nodes.Content); i += 2 {
		name := t.Nodes.Content[i].Value
		var x clabNode
		if err := t.Nodes.Content[i+1].Decode(&x); err != nil {
			return yamlError(n.file, err)
		}
		n.noteKeys(x.Other, "nodes")
		for _, kind := range []string{x.Kind, t.Groups[x.Group].Kind, t.Defaults.Kind} {
			if kind != "" {
				kinds[name] = kind
				break
			}
		}
		if _, err := n.newNode(name, t.Nodes.Content[i].Line); err != nil {
			return err
		}
	}
	for i := range t.Links {
		var x struct {
			Endpoints []yaml.Node          `yaml:"endpoints"`
			Type      string               `yaml:"type"`
			Other     map[string]yaml.Node `yaml:",inline"`
		}
		line := t.Links[i].Line
		if err := t.Links[i].Decode(&x); err != nil {
			return yamlError(n.file, err)
		}
		if x.Type != "" && x.Type != "veth" || len(x.Endpoints) != 2 {
			return graph.Errorf(n.file, line, "a link of type %q with %d endpoints; expected a veth between two nodes",
				clip.Text(x.Type), len(x.Endpoints))
		}
		n.noteKeys(x.Other, "links")
		l := Link{Line: line}
		for k, to := range []*string{&l.A, &l.B} {
			var end struct {
				Node      string `yaml:"node"`
				Interface string `yaml:"interface"`
			}
			if x.Endpoints[k].Kind == yaml.ScalarNode {
				end.Node, end.Interface, _ = strings.Cut(x.Endpoints[k].Value, ":")
			} else if err := x.Endpoints[k].Decode(&end); err != nil {
				return yamlError(n.file, err)
			}
			*to, l.ports[k] = end.Node, end.Interface
		}
		if err := n.link(l); err != nil {
			return err
		}
	}
	return n.finish(func(name string) (bool, bool) { return true, kinds[name] != "linux" })
}
