package render

import (
	"fmt"
	"strings"

	"weft/orchestrator/topology"
)

// DOT draws g for Graphviz: hosts at the bottom, switches above, one row for each hop away from the
// nearest host. The title gives the usual settings of each tier's links. Links that differ are
// labelled with their settings, and links that are down are dashed. topology.import reads it, with
// the types of nodes and the rates, delays and losses of links. A link that is down is read with a
// warning.
func DOT(title string, g *topology.Graph) string {
	var b strings.Builder
	tiers := linkTiers(g)
	heading := []string{title + ": " + g.Title}
	for _, t := range tiers {
		heading = append(heading, t.describe())
	}
	fmt.Fprintf(&b, "graph %s {\n", dotQuote(title))
	fmt.Fprintf(&b, "\tlabel=%s; labelloc=t; rankdir=BT; splines=line; ranksep=1;\n", dotQuote(heading...))
	b.WriteString("\tfontname=\"sans-serif\"; fontsize=11;\n")
	b.WriteString("\tnode [shape=box, fontname=\"sans-serif\", fontsize=9, height=0.2, margin=\"0.05,0.03\"];\n")
	b.WriteString("\tedge [fontname=\"sans-serif\", fontsize=8];\n")
	for _, row := range byLevel(g) {
		b.WriteString("\t{\n\t\trank=same;\n")
		for _, id := range row {
			n := &g.Nodes[id]
			switch n.Kind {
			case topology.Host:
				fmt.Fprintf(&b, "\t\t%s [type=host, label=%s, style=rounded];\n", dotQuote(n.Name),
					dotQuote(n.Name, n.Addr))
			case topology.Switch:
				fmt.Fprintf(&b, "\t\t%s [type=switch];\n", dotQuote(n.Name))
			}
		}
		b.WriteString("\t}\n")
	}
	of := usual(g, tiers)
	for i := range g.Links {
		l := &g.Links[i]
		fmt.Fprintf(&b, "\t%s -- %s [rate=\"%v\", delay=\"%v\"", dotQuote(g.Nodes[l.A].Name),
			dotQuote(g.Nodes[l.B].Name), l.Rate, l.Delay)
		if l.Loss > 0 {
			fmt.Fprintf(&b, ", loss=%v", l.Loss)
		}
		switch s := note(l, of[i]); {
		case l.Down:
			b.WriteString(", style=dashed, color=red, label=down, down=true")
		case s != "":
			fmt.Fprintf(&b, ", label=%s", dotQuote(s))
		}
		b.WriteString("];\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// dotQuote joins lines to a quoted string of the dot language. There a quote needs a backslash, and
// a backslash begins an escape.
func dotQuote(lines ...string) string {
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "")
	for i, s := range lines {
		lines[i] = r.Replace(s)
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}
