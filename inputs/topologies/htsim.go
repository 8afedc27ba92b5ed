package topologies

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"weft/collectives/graph"
	"weft/inputs/source"
	"weft/internal/clip"
	"weft/units"
)

func looksHTSim(_ string, head []byte) bool {
	f := source.FirstFields(head)
	return len(f) == 2 && strings.EqualFold(f[0], "nodes")
}

// maxTiers is the number of tiers that htsim's trees have at most.
const maxTiers = 3

// tree is a fat tree of htsim. Of a tier, the values are those of its switches.
type tree struct {
	*Network
	line              int            // the last of the file
	nodes, tiers, pod int            // hosts in all, tiers, hosts of a pod
	seen              [maxTiers]bool // the file has the tier
	down, up          [maxTiers]int  // ports of a switch downwards and upwards
	bundle            [maxTiers]int  // parallel links from a switch to each one below
	rate              [maxTiers]units.Bandwidth
	delay             [maxTiers]units.Time
	delayed           [maxTiers]bool  // the file says the delay
	over, overAt      [maxTiers]int   // what the file says that radix_down is of radix_up, and the line; 0: it does not
	has               map[string]bool // the names of what the file has said: in all, and of each tier
}

// readHTSim reads a fat tree of 2 or 3 tiers of htsim.
func readHTSim(n *Network, r io.Reader) error {
	t := &tree{Network: n, bundle: [maxTiers]int{1, 1, 1}, has: map[string]bool{}}
	tier := -1
	w := source.NewLines(n.file, r)
	for f := w.Fields(); f != nil; f = w.Fields() {
		if len(f) != 2 {
			return w.Errorf("%d words; expected a name and a number", len(f))
		}
		x, err := strconv.Atoi(f[1])
		if err != nil || x < 0 || x > 1<<24 {
			return w.Errorf("%s is %q; expected a whole number", clip.Text(f[0]), clip.Text(f[1]))
		}
		key := strings.ToLower(f[0])
		switch key {
		case "tier":
			key += f[1]
		case "nodes", "tiers", "podsize":
		default:
			key += fmt.Sprint(" of ", tier)
		}
		if t.has[key] {
			return w.Errorf("%s is there already; expected it once", clip.Text(strings.Join(f, " ")))
		}
		t.has[key], t.line = true, w.Number
		if err := t.set(strings.ToLower(f[0]), x, &tier); err != nil {
			return w.Errorf("%w", err)
		}
	}
	if err := w.Err(); err != nil {
		return err
	}
	if err := t.network(); err != nil {
		return graph.At(fmt.Sprintf("%s:%d", n.file, t.line), err)
	}
	return n.finish(func(name string) (bool, bool) { return name[0] != 'h', true })
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
	case "oversubscribed":
		t.over[tier], t.overAt[tier] = n, t.line
	case "switch_latency_ns":
		if n > 0 {
			return fmt.Errorf("switches have no latency of their own here; add %d ns to the latency of links", n)
		}
	case "queue_up", "queue_down":
		return fmt.Errorf("%s: queues belong to the lab's queues section", name)
	default:
		return fmt.Errorf("%q is not understood; expected downlink_speed_gbps, downlink_latency_ns, radix_up, "+
			"radix_down, bundle or oversubscribed", clip.Text(name))
	}
	return nil
}

// ratio returns a/b, which must be whole and at least 1.
func ratio(what string, a, b int) (int, error) {
	if b <= 0 || a <= 0 || a%b != 0 {
		return 0, fmt.Errorf("%s: %d cannot be divided into %d; expected a multiple", what, a, b)
	}
	return a / b, nil
}

