package experiment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/clocksync"
	"weft/clocksync/node"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/units"
)

// idleFaults returns the faults that change nothing. One whose value a sweep varies may be the
// point without a fault.
func (n *lastNetwork) idleFaults(l *lab.Lab) (all lab.Problems) {
	g := n.graph(l)
	if g == nil {
		return nil
	}
	faults := slices.Clone(l.Faults)
	slices.SortStableFunc(faults, func(a, b lab.Fault) int { return cmp.Compare(a.At, b.At) })
	lies := map[string]units.Time{} // by host
	for i := range faults {
		f := &faults[i]
		why := ""
		if f.Clock == nil {
			why = idleLink(g, f)
		} else if why = idleClock(l, g, f.Clock, lies[f.Clock.Host]); f.Clock.Lies {
			lies[f.Clock.Host] = f.Clock.Lie
		}
		path := fmt.Sprintf("faults.%d", f.Index)
		for swept := range l.Point {
			if swept == "faults" || strings.HasPrefix(swept+".", path+".") {
				why = ""
			}
		}
		if why != "" {
			all = append(all, problemAt(l, path, "changes nothing: "+why))
		}
	}
	return all
}

// idleLink returns why a fault gives a link what it has; "" if it does not.
func idleLink(g *topology.Graph, f *lab.Fault) string {
	id, ok := g.LinkNamed(f.Link)
	if !ok || f.Down || f.Corrupt != "" || f.Host != "" {
		return ""
	}
	k := g.Links[id]
	if *cmp.Or(f.Rate, &k.Rate) == k.Rate && *cmp.Or(f.Delay, &k.Delay) == k.Delay &&
		*cmp.Or(f.Loss, &k.Loss) == k.Loss && *cmp.Or(f.BitErrors, &k.BitErrors) == k.BitErrors {
		return f.Link + " has these values without it"
	}
	return ""
}

// idleClock returns why a fault of a clock changes nothing; "" if it does. lie is the error of the
// time that the host served before.
func idleClock(l *lab.Lab, g *topology.Graph, k *lab.ClockFault, lie units.Time) string {
	switch {
	case k.Down:
		return ""
	case k.Lies && !servesTime(l, g, k.Host):
		return "no host follows " + k.Host + ", which is neither the reference, a backup, a server nor a boundary clock"
	case k.Lies && k.Lie == lie:
		return fmt.Sprintf("the time that %s serves is wrong by %v before it, too", k.Host, lie)
	case !k.Lies && k.Step == 0 && k.Skew == 0:
		return "it changes the clock by 0"
	}
	return ""
}

// servesTime reports whether others may follow the time that a host sends.
func servesTime(l *lab.Lab, g *topology.Graph, host string) bool {
	c := &l.Clocks
	id, ok := g.NodeNamed(host)
	reference, _ := g.NodeNamed(c.Reference)
	return !ok || c.PeerToPeer || c.Followed(node.Sync(c.Sync), clocksync.Setup{Self: clocksync.Node(id),
		Nodes: g.Hosts, Reference: clocksync.Node(reference)})
}
