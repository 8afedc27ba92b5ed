package topology

import (
	"errors"
	"fmt"
	"strconv"

	"weft/units"
)

// Build makes the graph that t describes, with its routes. If t describes no network, the error
// names the setting, its value and what would be right; all errors in a custom list are joined.
//
// Every host has exactly one link that is up, to a switch. Hosts that cannot reach each other are
// an error.
func Build(t Spec) (*Graph, error) {
	b := &builder{t: t, g: &Graph{
		reference: t.MTU,
		nodes:     make(map[string]NodeID),
		links:     make(map[string]LinkID),
	}}
	if err := b.generate(); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	if err := b.finish(); err != nil {
		return nil, fmt.Errorf("topology: %s: %w", b.g.Title, err)
	}
	return b.g, nil
}

// builder collects the nodes and links of a graph, hosts before switches.
type builder struct {
	t    Spec
	g    *Graph
	errs []error
}

// finish removes the links that are down, checks that the rest is one network, and computes its
// routes.
func (b *builder) finish() error {
	g := b.g
	for _, name := range b.t.Down {
		id, ok := g.LinkNamed(name)
		if !ok {
			b.fail("down: no link is named %q", name)
			continue
		}
		g.Links[id].Down = true
	}
	for i := range g.Links {
		b.checkLink(&g.Links[i])
	}
	if len(b.errs) > 0 {
		return errors.Join(b.errs...)
	}
	b.connect()
	if err := g.attach(); err != nil {
		return err
	}
	if err := g.checkReach(); err != nil {
		return err
	}
	if err := g.route(b.t.UpDown); err != nil {
		return err
	}
	if b.t.Detours() && !b.t.UpDown {
		g.detour()
	}
	return nil
}

// checkLink adds the errors of a link.
func (b *builder) checkLink(l *Link) {
	if l.Rate <= 0 {
		b.fail("link %s: rate %v: want more than 0", l.Name, l.Rate)
	}
	if l.Delay < 0 {
		b.fail("link %s: delay %v: want 0 or more", l.Name, l.Delay)
	}
}

// connect fills Adjacent. All lists are cut from one array.
func (b *builder) connect() {
	g := b.g
	degree := make([]int32, len(g.Nodes))
	total := 0
	for i := range g.Links {
		if l := &g.Links[i]; !l.Down {
			degree[l.A]++
			degree[l.B]++
			total += 2
		}
	}
	g.Adjacent = make([][]LinkID, len(g.Nodes))
	room := make([]LinkID, 0, total)
	for n, d := range degree {
		g.Adjacent[n] = room[len(room) : len(room) : len(room)+int(d)]
		room = room[:len(room)+int(d)]
	}
	for i := range g.Links {
		if l := &g.Links[i]; !l.Down {
			g.Adjacent[l.A] = append(g.Adjacent[l.A], l.ID)
			g.Adjacent[l.B] = append(g.Adjacent[l.B], l.ID)
		}
	}
}

// node adds a node and returns its number. A name that is already taken is an error.
func (b *builder) node(name string, kind NodeKind, tier string) NodeID {
	g := b.g
	id := NodeID(len(g.Nodes))
	n := Node{ID: id, Name: name, Kind: kind, Tier: tier}
	if kind == Host {
		n.Addr = HostAddr(id).String()
		g.Hosts++
	}
	if _, taken := g.nodes[name]; taken {
		b.fail("two nodes are named %q", name)
	}
	g.nodes[name] = id
	g.Nodes = append(g.Nodes, n)
	return id
}

// many adds n nodes named prefix0, prefix1, ... and returns the first.
func (b *builder) many(n int, prefix string, kind NodeKind, tier string) NodeID {
	first := NodeID(len(b.g.Nodes))
	for i := range n {
		b.node(prefix+strconv.Itoa(i), kind, tier)
	}
	return first
}

