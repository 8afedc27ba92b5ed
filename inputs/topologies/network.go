package topologies

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/collectives/graph"
	"weft/inputs/source"
	"weft/internal/clip"
	"weft/params"
	"weft/units"
)

// Network is a network of hosts and switches.
type Network struct {
	Format string      // name of the format it was in
	Nodes  []Node      // in the order of the file
	Links  []Link      // in the order of the file
	Notes  graph.Notes // what the file says and the network does not need

	file   string         // for errors
	known  map[string]int // index of a node by its name
	strict bool           // the file says that two nodes have one link at most
	doubts []doubt
}

// doubt is a kind of thing that a file may mean otherwise than it was understood.
type doubt struct {
	kind, text  string // of the first
	line, count int
}

// doubt keeps a sentence for the notes: the first of a kind.
func (n *Network) doubt(kind string, line int, text string) {
	for i := range n.doubts {
		if n.doubts[i].kind == kind {
			n.doubts[i].count++
			return
		}
	}
	n.doubts = append(n.doubts, doubt{kind, text, line, 1})
}

// Node is a host or a switch.
type Node struct {
	Name   string
	Switch bool
	Line   int    // in the file, where it comes first
	links  int    // number of its links; finish counts them
	role   string // by which the file calls it
}

// Link is a link between two nodes, by their names. What the file does not say is the lab's.
type Link struct {
	A, B    string
	Rate    units.Bandwidth // 0: the file does not say
	Delay   units.Time
	Delayed bool    // the file says the delay, which may be 0
	Loss    float64 // share of packets, 0 to below 1
	Line    int     // in the file
	lossy   bool    // the file says the loss, which may be 0

	ports    [2]string // of A and B, as the file names them; empty: it does not
	directed bool      // the file says from A to B
}

// Bounds of a network.
const (
	maxNodes = 1 << 15
	maxLinks = 1 << 18
)

// format is the registration of a format.
type format struct {
	name  string
	looks func(file string, head []byte) bool // reports whether a file that begins with head is one
	read  func(n *Network, r io.Reader) error // fills in n; its errors have the file and the line
}

// formats are tried in this order: the first that recognizes a file reads it.
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

// Parse reads a network in whichever format it is. It has at least two hosts, each with one link.
// The errors have the file and the line.
func Parse(file string, r io.Reader) (*Network, error) {
	in := bufio.NewReaderSize(r, source.HeadSize)
	head, err := in.Peek(source.HeadSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, graph.At(file+":1", err)
	}
	for _, f := range formats {
		if !f.looks(file, head) {
			continue
		}
		n := &Network{Format: f.name, file: file, known: map[string]int{}}
		if err := f.read(n, in); err != nil {
			return nil, err
		}
		return n, n.check()
	}
	return nil, graph.Errorf(file, 1, "%w; expected one of %s", ErrFormat, strings.Join(Formats(), ", "))
}

// ErrFormat is wrapped by the error about a file that begins like none of the formats.
var ErrFormat = errors.New("unknown format")

// Detect returns the name of the format of a file that begins with head, or "" if it is no network.
// It does not tell YAML for containerlab from other YAML.
func Detect(file string, head []byte) string {
	for _, f := range formats {
		if f.name != "containerlab" && f.looks(file, head) {
			return f.name
		}
	}
	return ""
}

// node adds a node, unless it is known.
func (n *Network) node(name string, line int) (*Node, error) {
	if i, ok := n.known[name]; ok {
		return &n.Nodes[i], nil
	}
	switch {
	case !nodeName.MatchString(name):
		return nil, graph.Errorf(n.file, line, "node %q; expected a name of at most 63 letters a-z, digits and -, "+
			"which begins with a letter or digit: rename it", clip.Text(name))
	case len(n.Nodes) == maxNodes:
		return nil, graph.Errorf(n.file, line, "more than %d nodes; expected a smaller network", maxNodes)
	}
	n.known[name] = len(n.Nodes)
	n.Nodes = append(n.Nodes, Node{Name: name, Line: line})
	return &n.Nodes[len(n.Nodes)-1], nil
}

