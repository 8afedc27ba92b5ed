package experiment

import (
	"errors"
	"fmt"
	"slices"

	"weft/clocksync"
	"weft/orchestrator/topology"
)

// places returns the position of each host in the tree of boundary clocks, or nil if the lab has
// none. Each boundary clock follows the nearest of the reference and the boundary clocks before it;
// every other host follows the nearest of all. Distance is in links; ties go to the first.
func (x *compiler) places(reference clocksync.Node) ([]clocksync.Place, error) {
	b, path := x.Lab.Clocks.Boundary(), "clocks."+x.Lab.Clocks.Sync+".boundary"
	if !b.Some() {
		return nil, nil
	}
	masters := []topology.NodeID{topology.NodeID(reference)}
	if b.Edge {
		masters = append(masters, x.edge(masters[0])...)
		if len(masters) == 1 {
			return nil, x.Lab.Errorf(path, "all hosts are behind the reference's switch; expected "+
				"off, or a topology of several switches with hosts")
		}
	}
	for _, name := range b.Hosts {
		host, _ := x.Graph.NodeNamed(name) // other hosts than the reference, as the lab has checked
		masters = append(masters, host)
	}
	places := make([]clocksync.Place, x.Graph.Hosts)
	for h := range topology.NodeID(x.Graph.Hosts) {
		before := masters
		if i := slices.Index(masters, h); i >= 0 {
			before = masters[:max(1, i)]
		}
		m := x.nearest(h, before)
		places[h].Master = clocksync.Node(m)
		if m != h {
			places[m].Followers = append(places[m].Followers, clocksync.Node(h))
		}
	}
	var errs []error
	for i, name := range b.Hosts {
		if len(places[masters[i+1]].Followers) == 0 {
			errs = append(errs, x.Lab.Errorf(fmt.Sprintf("%s.%d", path, i),
				"no host is nearer to %s than to the reference or a boundary clock before it; expected a host "+
					"behind another switch", name))
		}
	}
	return places, errors.Join(errs...)
}

// edge returns the first host at every switch, except the reference's.
func (x *compiler) edge(reference topology.NodeID) (first []topology.NodeID) {
	seen := map[topology.NodeID]bool{x.Graph.Home(reference): true}
	for h := range topology.NodeID(x.Graph.Hosts) {
		if at := x.Graph.Home(h); !seen[at] {
			seen[at] = true
			first = append(first, h)
		}
	}
	return first
}

// nearest returns the candidate with the fewest links from h; ties go to the first. There must be
// at least one.
func (x *compiler) nearest(h topology.NodeID, of []topology.NodeID) topology.NodeID {
	return slices.MinFunc(of, func(a, b topology.NodeID) int {
		return len(x.Graph.Path(h, a)) - len(x.Graph.Path(h, b))
	})
}
