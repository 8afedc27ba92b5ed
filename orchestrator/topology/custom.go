package topology

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/internal/clip"
	"weft/params"
)

// customKind is the name of the kind of network whose nodes and links are written down.
const customKind = "custom"

// ListKind returns the name of the kind of network that a lab lists node by node and link by link.
func ListKind() string { return customKind }

// Custom has the nodes and links of a network, one by one.
type Custom struct {
	Nodes []CustomNode
	Links []CustomLink

	net *Spec // its Link is the default of all links; nil: there is none
}

// CustomNode is a node of a custom topology.
type CustomNode struct {
	Name   string
	Switch bool
	// Image is the container image with the program of the host; "": the program is the machine's.
	Image string
	// Run is the program and its arguments. If Run and Image are empty, the host runs its part of
	// the workload and nothing else.
	Run []string
	// LabTime says that the clocks of the program show lab time, not the machine's.
	LabTime bool
}

// Programmed reports whether the host runs a program.
func (n *CustomNode) Programmed() bool { return n.Image != "" || n.Run != nil }

// CustomLink is a link of a custom topology, between two nodes by name.
type CustomLink struct {
	A, B string
	LinkSpec
}

// Bounds of a program's arguments and of a custom topology. Ours; the kernel's are larger.
const (
	MaxArguments = 100
	maxArgument  = 4096 // bytes
	maxNodes     = MaxHosts + maxTierSwitches
)

// Keys implements Shape.
func (t *Custom) Keys() []params.Key {
	link := &customLink{net: t.net}
	return []params.Key{
		params.List("nodes", params.ItemsOf(&t.Nodes, maxNodes,
			func(n *CustomNode) params.Key { return params.Each(n) }).
			AtLeast(0, "a list of nodes such as {name: h0} and {name: s0, switch: true}"), "hosts and switches").
			Before(),
		params.List("links", params.ItemsOf(&t.Links, maxLinks,
			func(l *CustomLink) params.Key { link.to = l; return params.Each(link) }).
			AtLeast(0, "a list of links such as {between: [h0, s0]}"), "links between nodes").Before(),
	}
}

