package failure

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/internal/plural"
	"weft/orchestrator/experiment"
	"weft/orchestrator/summary"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/units"
)

func nodeID(h transport.HostID) topology.NodeID { return topology.NodeID(h) }

// sentence describes the effect of a fault up to an instant: "link edge0-agg1 is down from 50us
// on".
func sentence(x *experiment.Experiment, i int, by units.Time) string {
	f := &x.Faults.All[i]
	switch {
	case f.Kill:
		return fmt.Sprintf("%s was killed at %s", f.Host, f.At)
	case f.Pause:
		return fmt.Sprintf("%s was paused from %s to %s", f.Host, f.At, f.At+f.For)
	}
	is, was := "is ", "was "
	if !f.Down {
		is, was = "has ", "had "
	}
	if f.For == 0 {
		return fmt.Sprintf("link %s %s%s from %s to the end of the run", f.Link, is, summary.WhatHappens(f), f.At)
	}
	if f.At+f.For > by {
		was = is
	}
	return fmt.Sprintf("link %s %s%s from %s to %s", f.Link, was, summary.WhatHappens(f), f.At, f.At+f.For)
}

// headline describes a cause and the flows that it affects.
func headline(x *experiment.Experiment, c *cause, unfinished int, by units.Time) string {
	var about []string
	for i, f := range c.faults {
		if i == summary.MaxNamed {
			about = append(about, fmt.Sprintf("%d more faults", len(c.faults)-i))
			break
		}
		about = append(about, sentence(x, f, by))
	}
	how := "cannot get through"
	switch {
	case c.kind == atHalted:
		how = "begin or end there"
	case c.kind == impeded && len(c.faults) == 1:
		how = "use that link"
	case c.kind == impeded:
		how = "use those links"
	}
	if c.count == 1 {
		how = strings.NewReplacer("begin or end", "begins or ends", "use", "uses").Replace(how)
	}
	return fmt.Sprintf("%s; %d of %s %s: %s", strings.Join(about, ", and "), c.count,
		plural.Count(unfinished, "unfinished flow"), how, pairs(x, c.flows))
}

// adviceOn returns a change of the lab, by its keys, with which the run would survive a cause. Of
// several faults it is about the first.
func adviceOn(x *experiment.Experiment, c *cause) string {
	whole, last := patience(x, c.conn)
	limit := (whole - last).Rounded() // the last attempt must come after the fault
	i := c.faults[0]
	f := &x.Faults.All[i]
	key := func(name string) string {
		path := experiment.FaultPath(i, name)
		for _, s := range x.Lab.Sources {
			if s.Path == path {
				return fmt.Sprintf("%s (%s)", path, s.Value)
			}
		}
		return path + " (not set)"
	}
	switch {
	case f.Kill:
		return fmt.Sprintf("leave %s out of the ranks, or have it pause: %s instead of kill, for less than %s", f.Host,
			experiment.FaultPath(i, "pause"), limit)
	case f.Pause:
		return fmt.Sprintf("%s shorter than %s", key("pause"), limit)
	case f.Down && leadsAround(x, c):
		return fmt.Sprintf("%s shorter than %s: after it all switches route around the link", key("reroute"), limit)
	case f.Down:
		return fmt.Sprintf("%s shorter than %s", key("down"), limit)
	}
	return fmt.Sprintf("%s shorter than %s, or a milder change of the link", key("for"), limit)
}

// leadsAround reports whether a connection of the cause would get through if all switches knew
// which links are down.
func leadsAround(x *experiment.Experiment, c *cause) bool {
	missing := map[topology.LinkID]bool{}
	for port := range c.scene.down {
		missing[topology.LinkID(port/2)] = true
	}
	tables, err := x.Tables(missing)
	if err != nil {
		return false
	}
	s := *c.scene
	s.cfg.Switches = tables
	conn := &x.Conns[c.conn]
	there, back := s.there(x, conn), s.back(x, conn)
	return there.Arrives && len(there.Dead) == 0 && back.Arrives && len(back.Dead) == 0
}

// maxPairs is the number of pairs of hosts that a sentence names. Our own value.
const maxPairs = 3

// pairs names the hosts at both ends of flows: "h0 to h8, h1 to h8, h2 to h8, and 11 more".
func pairs(x *experiment.Experiment, flows map[[2]transport.HostID]int) string {
	all := slices.SortedFunc(maps.Keys(flows), func(a, b [2]transport.HostID) int { return slices.Compare(a[:], b[:]) })
	var parts []string
	left := 0
	for i, p := range all {
		if i < maxPairs {
			parts = append(parts, x.Graph.Nodes[p[0]].Name+" to "+x.Graph.Nodes[p[1]].Name)
		} else {
			left += flows[p]
		}
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", left))
	}
	return strings.Join(parts, ", ")
}