// link adds a link from a to b and names it after them.
func (b *builder) link(from, to NodeID, tier string, s LinkSpec) {
	g := b.g
	name := g.Nodes[from].Name + "-" + g.Nodes[to].Name
	base := name
	for n := 2; ; n++ {
		id, taken := g.links[name]
		if !taken {
			break
		}
		if l := &g.Links[id]; l.A != from || l.B != to {
			b.fail("the links %s to %s and %s to %s would both be named %q",
				g.Nodes[l.A].Name, g.Nodes[l.B].Name, g.Nodes[from].Name, g.Nodes[to].Name, name)
			break
		}
		name = fmt.Sprintf("%s#%d", base, n)
	}
	id := LinkID(len(g.Links))
	g.links[name] = id
	g.Links = append(g.Links, Link{
		ID: id, A: from, B: to, Name: name, Tier: tier, Link: s.Link,
	})
}

// fail adds an error.
func (b *builder) fail(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

// tier returns the settings of the links of a tier: its own if the lab gives any, otherwise the
// default. A rate of 0 in its own settings means that only others were given.
func (b *builder) tier(name string) LinkSpec {
	s, ok := b.t.Tiers[name]
	if !ok {
		return b.t.Link
	}
	if s.Rate == 0 {
		s.Rate = b.t.Link.Rate
	}
	return s
}

// Limits on the size of a graph. Ours: they catch a slip of the pen before it takes the machine's
// memory, and allow every network up to MaxHosts that a fat-tree or a leaf-spine of usual
// proportions makes.
const (
	maxSwitches = 1 << 15
	maxLinks    = 1 << 20
)

// checkSize returns an error if a graph would be too large or have no pair of hosts.
func checkSize(hosts, switches, links int64) error {
	switch {
	case hosts < 2:
		return fmt.Errorf("%d hosts: want at least 2", hosts)
	case hosts > MaxHosts:
		return fmt.Errorf("%d hosts: want at most %d", hosts, MaxHosts)
	case switches > maxSwitches:
		return fmt.Errorf("%d switches: want at most %d", switches, maxSwitches)
	case links > maxLinks:
		return fmt.Errorf("%d links: want at most %d", links, maxLinks)
	}
	return nil
}

// attach finds the switch of every host.
func (g *Graph) attach() error {
	r := &Routes{
		hosts:  g.Hosts,
		home:   make([]int32, g.Hosts),
		uplink: make([]LinkID, g.Hosts),
	}
	index := make([]int32, len(g.Nodes)) // 1 + index among the homes, 0: not one yet
	for h := range g.Hosts {
		links := g.Adjacent[h]
		if len(links) == 0 {
			return g.unreachable(NodeID(h))
		}
		if len(links) > 1 {
			return fmt.Errorf("host %s has %d links: want exactly one, to a switch", g.Nodes[h].Name, len(links))
		}
		sw := g.Links[links[0]].Other(NodeID(h))
		if g.Nodes[sw].Kind != Switch {
			return fmt.Errorf("link %s joins two hosts: want a switch at one end", g.Links[links[0]].Name)
		}
		if index[sw] == 0 {
			r.homes = append(r.homes, sw)
			index[sw] = int32(len(r.homes))
		}
		r.home[h], r.uplink[h] = index[sw]-1, links[0]
	}
	g.routes = r
	return nil
}

// checkReach returns an error if two hosts cannot reach each other.
func (g *Graph) checkReach() error {
	seen := make([]bool, len(g.Nodes))
	queue := []NodeID{g.routes.homes[0]}
	seen[queue[0]] = true
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, l := range g.Adjacent[n] {
			if m := g.Links[l].Other(n); !seen[m] && g.Nodes[m].Kind == Switch {
				seen[m] = true
				queue = append(queue, m)
			}
		}
	}
	for h := range g.Hosts {
		if !seen[g.Home(NodeID(h))] {
			return g.unreachable(NodeID(h))
		}
	}
	return nil
}

// unreachable returns the error of a host that host 0 cannot reach; for host 0 itself, that of host
// 1.
func (g *Graph) unreachable(h NodeID) error {
	a, b := NodeID(0), h
	if h == 0 {
		b = 1
	}
	return fmt.Errorf("hosts %s and %s cannot reach each other over links that are up", g.Nodes[a].Name,
		g.Nodes[b].Name)
}

// rateOver returns the rate of each of n uplinks, to the nearest bit per second, if hosts links of
// rate r offer oversub times what the uplinks carry.
func rateOver(hosts int, r units.Bandwidth, n int, oversub float64) units.Bandwidth {
	return units.Bandwidth(float64(hosts)*float64(r)/(float64(n)*oversub) + 0.5)
}
