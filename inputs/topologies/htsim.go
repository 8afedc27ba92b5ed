package topologies

import (
	"fmt"
	"strconv"
	"strings"

	"weft/collectives/graph"
	"weft/internal/clip"
	"weft/units"
)

func looksHTSim(text []byte) bool {
	f := firstLine(text)
	return len(f) == 2 && strings.EqualFold(f[0], "nodes")
}

// maxTiers is the number of tiers that htsim's trees have at most.
const maxTiers = 3

// tree is a fat tree of htsim. Of a tier, the values are those of its switches.
type tree struct {
	nodes, tiers, pod int
	seen              [maxTiers]bool
	down, up, bundle  [maxTiers]int
	rate              [maxTiers]units.Bandwidth
	delay             [maxTiers]units.Time
	delayed           [maxTiers]bool // the file says the delay
}

// readHTSim reads a fat tree of 2 or 3 tiers of htsim.
func readHTSim(file string, text []byte) (*Network, error) {
	t := &tree{bundle: [maxTiers]int{1, 1, 1}}
	tier, line := -1, 0
	for text := range strings.Lines(string(text)) {
		line++
		f := strings.Fields(text)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		if len(f) != 2 {
			return nil, graph.Errorf(file, line, "%d words; expected a name and a number", len(f))
		}
		n, err := strconv.Atoi(f[1])
		if err != nil || n < 0 || n > 1<<24 {
			return nil, graph.Errorf(file, line, "%s is %q; expected a whole number", clip.Text(f[0]), clip.Text(f[1]))
		}
		if err := t.set(strings.ToLower(f[0]), n, &tier); err != nil {
			return nil, &graph.Error{At: fmt.Sprintf("%s:%d", file, line), Err: err}
		}
	}
	n, err := t.network()
	if err != nil {
		return nil, &graph.Error{At: fmt.Sprintf("%s:%d", file, line), Err: err}
	}
	for i := range n.Links {
		n.Links[i].Line = line
	}
	return n, nil
}

// set handles a line of the file.
func (t *tree) set(name string, n int, tier *int) error {
	switch name {
	case "nodes":
		t.nodes = n
	case "tiers":
		t.tiers = n
	case "podsize":
		t.pod = n
	case "tier":
		if n >= maxTiers {
			return fmt.Errorf("tier %d; expected 0 to 2", n)
		}
		*tier, t.seen[n] = n, true
	default:
		if *tier < 0 {
			return fmt.Errorf("%q before the first tier", clip.Text(name))
		}
		return t.setTier(name, n, *tier)
	}
	return nil
}

func (t *tree) setTier(name string, n, tier int) error {
	switch name {
	case "downlink_speed_gbps":
		t.rate[tier] = units.Bandwidth(n) * units.Gbps
	case "radix_up":
		t.up[tier] = n
	case "radix_down":
		t.down[tier] = n
	case "bundle":
		t.bundle[tier] = n
	case "downlink_latency_ns":
		t.delay[tier], t.delayed[tier] = units.Time(n)*units.Nanosecond, true
	case "oversubscribed": // follows from the radixes
	case "switch_latency_ns":
		if n > 0 {
			return fmt.Errorf("switches have no latency of their own here; add %d ns to the latency of links", n)
		}
	case "queue_up", "queue_down":
		return fmt.Errorf("%s: queues belong to the lab's queues section", name)
	default:
		return fmt.Errorf("%q is not understood", clip.Text(name))
	}
	return nil
}

// ratio returns a/b, which must be whole and at least 1.
func ratio(what string, a, b int) (int, error) {
	if b <= 0 || a <= 0 || a%b != 0 {
		return 0, fmt.Errorf("%s: %d cannot be divided into %d", what, a, b)
	}
	return a / b, nil
}

// network builds the tree: hosts, top-of-rack switches, switches of pods, and cores.
func (t *tree) network() (*Network, error) {
	const fewest = 2
	if t.tiers < fewest || t.tiers > maxTiers {
		return nil, fmt.Errorf("%d tiers; expected 2 or 3", t.tiers)
	}
	for i := range t.tiers {
		if !t.seen[i] || t.rate[i] == 0 || t.delay[i] > units.Second {
			return nil, fmt.Errorf("tier %d has no downlink_speed_gbps", i)
		}
	}
	if t.nodes > maxNodes {
		return nil, fmt.Errorf("%d nodes; expected at most %d", t.nodes, maxNodes)
	}
	if t.tiers == fewest {
		t.pod = t.nodes
	}
	pods, err := ratio("nodes in pods", t.nodes, t.pod)
	if err != nil {
		return nil, err
	}
	racks, err := ratio("nodes of a pod in racks", t.pod, t.down[0])
	if err != nil {
		return nil, err
	}
	aggs, err := ratio("uplinks of a rack in bundles", t.up[0], t.bundle[1])
	if err != nil {
		return nil, err
	}
	if t.down[1] != racks*t.bundle[1] {
		return nil, fmt.Errorf("tier 1 has a radix_down of %d; %d racks with bundles of %d need %d", t.down[1], racks,
			t.bundle[1], racks*t.bundle[1])
	}
	n := &Network{}
	for h := range t.nodes {
		n.Nodes = append(n.Nodes, Node{Name: fmt.Sprintf("h%d", h)})
	}
	link := func(a, b string, tier int) {
		for range t.bundle[tier] {
			n.Links = append(n.Links, Link{A: a, B: b, Rate: t.rate[tier], Delay: t.delay[tier],
				Delayed: t.delayed[tier]})
		}
	}
	name := func(kind string, i int) string { return kind + strconv.Itoa(i) }
	for r := range pods * racks {
		n.Nodes = append(n.Nodes, Node{name("tor", r), true})
		for h := range t.down[0] {
			n.Links = append(n.Links, Link{A: name("h", r*t.down[0]+h), B: name("tor", r), Rate: t.rate[0],
				Delay: t.delay[0], Delayed: t.delayed[0]})
		}
	}
	for a := range pods * aggs {
		n.Nodes = append(n.Nodes, Node{name("agg", a), true})
		for r := range racks {
			link(name("tor", a/aggs*racks+r), name("agg", a), 1)
		}
	}
	if t.tiers == fewest {
		return n, nil
	}
	up, err := ratio("uplinks of a pod's switch in bundles", t.up[1], t.bundle[2])
	if err != nil {
		return nil, err
	}
	if t.down[2] != pods*t.bundle[2] {
		return nil, fmt.Errorf("tier 2 has a radix_down of %d; %d pods with bundles of %d need %d", t.down[2], pods,
			t.bundle[2], pods*t.bundle[2])
	}
	for c := range aggs * up {
		n.Nodes = append(n.Nodes, Node{name("core", c), true})
		for p := range pods {
			link(name("agg", p*aggs+c/up), name("core", c), 2)
		}
	}
	return n, nil
}