// nodeName matches the name of a host.
var nodeName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// newNode is node for one that must not be known.
func (n *Network) newNode(name string, line int) (*Node, error) {
	if i, ok := n.known[name]; ok {
		return nil, graph.Errorf(n.file, line, "node %s is on line %d, too; expected each once", clip.Text(name),
			n.Nodes[i].Line)
	}
	return n.node(name, line)
}

// link adds a link.
func (n *Network) link(l Link) error {
	switch {
	case l.A == l.B:
		return graph.Errorf(n.file, l.Line, "a link of node %s with itself; expected two nodes", clip.Text(l.A))
	case len(n.Links) == maxLinks:
		return graph.Errorf(n.file, l.Line, "more than %d links; expected a smaller network", maxLinks)
	}
	n.Links = append(n.Links, l)
	return nil
}

// call keeps a word by which the file calls a node, and notes those that are no role. A file may
// have several, such as a type and a function, which must agree.
func (n *Network) call(name, word string, line int) error {
	node := &n.Nodes[n.known[name]]
	isSwitch, ok := roles[strings.ToLower(word)]
	before, had := roles[strings.ToLower(node.role)]
	switch {
	case !ok && word != "":
		n.Notes.Add(n.file, node.Line, "role "+clip.Text(word)+" of nodes")
	case ok && had && isSwitch != before:
		return graph.Errorf(n.file, line, "node %s is called %s and %s; expected a host or a switch", clip.Text(name),
			clip.Text(node.role), clip.Text(word))
	case ok:
		node.role = word
	}
	return nil
}

// called returns whether the word by which the file calls a node is that of a switch.
func (n *Network) called(name string) (isSwitch, ok bool) {
	isSwitch, ok = roles[strings.ToLower(n.Nodes[n.known[name]].role)]
	return isSwitch, ok
}

// isRole reports whether an attribute of a node says whether it is a host.
func isRole(name string) bool {
	return slices.Contains([]string{"function", "role", "type", "kind"}, strings.ToLower(name))
}

// property sets a property of a link by the name that a format has for it, and notes others, except
// those in silent.
func (n *Network) property(l *Link, name, value string, silent ...string) error {
	used, err := l.property(name, value)
	if !used && !slices.Contains(silent, strings.ToLower(name)) {
		n.Notes.Add(n.file, l.Line, "attribute "+clip.Text(name)+" of links")
	}
	if err != nil {
		return &graph.Error{At: fmt.Sprintf("%s:%d", n.file, l.Line), Err: err}
	}
	if lower := strings.ToLower(name); isRate(lower) && lower != rawRate && isNumber(value) {
		n.doubt(lower, l.Line, fmt.Sprintf("%s=%s has no unit and counts bits per second: the link has %v",
			clip.Text(name), clip.Text(value), l.Rate))
	}
	return nil
}

// rawRate is the name of a rate in bits per second in the Topology Zoo, which needs no unit.
const rawRate = "linkspeedraw"

// isRate reports whether a property of a link is its rate, by its name in lower case.
func isRate(name string) bool {
	return slices.Contains([]string{"rate", "bandwidth", "speed", "capacity", rawRate}, name)
}

