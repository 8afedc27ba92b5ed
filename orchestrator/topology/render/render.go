package render

import (
	"fmt"
	"strings"

	"weft/orchestrator/topology"
	"weft/units"
)

// Formats lists the formats of Graph.
func Formats() []string { return []string{"text", "svg", "dot", "mermaid", "yaml"} }

// Graph draws g under a title in one of Formats; another format is an error.
func Graph(format, title string, g *topology.Graph) (string, error) {
	switch format {
	case "text":
		return Text(title, g), nil
	case "svg":
		return SVG(title, g), nil
	case "dot":
		return DOT(title, g), nil
	case "mermaid":
		return Mermaid(title, g), nil
	case "yaml":
		return YAML(g), nil
	}
	return "", fmt.Errorf("graph format %q: want one of %s", format, strings.Join(Formats(), ", "))
}

// nodeTier is the nodes of one tier, in order.
type nodeTier struct {
	name  string
	nodes []topology.NodeID
}

func nodeTiers(g *topology.Graph) []nodeTier {
	var tiers []nodeTier
	index := make(map[string]int)
	for _, n := range g.Nodes {
		i, ok := index[n.Tier]
		if !ok {
			i = len(tiers)
			index[n.Tier] = i
			tiers = append(tiers, nodeTier{name: n.Tier})
		}
		tiers[i].nodes = append(tiers[i].nodes, n.ID)
	}
	return tiers
}

// settings are the properties of a link.
type settings struct {
	rate  units.Bandwidth
	delay units.Time
}

func (s settings) String() string { return fmt.Sprintf("%v, %v", s.rate, s.delay) }

func settingsOf(l *topology.Link) settings { return settings{l.Rate, l.Delay} }

// linkTier is the links of one tier, in order.
type linkTier struct {
	name  string
	links []topology.LinkID
	usual settings // of most links that are up; in a tie, the first
	odd   int      // number of links that are up and differ
	down  int
}

func linkTiers(g *topology.Graph) []linkTier {
	var tiers []linkTier
	index := make(map[string]int)
	for i := range g.Links {
		l := &g.Links[i]
		k, ok := index[l.Tier]
		if !ok {
			k = len(tiers)
			index[l.Tier] = k
			tiers = append(tiers, linkTier{name: l.Tier})
		}
		tiers[k].links = append(tiers[k].links, l.ID)
	}
	for i := range tiers {
		tiers[i].count(g)
	}
	return tiers
}

// count finds the usual settings of the tier.
func (t *linkTier) count(g *topology.Graph) {
	number := make(map[settings]int)
	for _, id := range t.links {
		l := &g.Links[id]
		if l.Down {
			t.down++
			continue
		}
		number[settingsOf(l)]++
	}
	up := len(t.links) - t.down
	for _, id := range t.links { // in order, so that the first of a tie wins
		if s := settingsOf(&g.Links[id]); number[s] > number[t.usual] || number[t.usual] == 0 {
			t.usual = s
		}
	}
	t.odd = up - number[t.usual]
}

// note says how a link differs from the usual settings of its tier: "", its settings, or "down".
func note(l *topology.Link, usual settings) string {
	switch {
	case l.Down:
		return "down"
	case settingsOf(l) != usual:
		return settingsOf(l).String()
	}
	return ""
}

// usual returns, per link, the usual settings of its tier.
func usual(g *topology.Graph, tiers []linkTier) []settings {
	s := make([]settings, len(g.Links))
	for _, t := range tiers {
		for _, id := range t.links {
			s[id] = t.usual
		}
	}
	return s
}

// describe summarizes the links of the tier in one line: "edge links: 100Gbps, 1us (2 differ, 1
// down)".
func (t *linkTier) describe() string {
	var but []string
	if t.odd > 0 {
		but = append(but, fmt.Sprintf("%d differ", t.odd))
	}
	if t.down > 0 {
		but = append(but, fmt.Sprintf("%d down", t.down))
	}
	s := fmt.Sprintf("%s links: %v", t.name, t.usual)
	if len(but) > 0 {
		s += " (" + strings.Join(but, ", ") + ")"
	}
	return s
}

// span names the first and the last of a list of nodes.
func span(g *topology.Graph, nodes []topology.NodeID) string {
	return ends(len(nodes), func(i int) string { return g.Nodes[nodes[i]].Name })
}

// ends formats the first and the last of n things: "h0 .. h15", "h0 h1", "h0".
func ends(n int, at func(int) string) string {
	switch n {
	case 1:
		return at(0)
	case 2:
		return at(0) + " " + at(1)
	}
	return at(0) + " .. " + at(n-1)
}
