package experiment

import (
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/units"
)

// reach summarizes how far the connections of an experiment go, for the checks that concern all of
// them. Hosts attached to the same switch by equal links are alike, so each pair of such groups is
// examined once.
type reach struct {
	graph *topology.Graph
	alike []int32    // by host: its group
	seen  [][]uint64 // by group of the sender: a bit for each group of receivers

	rtt  units.Time  // longest idle round trip of a full packet and what answers it
	bdp  units.Bytes // largest bandwidth-delay product of a path, in whole packets
	slow transport.HostID
	// slowest is the rate of the slowest link of a host that sends, slow. 0: there is no
	// connection.
	slowest units.Bandwidth

	switches int // on the longest path, which is from src to dst
	src, dst transport.HostID

	// far and near are the connections with the longest and the shortest idle round trip.
	far, near transport.Spec
	nearest   units.Time
}

func newReach(g *topology.Graph) reach { return reach{graph: g} }

// some reports whether there are connections.
func (r *reach) some() bool { return r.slowest != 0 }

// note includes a connection of a lab with the given payload per packet.
func (r *reach) note(s *transport.Spec, mtu units.Bytes) {
	packet, line := dataWire(mtu), s.Forward.Rates[0]
	rtt := s.Forward.Delay(packet+beside(s)) + s.Reverse.Delay(replyWire(s))
	if rtt > r.rtt {
		r.rtt, r.far = rtt, *s
	}
	if !r.some() || rtt < r.nearest {
		r.nearest, r.near = rtt, *s
	}
	r.bdp = max(r.bdp, (line.BytesIn(rtt)+packet-1)/packet*packet)
	if !r.some() || line < r.slowest {
		r.slow, r.slowest = s.Src, line
	}
	if n := len(s.Forward.Rates) - 1; n > r.switches {
		r.switches, r.src, r.dst = n, s.Src, s.Dst
	}
}

// unseen reports whether this is the first request for a pair of hosts like these.
func (r *reach) unseen(src, dst transport.HostID) bool {
	if r.alike == nil {
		r.group()
	}
	a, b := r.alike[src], r.alike[dst]
	if r.seen[a] == nil {
		r.seen[a] = make([]uint64, len(r.seen)/64+1)
	}
	word, bit := &r.seen[a][b/64], uint64(1)<<(b%64)
	before := *word&bit != 0
	*word |= bit
	return !before
}

// group finds the hosts that are alike.
func (r *reach) group() {
	type attachment struct {
		home  topology.NodeID
		rate  units.Bandwidth
		delay units.Time
	}
	groups := map[attachment]int32{}
	r.alike = make([]int32, r.graph.Hosts)
	for h := range r.alike {
		k := &r.graph.Links[r.graph.Uplink(topology.NodeID(h))]
		a := attachment{r.graph.Home(topology.NodeID(h)), k.Rate, k.Delay}
		g, ok := groups[a]
		if !ok {
			g = int32(len(groups))
			groups[a] = g
		}
		r.alike[h] = g
	}
	r.seen = make([][]uint64, len(groups))
}