// isNumber reports whether a text is a number without a unit.
func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// finish makes hosts of the nodes with one link for which kind says nothing: it returns true for a
// switch, false for a host, and ok false if the file does not say. Nodes that their names call
// something else are noted.
func (n *Network) finish(kind func(name string) (isSwitch, ok bool)) error {
	for _, l := range n.Links {
		for _, end := range []string{l.A, l.B} {
			i, ok := n.known[end]
			if !ok {
				return graph.Errorf(n.file, l.Line, "a link of %q, which is no node; expected one of those above",
					clip.Text(end))
			}
			n.Nodes[i].links++
		}
	}
	var doubts [2]struct {
		first *Node
		count int
	}
	const host, manyLinks = 0, 1
	for i := range n.Nodes {
		node := &n.Nodes[i]
		var ok bool
		if node.Switch, ok = kind(node.Name); ok {
			continue
		}
		node.Switch = node.links != 1
		doubt, word := host, strings.TrimRight(node.Name, "-0123456789")
		isSwitch, known := roles[word]
		switch {
		case node.links == 0: // checkLinked names it
			continue
		case !node.Switch && isSwitch:
		case node.Switch && (known && !isSwitch || word == "h"):
			doubt = manyLinks
		default:
			continue
		}
		if doubts[doubt].count++; doubts[doubt].count == 1 {
			doubts[doubt].first = node
		}
	}
	for doubt, text := range []string{
		host:      "host, since it has one link; type=switch makes it a switch",
		manyLinks: "switch without a part in the job, since it has several links; a host has one",
	} {
		if d := doubts[doubt]; d.count > 0 {
			n.Notes.Changed(fmt.Sprintf("node %s is a %s", d.first.Name, text), d.count,
				func() string { return fmt.Sprintf("%s:%d", n.file, d.first.Line) })
		}
	}
	return nil
}

// maxNames bounds the names in a note.
const maxNames = 20

// checkLinked refuses hosts without a link, and notes the names of such switches.
func (n *Network) checkLinked() error {
	var alone []string
	first := 0
	for i := range n.Nodes {
		switch node := &n.Nodes[i]; {
		case node.links > 0:
			continue
		case !node.Switch:
			return graph.Errorf(n.file, node.Line, "host %s has no link; a host has one here", node.Name)
		case len(alone) == 0:
			first = node.Line
		}
		alone = append(alone, n.Nodes[i].Name)
	}
	if len(alone) == 0 {
		return nil
	}
	text := "node " + alone[0] + " is a switch without a part in the job, since it has no link; a host has one"
	if count := len(alone); count > 1 {
		others := ""
		if count > maxNames {
			alone, others = alone[:maxNames], fmt.Sprintf(" and %d others", count-maxNames)
		}
		text = fmt.Sprintf("nodes %s%s are switches without a part in the job, since they have no link; a host has one",
			strings.Join(alone, ", "), others)
	}
	n.Notes.Changed(text, 1, func() string { return fmt.Sprintf("%s:%d", n.file, first) })
	return nil
}

// checkEnds refuses a port with two links, both directions of a link as a link each, and a second
// link of two nodes of a strict graph. It notes directed links.
func (n *Network) checkEnds() error {
	ports, seen, pairs := map[[2]string]int{}, map[[2]string]int{}, map[[2]string]int{}
	directed, first := 0, 0
	for _, l := range n.Links {
		if n.strict {
			pair := [2]string{min(l.A, l.B), max(l.A, l.B)}
			if before, twice := pairs[pair]; twice {
				return graph.Errorf(n.file, l.Line, "a second link of %s and %s, and the graph is strict: it would "+
					"be the one on line %d; expected one of them, or a graph without strict", clip.Text(l.A),
					clip.Text(l.B), before)
			}
			pairs[pair] = l.Line
		}
		for i, end := range [2]string{l.A, l.B} {
			if l.ports[i] == "" {
				continue
			}
			port := [2]string{end, l.ports[i]}
			if before, twice := ports[port]; twice {
				return graph.Errorf(n.file, l.Line, "%s:%s is an end of the link on line %d, too; "+
					"expected another interface", clip.Text(end), clip.Text(l.ports[i]), before)
			}
			ports[port] = l.Line
		}
		if !l.directed {
			continue
		}
		if directed++; directed == 1 {
			first = l.Line
		}
		if l.ports[0] != "" && l.ports[1] != "" {
			continue // the ports tell links apart
		}
		if before, both := seen[[2]string{l.B, l.A}]; both {
			return graph.Errorf(n.file, l.Line, "%s to %s is the other direction of the link on line %d; "+
				"expected each link once: it carries both directions", clip.Text(l.A), clip.Text(l.B), before)
		}
		seen[[2]string{l.A, l.B}] = l.Line
	}
	if directed > 0 {
		n.Notes.Changed("a directed link carries both directions", directed,
			func() string { return fmt.Sprintf("%s:%d", n.file, first) })
	}
	return nil
}