// imageText matches the name of an image: registry, path, tag and digest, of which only the path is
// required.
var imageText = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:-]*(/[a-zA-Z0-9][a-zA-Z0-9._-]*)*` +
	`(:[a-zA-Z0-9._-]+)?(@sha256:[0-9a-f]{64})?$`)

// Keys implements params.Section.
func (n *CustomNode) Keys() []params.Key {
	return []params.Key{
		params.New("name", params.Name(&n.Name), "Unique."),
		params.New("switch", params.Flag(&n.Switch), "A switch, not a host.").Default("false", "ours"),
		params.New("image", Image(&n.Image), "Container image of the host (--runtime docker).").OrNone(),
		params.List("run", params.ItemsOf(&n.Run, MaxArguments, func(arg *string) params.Key {
			return params.One(Argument(arg))
		}), "Program and arguments the host runs in emulation; default: the image's."),
		params.New("clock", params.Choice(&n.LabTime, "real", "lab"), "What the clocks of its program show; "+
			"default: real.").OrNone(),
	}
}

// Image is the name of a container image.
func Image(to *string) params.Value {
	return params.Custom(to, func(text string) (string, error) {
		if len(text) > 255 || strings.Contains(text, "..") || !imageText.MatchString(text) {
			return "", fmt.Errorf("%q is not the name of an image; expected one such as alpine:3", clip.Text(text))
		}
		return text, nil
	}, asText, "an image such as alpine:3", func() params.Form { return params.Form{} })
}

// Argument is an argument of a program.
func Argument(to *string) params.Value {
	return params.Custom(to, func(text string) (string, error) {
		if len(text) > maxArgument || strings.ContainsRune(text, 0) {
			return "", fmt.Errorf("%q is no argument; expected at most %d bytes without a zero", clip.Text(text),
				maxArgument)
		}
		return text, nil
	}, asText, "an argument", func() params.Form { return params.Form{Scalar: true} })
}

func asText(text string) string { return text }

// Rules implements params.Ruled.
func (n *CustomNode) Rules(r params.Rules) {
	if n.Run != nil && (len(n.Run) == 0 || n.Run[0] == "") {
		r.Refuse("run", "does not name a program; expected a list such as [iperf3, -s]")
	}
	if n.Switch && n.Programmed() {
		r.Refuse("", "a switch is modelled and cannot run a program; move it to a host")
	}
	if n.LabTime && !n.Programmed() {
		r.Refuse("clock", "this node has no program; expected run or image beside it")
	}
}

// customLink reads the links of a custom topology, one after another, with one list of keys. A lab
// may have thousands of links, and declaring the keys anew for each takes a third of the time of
// reading them.
type customLink struct {
	net  *Spec
	keys []params.Key
	ends []string
	link LinkSpec
	to   *CustomLink // the link being read; Rules fills it in
}

// Keys implements params.Section.
func (l *customLink) Keys() []params.Key {
	link := LinkSpec{}
	if l.net != nil {
		link = l.net.Link
	}
	if l.keys == nil {
		l.keys = append([]params.Key{
			params.List("between", params.ItemsOf(&l.ends, 2,
				func(name *string) params.Key { return params.One(params.Name(name)) }).
				AtLeast(2, "the names of two nodes such as [h0, s0]"), "Two node names."),
		}, l.link.own(link, true)...)
	}
	l.ends = nil
	l.link.inherit(link)
	return l.keys
}

// Rules implements params.Ruled.
func (l *customLink) Rules(params.Rules) {
	l.to.LinkSpec = l.link
	if len(l.ends) == 2 {
		l.to.A, l.to.B = l.ends[0], l.ends[1]
	}
}

func (t *Custom) within(s *Spec) { t.net = s }

func (t *Custom) drawn() ([]CustomNode, []CustomLink) { return t.Nodes, t.Links }

// Hosts implements Shape.
func (t *Custom) Hosts() (hosts int) {
	for _, n := range t.Nodes {
		if !n.Switch {
			hosts++
		}
	}
	return hosts
}

// settle rejects nodes and links that contradict each other.
func (t *Custom) settle(s *Spec, r params.Rules) {
	if len(t.Nodes) > 0 && t.Hosts() == 0 {
		refuseHosts(r, s.Kind, 0)
	}
	nodes := make(map[string]int, len(t.Nodes))
	names := make([]string, len(t.Nodes))
	for i, n := range t.Nodes {
		names[i] = n.Name
		if at, twice := nodes[n.Name]; twice && n.Name != "" {
			r.Refuse(fmt.Sprintf("nodes.%d.name", i), "%q is also the name of node %d; expected a unique name",
				n.Name, at)
		} else {
			nodes[n.Name] = i
		}
	}
	known := make(map[string]int) // link by its name, either end first
	missing := make(map[string]bool)
	refuse := func(path, name string) { // once, however many links have the name
		if !missing[name] {
			r.Refuse(path, "no node is named %q%s", name, r.Nearest(name, names))
		}
		missing[name] = true
	}
	for i, l := range t.Links {
		if l.A == "" || l.B == "" {
			continue // reported already
		}
		a, okA := nodes[l.A]
		b, okB := nodes[l.B]
		between := fmt.Sprintf("links.%d.between", i)
		switch {
		case !okA:
			refuse(between+".0", l.A)
		case !okB:
			refuse(between+".1", l.B)
		case l.A == l.B:
			r.Refuse(between, "joins %s to itself", l.A)
		case !t.Nodes[a].Switch && !t.Nodes[b].Switch:
			r.Refuse(between, "joins two hosts; expected a switch at one end")
		}
		number := "" // of parallel links, from the second on
		for n := 2; hasKey(known, l.A+"-"+l.B+number); n++ {
			number = "#" + strconv.Itoa(n)
		}
		known[l.A+"-"+l.B+number], known[l.B+"-"+l.A+number] = i, i
	}
	t.checkUp(s, r, known)
}

// checkUp rejects unknown names of links that are down, and a host unless it has exactly one link
// that is up.
func (t *Custom) checkUp(s *Spec, r params.Rules, known map[string]int) {
	isDown := make(map[int]bool)
	for i, name := range s.Down {
		link, ok := known[name]
		if !ok && name != "" {
			r.Refuse(fmt.Sprintf("down.%d", i), "no link is named %q; a link is named after its ends, such as h0-s0",
				clip.Text(name))
		}
		isDown[link] = isDown[link] || ok
	}
	up := make(map[string]int)
	unread := false // a link whose ends are not known
	for i, l := range t.Links {
		unread = unread || l.A == "" || l.B == ""
		if !isDown[i] {
			up[l.A]++
			up[l.B]++
		}
	}
	for i, n := range t.Nodes {
		if !n.Switch && n.Name != "" && up[n.Name] != 1 && !(unread && up[n.Name] == 0) {
			r.Refuse(fmt.Sprintf("nodes.%d", i), "host %s has %d links that are not down; expected exactly one",
				n.Name, up[n.Name])
		}
	}
}

func hasKey[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

// parameters are those of an example to be edited: a row of switches with hosts.
func (t *Custom) parameters() []Parameter {
	return []Parameter{
		{"switches", "2", "switches in a row, each linked to the next, to be edited"},
		{"hosts_per_switch", "2", "hosts per switch"},
	}
}

// build adds nodes and links as the lab lists them: hosts in their order, then switches in theirs.
// A link runs from its host to its switch, and between switches as it is written.
func (t *Custom) build(b *builder) error {
	hosts := t.Hosts()
	b.g.Title = fmt.Sprintf("custom, %d hosts, %d switches", hosts, len(t.Nodes)-hosts)
	if err := checkSize(int64(hosts), int64(len(t.Nodes)-hosts), int64(len(t.Links))); err != nil {
		return err
	}
	for _, kind := range []NodeKind{Host, Switch} {
		for _, n := range t.Nodes {
			if n.Name == "" {
				return errors.New("a node has no name")
			}
			if n.Switch == (kind == Switch) {
				b.node(n.Name, kind, kind.String())
			}
		}
	}
	for _, l := range t.Links {
		b.customLink(l)
	}
	if len(b.errs) > 0 {
		return errors.Join(b.errs...)
	}
	return nil
}

// customLink adds a link of a custom topology.
func (b *builder) customLink(l CustomLink) {
	from, okA := b.g.nodes[l.A]
	to, okB := b.g.nodes[l.B]
	switch {
	case !okA:
		b.fail("link %s-%s: no node is named %q", l.A, l.B, l.A)
		return
	case !okB:
		b.fail("link %s-%s: no node is named %q", l.A, l.B, l.B)
		return
	case from == to:
		b.fail("link %s-%s joins a node to itself", l.A, l.B)
		return
	}
	if _, ok := b.g.links[l.B+"-"+l.A]; ok {
		from, to = to, from // parallel to an earlier link: take the same direction
	}
	a, z := b.g.Nodes[from].Kind, b.g.Nodes[to].Kind
	if a == Switch && z == Host {
		from, to = to, from
	}
	tier := "switch"
	if a == Host || z == Host {
		tier = "host"
	}
	if l.Rate == 0 {
		l.Rate = b.t.Link.Rate
	}
	b.link(from, to, tier, l.LinkSpec)
}

// sketch writes the example: a row of switches with hosts, every node and link by its name.
func (t *Custom) sketch(value func(string) string) (string, error) {
	var n [2]int
	for i, name := range []string{"switches", "hosts_per_switch"} {
		var err error
		if n[i], err = strconv.Atoi(value(name)); err != nil || n[i] < 1 || n[i] > 64 {
			return "", fmt.Errorf("%s: %q is not a whole number from 1 to 64", name, value(name))
		}
	}
	var nodes, links strings.Builder
	host := 0
	for s := range n[0] {
		fmt.Fprintf(&nodes, "    - {name: s%d, switch: true}\n", s)
		for range n[1] {
			fmt.Fprintf(&nodes, "    - {name: h%d}\n", host)
			fmt.Fprintf(&links, "    - {between: [h%d, s%d]}\n", host, s)
			host++
		}
		if s > 0 {
			fmt.Fprintf(&links, "    - {between: [s%d, s%d]}\n", s-1, s)
		}
	}
	return "  nodes:\n" + nodes.String() + "  links: # each may have a rate, a delay and a loss of its own\n" +
		links.String(), nil
}
