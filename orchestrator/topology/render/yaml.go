package render

import (
	"fmt"
	"strconv"
	"strings"

	"weft/orchestrator/topology"
)

// YAML returns the topology section of a lab, of kind custom, with the nodes and the links of g.
// Routes, the MTU and the programs of hosts are those of the lab that it was built from.
func YAML(g *topology.Graph) string {
	var b strings.Builder
	var down []string
	fmt.Fprintf(&b, "topology:\n  kind: %s\n  nodes:\n", topology.ListKind())
	for i := range g.Nodes {
		n := &g.Nodes[i]
		fmt.Fprintf(&b, "    - {name: %s", strconv.Quote(n.Name))
		if n.Kind == topology.Switch {
			b.WriteString(", switch: true")
		}
		b.WriteString("}\n")
	}
	b.WriteString("  links:\n")
	for i := range g.Links {
		l := &g.Links[i]
		fmt.Fprintf(&b, "    - {between: [%s, %s], rate: %v, delay: %v", strconv.Quote(g.Nodes[l.A].Name),
			strconv.Quote(g.Nodes[l.B].Name), l.Rate, l.Delay)
		share := func(key string, x float64) {
			if x > 0 {
				fmt.Fprintf(&b, ", %s: %s", key, strconv.FormatFloat(x, 'f', -1, 64))
			}
		}
		share("loss", l.Loss)
		share("bit_errors", l.BitErrors)
		share("duplicate", l.Duplicate)
		if share("reorder", l.Reorder); l.Reorder > 0 {
			fmt.Fprintf(&b, ", reorder_by: %v", l.ReorderBy)
		}
		if l.Jitter > 0 {
			fmt.Fprintf(&b, ", jitter: %v", l.Jitter)
		}
		b.WriteString("}\n")
		if l.Down {
			down = append(down, strconv.Quote(l.Name))
		}
	}
	if len(down) > 0 {
		fmt.Fprintf(&b, "  down: [%s]\n", strings.Join(down, ", "))
	}
	return b.String()
}
