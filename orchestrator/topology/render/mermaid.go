package render

import (
	"fmt"
	"strings"

	"weft/orchestrator/topology"
)

// mermaidEdges is the number of edges that Mermaid draws by default (its option maxEdges).
const mermaidEdges = 500

// Mermaid draws g as a Mermaid flowchart. Links that differ from most of their tier are labelled,
// and links that are down are dotted.
func Mermaid(title string, g *topology.Graph) string {
	var b strings.Builder
	tiers := linkTiers(g)
	b.WriteString("---\n")
	fmt.Fprintf(&b, "title: %q\n", title+": "+g.Title)
	b.WriteString("---\nflowchart BT\n")
	for _, t := range tiers {
		fmt.Fprintf(&b, "  %%%% %s\n", t.describe())
	}
	if len(g.Links) > mermaidEdges {
		fmt.Fprintf(&b, "  %%%% %d links: Mermaid draws %d unless maxEdges is raised\n", len(g.Links), mermaidEdges)
	}
	for _, n := range g.Nodes {
		switch n.Kind {
		case topology.Host:
			fmt.Fprintf(&b, "  n%d([\"%s<br/>%s\"])\n", n.ID, mermaidText(n.Name), n.Addr)
		case topology.Switch:
			fmt.Fprintf(&b, "  n%d[\"%s\"]\n", n.ID, mermaidText(n.Name))
		}
	}
	of := usual(g, tiers)
	for i := range g.Links {
		l := &g.Links[i]
		switch s := note(l, of[i]); {
		case l.Down:
			fmt.Fprintf(&b, "  n%d -. down .- n%d\n", l.A, l.B)
		case s != "":
			fmt.Fprintf(&b, "  n%d -- \"%s\" --- n%d\n", l.A, s, l.B)
		default:
			fmt.Fprintf(&b, "  n%d --- n%d\n", l.A, l.B)
		}
	}
	return b.String()
}

// mermaidText escapes text that Mermaid would take for markup or for the end of a quoted label.
func mermaidText(s string) string {
	return strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "&", "#amp;", "`", "#96;",
		"\\", "#92;", "\n", " ", "\r", " ").Replace(s)
}
