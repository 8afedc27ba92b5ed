package render

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"weft/internal/plural"
	"weft/orchestrator/topology"
)

// wholeTable is the largest number of links that Text lists one by one. Of larger tiers it shows
// the first sampled links, and up to as many links that are down or differ. Ours: a fat-tree with
// k=4 fits.
const (
	wholeTable = 64
	sampled    = 4
	maxOdd     = 64
)

// Text describes g for a terminal: the tiers, the distances between hosts, and the links, or a
// sample of those in a large network.
func Text(title string, g *topology.Graph) string {
	var b strings.Builder
	x := g.Extent()
	fmt.Fprintf(&b, "%s: %s\n", title, g.Title)
	fmt.Fprintf(&b, "%s, %s, %s\n", plural.Count(g.Hosts, "host"), plural.Count(g.Switches(), "switch"),
		plural.Count(len(g.Links), "link"))
	fmt.Fprintf(&b, "farthest hosts: %s, %v of propagation one way; at most %s\n\n",
		plural.Count(x.Hops, "link"), x.Propagation, plural.Count(x.Paths, "equal-cost path"))

	Table(&b, "", func(row func(...any)) {
		row("nodes", "count", "names", "addresses")
		for _, t := range nodeTiers(g) {
			row(t.name, len(t.nodes), span(g, t.nodes), addresses(g, t.nodes))
		}
	})
	b.WriteByte('\n')
	tiers := linkTiers(g)
	Table(&b, "", func(row func(...any)) {
		row("links", "count", "rate", "delay", "differ", "down")
		for _, t := range tiers {
			row(t.name, len(t.links), t.usual.rate, t.usual.delay, t.odd, t.down)
		}
	})
	b.WriteByte('\n')
	Table(&b, "", func(row func(...any)) {
		row("link", "rate", "delay", "")
		for _, t := range tiers {
			listLinks(g, &t, row)
		}
	})
	return b.String()
}

// listLinks writes a row for each link of the tier, or for a sample.
func listLinks(g *topology.Graph, t *linkTier, row func(...any)) {
	whole := len(g.Links) <= wholeTable
	left, odd := 0, 0
	for i, id := range t.links {
		l := &g.Links[id]
		special := note(l, t.usual) != ""
		if !whole && i >= sampled && (!special || odd == maxOdd) {
			left++
			continue
		}
		if special {
			odd++
		}
		state := ""
		if l.Down {
			state = "down"
		}
		row(l.Name, l.Rate, l.Delay, state)
	}
	if left > 0 {
		row(fmt.Sprintf("... %d more", left), "", "", "")
	}
}

func addresses(g *topology.Graph, nodes []topology.NodeID) string {
	if g.Nodes[nodes[0]].Addr == "" {
		return ""
	}
	return ends(len(nodes), func(i int) string { return g.Nodes[nodes[i]].Addr })
}

// Table appends the rows that fill writes to b, aligned, each behind indent and without trailing
// spaces.
func Table(b *strings.Builder, indent string, fill func(row func(...any))) {
	var cells strings.Builder
	w := tabwriter.NewWriter(&cells, 0, 0, 2, ' ', 0)
	fill(func(values ...any) {
		for i, v := range values {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, v)
		}
		fmt.Fprintln(w)
	})
	w.Flush()
	for line := range strings.Lines(cells.String()) {
		b.WriteString(strings.TrimRight(indent+line, " \n") + "\n")
	}
}
