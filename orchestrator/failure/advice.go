package failure

import (
	"cmp"
	"fmt"
	"maps"
	"math"
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

// adviceOn returns settings, by the lab's keys, with which the run would survive a cause.
func adviceOn(x *experiment.Experiment, c *cause) []string {
	var all []string
	whole, last := patience(x, c.conn)
	limit := (whole - last).Rounded().String() // the last attempt must come after the fault
	ends := true                               // all faults end
	around := len(c.scene.down) > 0 && leadsAround(x, c)
	for _, i := range c.faults {
		f := &x.Faults.All[i]
		ends = ends && f.For > 0
		if len(all) == summary.MaxNamed {
			continue
		}
		shorter := func(key string) string {
			path := experiment.FaultPath(i, key)
			value := value(x, path)
			if _, err := units.ParseTime(value); err != nil { // a word, for the end of the run
				return fmt.Sprintf("%s: %s instead of %s, or another time shorter than %s", path, below(whole-last),
					value, limit)
			}
			return fmt.Sprintf("%s (%s) shorter than %s", path, value, limit)
		}
		switch {
		case f.Kill:
			all = append(all, fmt.Sprintf("leave %s out of the ranks, or have it pause: %s instead of kill, for "+
				"less than %s", f.Host, experiment.FaultPath(i, "pause"), limit))
		case f.Pause:
			all = append(all, shorter("pause"))
		case f.Down && around && f.Reroute > 0:
			all = append(all, shorter("reroute")+": until then other switches send over the link")
		case f.Down && around:
			all = append(all, shorter("reroute")+": after it all switches route around the link")
		}
		switch {
		case f.Down:
			all = append(all, shorter("down"))
		case f.Link != "":
			milder := "lower"
			key := worst(f.Loss, f.BitErrors, f.Rate != nil)
			if key == "rate" {
				milder = "higher"
			}
			all = append(all, fmt.Sprintf("%s %s", milder, experiment.FaultPath(i, key)), shorter("for"))
		}
	}
	if patience := patienceKeys(x); ends && patience != "" {
		all = append(all, fmt.Sprintf("higher %s: the last attempt of a connection comes %s after its last progress",
			patience, limit))
	}
	return all
}

// worst returns the key of a changed link's property that most likely impedes flows.
func worst(loss, bitErrors *float64, rate bool) string {
	switch {
	case loss != nil && *loss > 0:
		return "loss"
	case bitErrors != nil && *bitErrors > 0:
		return "bit_errors"
	case rate:
		return "rate"
	}
	return "delay"
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

// patienceKeys returns the settings of the lab's transport, with values, that determine how long a
// connection waits.
func patienceKeys(x *experiment.Experiment) string {
	var keys []string
	for _, s := range x.Lab.Sources {
		if strings.HasPrefix(s.Path, "transport.") && (strings.HasSuffix(s.Path, ".tries") ||
			strings.HasSuffix(s.Path, ".rto_min")) {
			keys = append(keys, fmt.Sprintf("%s (%s)", s.Path, s.Value))
		}
	}
	return strings.Join(keys, " or ")
}

// value returns a setting as the lab writes it.
func value(x *experiment.Experiment, path string) string {
	for _, s := range x.Lab.Sources {
		if s.Path == path {
			return s.Value
		}
	}
	return "not set"
}

// below returns a time with one digit that is at least a fifth shorter than t.
func below(t units.Time) units.Time {
	t = t / 5 * 4
	if t <= 0 {
		return 0
	}
	digit := units.Time(math.Pow10(int(math.Log10(float64(t)))))
	return t / digit * digit
}

// maxGroups is the number of flow groups that a sentence names. Our own value.
const maxGroups = 3

// pairs describes flows by their hosts: "14 flows from h0..h3 to h8".
func pairs(x *experiment.Experiment, flows map[[2]transport.HostID]int) string {
	bySrc, byDst := grouped(flows, 0), grouped(flows, 1)
	groups := bySrc
	if len(byDst) < len(bySrc) {
		groups = byDst
	}
	var parts []string
	for i, g := range groups {
		if i == maxGroups {
			left := 0
			for _, rest := range groups[i:] {
				left += rest.count
			}
			parts = append(parts, fmt.Sprintf("and %d more", left))
			break
		}
		parts = append(parts, fmt.Sprintf("%s from %s to %s", plural.Count(g.count, "flow"), names(x, g.ends[0]),
			names(x, g.ends[1])))
	}
	return strings.Join(parts, ", ")
}

// flowGroup is the set of flows from every one of some hosts to every one of others.
type flowGroup struct {
	ends  [2][]transport.HostID
	count int
}

// grouped merges hosts at one end of the flows (0: the senders) that have the same hosts at the
// other end.
func grouped(flows map[[2]transport.HostID]int, end int) []flowGroup {
	others, counts := map[transport.HostID][]transport.HostID{}, map[transport.HostID]int{}
	for pair, n := range flows {
		others[pair[end]] = append(others[pair[end]], pair[1-end])
		counts[pair[end]] += n
	}
	groups := map[string]*flowGroup{}
	for _, h := range slices.Sorted(maps.Keys(others)) {
		slices.Sort(others[h])
		key := fmt.Sprint(others[h])
		g := groups[key]
		if g == nil {
			g = &flowGroup{}
			g.ends[1-end] = others[h]
			groups[key] = g
		}
		g.ends[end] = append(g.ends[end], h)
		g.count += counts[h]
	}
	var all []flowGroup
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		all = append(all, *groups[key])
	}
	slices.SortStableFunc(all, func(a, b flowGroup) int {
		return cmp.Or(b.count-a.count, slices.Compare(a.ends[0], b.ends[0]), slices.Compare(a.ends[1], b.ends[1]))
	})
	return all
}

// names lists hosts in order: "h0..h3, h8 and h9".
func names(x *experiment.Experiment, hosts []transport.HostID) string {
	var parts []string
	for i := 0; i < len(hosts); {
		k := i
		for k+1 < len(hosts) && hosts[k+1] == hosts[k]+1 {
			k++
		}
		if k-i < 2 {
			k = i
		}
		part := x.Graph.Nodes[hosts[i]].Name
		if k > i {
			part += ".." + x.Graph.Nodes[hosts[k]].Name
		}
		if i = k + 1; len(parts) == summary.MaxNamed {
			return strings.Join(parts, ", ") + " and others"
		}
		parts = append(parts, part)
	}
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}