// check returns an error unless there are two hosts, each with one link. It notes what the links
// leave unsaid.
func (n *Network) check() error {
	for _, d := range n.doubts {
		n.Notes.Changed(d.text, d.count, func() string { return fmt.Sprintf("%s:%d", n.file, d.line) })
	}
	if err := n.checkEnds(); err != nil {
		return err
	}
	if err := n.checkLinked(); err != nil {
		return err
	}
	hosts := 0
	for i := range n.Nodes {
		if !n.Nodes[i].Switch {
			hosts++
		}
	}
	count := make([]int, len(n.Nodes))
	for _, l := range n.Links {
		for _, end := range []string{l.A, l.B} {
			i := n.known[end]
			if count[i]++; count[i] > 1 && !n.Nodes[i].Switch {
				return graph.Errorf(n.file, l.Line, "host %s has a second link; a host has one here", end)
			}
		}
	}
	seen := map[[2]string]int{}
	for _, l := range n.Links {
		ends := [2]string{min(l.A, l.B), max(l.A, l.B)}
		if first, twice := seen[ends]; twice && hosts < 2 {
			return graph.Errorf(n.file, l.Line, "%d hosts among %d nodes, and %s and %s have a link on line %d, too; "+
				"expected each link once: nodes with one link are hosts", hosts, len(n.Nodes), l.A, l.B, first)
		}
		seen[ends] = l.Line
	}
	if hosts < 2 {
		return graph.Errorf(n.file, 1, "%d hosts among %d nodes; expected at least 2: nodes with one link, or those "+
			"that the file calls hosts", hosts, len(n.Nodes))
	}
	return nil
}

// roles maps the words by which formats call nodes to whether they are switches.
var roles = map[string]bool{
	"host": false, "server": false, "gpu": false, "client": false, "vm": false, "npu": false,
	"switch": true, "leaf": true, "spine": true, "superspine": true, "super-spine": true, "tor": true, "core": true,
	"aggregation": true, "router": true, "exit": true, "oob-switch": true, "fabric": true,
}

// property sets a property of a link by the name that a format has for it: rate, delay or loss. It
// returns false for any other name. Two values, under any names, are an error: which one counts
// cannot be told.
func (l *Link) property(name, value string) (bool, error) {
	var err error
	twice := func(what string) error {
		return fmt.Errorf("%s is a second %s of this link; expected one", clip.Text(value), what)
	}
	switch name := strings.ToLower(name); {
	case isRate(name):
		if l.Rate != 0 {
			err = twice("rate")
			break
		}
		if l.Rate, err = rateOf(value); err == nil && (l.Rate < units.Kbps || l.Rate > params.MaxRate) {
			err = fmt.Errorf("%s; expected 1kbps to %v, such as 400Gbps: without a unit, it counts bits per second",
				clip.Text(value), units.Bandwidth(params.MaxRate))
		}
	case name == "delay" || name == "latency":
		if l.Delayed {
			err = twice("delay")
			break
		}
		if l.Delay, err = units.ParseTime(value); err == nil && (l.Delay < 0 || l.Delay > units.Second) {
			err = fmt.Errorf("%s; expected 0 to 1s", clip.Text(value))
		}
		l.Delayed = true
	case name == "loss":
		if l.lossy {
			err = twice("loss")
			break
		}
		l.lossy = true
		if percent, ok := strings.CutSuffix(value, "%"); ok {
			l.Loss, err = strconv.ParseFloat(strings.TrimSpace(percent), 64)
			l.Loss /= 100
		} else {
			l.Loss, err = strconv.ParseFloat(value, 64)
		}
		if err != nil || !(l.Loss >= 0 && l.Loss < 1) {
			err = fmt.Errorf("%s; expected a share from 0 to below 1, such as 0.001 or 0.1%%", clip.Text(value))
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

// numbers parses whole numbers from 0 to 2^31-1. It returns false if one of the fields is none.
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