// checkOver notes what the file says of oversubscription if the radixes, or they and the speeds,
// say something else: those count.
func (t *tree) checkOver() {
	for i, over := range t.over[:t.tiers] {
		down, up := t.down[i], t.up[i]
		switch {
		case t.overAt[i] == 0, over == 1 && i == t.tiers-1:
		case i == t.tiers-1:
			t.Notes.Add(t.file, t.overAt[i], "oversubscribed of the highest tier, which has no links upwards,")
		case down != over*up && units.Bandwidth(down)*t.rate[i] != units.Bandwidth(over*up)*t.rate[i+1]:
			text := fmt.Sprintf("oversubscribed %d of tier %d does not count, but its radixes do: %d downwards and %d "+
				"upwards", over, i, down, up)
			t.Notes.Changed(text, 1, func() string { return fmt.Sprintf("%s:%d", t.file, t.overAt[i]) })
		}
	}
}

// network builds the tree: hosts, top-of-rack switches, switches of pods, and cores.
func (t *tree) network() error {
	const fewest = 2
	if t.tiers < fewest || t.tiers > maxTiers {
		return fmt.Errorf("%d tiers; expected 2 or 3", t.tiers)
	}
	for i := range t.tiers {
		if !t.seen[i] || t.rate[i] == 0 {
			return fmt.Errorf("tier %d has no downlink_speed_gbps; expected that of its links downwards", i)
		}
	}
	for i := t.tiers; i < maxTiers; i++ {
		if t.seen[i] {
			return fmt.Errorf("tier %d in a tree of %d tiers; expected 0 to %d", i, t.tiers, t.tiers-1)
		}
	}
	if t.up[t.tiers-1] > 0 {
		t.Notes.Add(t.file, t.line, "radix_up of the highest tier, which has no links upwards,")
	}
	t.checkOver()
	if t.nodes > maxNodes {
		return fmt.Errorf("%d nodes; expected at most %d", t.nodes, maxNodes)
	}
	if t.tiers == fewest {
		t.pod = t.nodes
	}
	pods, err := ratio("nodes in pods", t.nodes, t.pod)
	if err != nil {
		return err
	}
	racks, err := ratio("nodes of a pod in racks", t.pod, t.down[0])
	if err != nil {
		return err
	}
	aggs, err := ratio("uplinks of a rack in bundles", t.up[0], t.bundle[1])
	if err != nil {
		return err
	}
	if t.down[1] != racks*t.bundle[1] {
		return fmt.Errorf("tier 1 has a radix_down of %d; %d racks with bundles of %d need %d", t.down[1], racks,
			t.bundle[1], racks*t.bundle[1])
	}
	var failed error
	node := func(kind string, i int) {
		if failed == nil {
			_, failed = t.node(kind+strconv.Itoa(i), t.line)
		}
	}
	link := func(a string, i int, b string, k, tier int) {
		for left := t.bundle[tier]; left > 0 && failed == nil; left-- {
			failed = t.link(Link{A: a + strconv.Itoa(i), B: b + strconv.Itoa(k), Rate: t.rate[tier],
				Delay: t.delay[tier], Delayed: t.delayed[tier], Line: t.line})
		}
	}
	for h := range t.nodes {
		node("h", h)
	}
	for r := 0; r < pods*racks && failed == nil; r++ {
		node("tor", r)
		for h := range t.down[0] {
			link("h", r*t.down[0]+h, "tor", r, 0)
		}
	}
	for a := 0; a < pods*aggs && failed == nil; a++ {
		node("agg", a)
		for r := range racks {
			link("tor", a/aggs*racks+r, "agg", a, 1)
		}
	}
	if t.tiers == fewest || failed != nil {
		return failed
	}
	up, err := ratio("uplinks of a pod's switch in bundles", t.up[1], t.bundle[2])
	if err != nil {
		return err
	}
	if t.down[2] != pods*t.bundle[2] {
		return fmt.Errorf("tier 2 has a radix_down of %d; %d pods with bundles of %d need %d", t.down[2], pods,
			t.bundle[2], pods*t.bundle[2])
	}
	for c := 0; c < aggs*up && failed == nil; c++ {
		node("core", c)
		for p := range pods {
			link("agg", p*aggs+c/up, "core", c, 2)
		}
	}
	return failed
}
