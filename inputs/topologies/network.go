package topologies

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"weft/collectives/graph"
	"weft/internal/clip"
	"weft/units"
)

// Network is a network of hosts and switches.
type Network struct {
	Format string // its name
	Nodes  []Node
	Links  []Link
}

// Node is a host or a switch.
type Node struct {
	Name   string
	Switch bool
}

// Link is a link between two nodes, by their names. What the file does not say is the lab's.
type Link struct {
	A, B    string
	Rate    units.Bandwidth // 0: the file does not say
	Delay   units.Time
	Delayed bool // the file says the delay, which may be 0
	Loss    float64
	Line    int
}

// Bounds of a network.
const (
	maxText  = 64 << 20
	maxNodes = 1 << 15
	maxLinks = 1 << 18
)

// format is the registration of a format.
type format struct {
	name  string
	looks func(text []byte) bool
	read  func(file string, text []byte) (*Network, error)
}

var formats = []format{
	{"graphml", looksGraphML, readGraphML},
	{"dot", looksDOT, readDOT},
	{"htsim", looksHTSim, readHTSim},
	{"simai", looksNS3, readNS3},
	{"containerlab", looksContainerlab, readContainerlab},
}

// Formats returns the names of all formats.
func Formats() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Parse reads a network.
func Parse(file string, r io.Reader) (*Network, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxText+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxText:
		return nil, fmt.Errorf("%s: more than %v", file, units.Bytes(maxText))
	}
	for _, f := range formats {
		if !f.looks(text) {
			continue
		}
		n, err := f.read(file, text)
		if err != nil {
			return nil, err
		}
		n.Format = f.name
		if len(n.Nodes) > maxNodes || len(n.Links) > maxLinks {
			return nil, fmt.Errorf("%s: %d nodes and %d links; expected at most %d and %d", file, len(n.Nodes),
				len(n.Links),
				maxNodes, maxLinks)
		}
		return n, n.check(file)
	}
	return nil, fmt.Errorf("%s:1: no known format begins so; expected one of %s", file, strings.Join(Formats(), ", "))
}

// check returns an error unless every host has one link and every link two nodes.
func (n *Network) check(file string) error {
	known := map[string]bool{} // name: is a switch
	hosts := 0
	for _, node := range n.Nodes {
		if _, twice := known[node.Name]; twice {
			return fmt.Errorf("%s: node %q is there twice", file, node.Name)
		}
		known[node.Name] = node.Switch
		if !node.Switch {
			hosts++
		}
	}
	count := map[string]int{}
	for _, l := range n.Links {
		for _, end := range []string{l.A, l.B} {
			if _, ok := known[end]; !ok {
				return graph.Errorf(file, l.Line, "a link of %q, which is no node", end)
			}
			if count[end]++; count[end] > 1 && !known[end] {
				return graph.Errorf(file, l.Line, "host %s has a second link; a host has one here", end)
			}
		}
	}
	if hosts < 2 {
		return fmt.Errorf("%s: %d hosts among %d nodes: hosts have one link, or the file says that they are; "+
			"expected at least 2", file, hosts, len(n.Nodes))
	}
	return nil
}

// byDegree makes hosts of the nodes with one link for which kind says nothing: it returns true for
// a switch, false for a host, and ok false if the file does not say.
func (n *Network) byDegree(kind func(name string) (isSwitch, ok bool)) {
	count := map[string]int{}
	for _, l := range n.Links {
		count[l.A]++
		count[l.B]++
	}
	for i := range n.Nodes {
		node := &n.Nodes[i]
		var ok bool
		if node.Switch, ok = kind(node.Name); !ok {
			node.Switch = count[node.Name] != 1
		}
	}
}

// roles are the words by which formats call hosts and switches.
var roles = map[string]bool{
	"host": false, "server": false, "gpu": false, "client": false, "vm": false, "npu": false,
	"switch": true, "leaf": true, "spine": true, "superspine": true, "super-spine": true, "tor": true, "core": true,
	"aggregation": true, "router": true, "exit": true, "oob-switch": true, "fabric": true,
}

// property sets a property of a link by the name that a format has for it. It returns false for a
// name that says nothing about the link's behaviour.
func (l *Link) property(name, value string) (bool, error) {
	var err error
	switch strings.ToLower(name) {
	case "rate", "bandwidth", "speed", "capacity", "linkspeedraw":
		if l.Rate, err = rateOf(value); err == nil && l.Rate <= 0 {
			err = fmt.Errorf("%s; expected more than 0", clip.Text(value))
		}
	case "delay", "latency":
		if l.Delay, err = units.ParseTime(value); err == nil && l.Delay < 0 {
			err = fmt.Errorf("%s; expected 0 or more", clip.Text(value))
		}
		l.Delayed = true
	case "loss":
		l.Loss, err = strconv.ParseFloat(value, 64)
		if err == nil && !(l.Loss >= 0 && l.Loss < 1) {
			err = errors.New("expected a share below 1")
		}
	default:
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

// rateOf parses a rate with a unit, or a number of bits per second.
func rateOf(text string) (units.Bandwidth, error) {
	if x, err := strconv.ParseFloat(text, 64); err == nil && x >= 1 && x <= 1e15 {
		return units.Bandwidth(x), nil
	}
	for _, unit := range []string{"bps", "bit/s", "b/s"} {
		text = strings.TrimSuffix(text, unit)
	}
	return units.ParseBandwidth(text + "bps")
}

// firstLine returns the fields of the first line that is neither empty nor a comment.
func firstLine(text []byte) []string {
	for line := range bytes.Lines(text[:min(len(text), 1<<16)]) {
		if f := strings.Fields(string(line)); len(f) > 0 && f[0][0] != '#' {
			return f
		}
	}
	return nil
}

// numbers parses whole numbers from 0.
func numbers(fields []string) ([]int, bool) {
	all := make([]int, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseInt(f, 10, 32)
		if err != nil || n < 0 {
			return nil, false
		}
		all[i] = int(n)
	}
	return all, true
}
