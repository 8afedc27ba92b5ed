package fabric

import "math/bits"

// routing is the forwarding tables of all switches, flat.
type routing struct {
	hosts   int
	seeds   []uint64 // by switch
	routes  []uint16 // [switch][host]: group within the switch, or noRoute
	firsts  []int32  // by switch: where its groups begin
	groups  []group
	members []int32 // ports of the groups of several
}

const noRoute = 1<<16 - 1

// group is a set of equally good ports.
type group struct {
	first int32 // where in members, or the port itself when it is the only one
	n     int32
}

func newRouting(cfg *Config) routing {
	r := routing{hosts: cfg.Hosts, routes: make([]uint16, 0, len(cfg.Switches)*cfg.Hosts)}
	for s := range cfg.Switches {
		sw := &cfg.Switches[s]
		r.seeds = append(r.seeds, sw.Seed)
		r.firsts = append(r.firsts, int32(len(r.groups)))
		for _, ports := range sw.Groups {
			if len(ports) == 1 {
				r.groups = append(r.groups, group{ports[0], 1})
				continue
			}
			r.groups = append(r.groups, group{int32(len(r.members)), int32(len(ports))})
			r.members = append(r.members, ports...)
		}
		for _, g := range sw.Route {
			r.routes = append(r.routes, uint16(g)) // -1 becomes noRoute
		}
	}
	return r
}

// next returns the port that e joins at node to, or atHost, or noPort. It is a function of the tables alone,
// so it is looked up when e starts on the line to that node and is in the cache anyway.
func (r *routing) next(to NodeID, e *parcel) int32 {
	s := int(to) - r.hosts
	if s < 0 {
		if HostID(to) != e.dst {
			return noPort // hosts do not forward
		}
		return atHost
	}
	g := r.routes[s*r.hosts+int(e.dst)]
	if g == noRoute {
		return noPort
	}
	k := r.groups[r.firsts[s]+int32(g)]
	if k.n == 1 {
		return k.first
	}
	return r.members[k.first+choose(e.flow, r.seeds[s], k.n)]
}

// choose is ECMP: one of n, the same for every packet of a flow at a switch. The seed goes through the whole
// mix, so that the choices of switches with different seeds are independent: the flows that one switch has
// sent the same way spread evenly over the ports of the next.
func choose(flow uint32, seed uint64, n int32) int32 {
	hi, _ := bits.Mul64(mix(uint64(flow)^mix(seed)), uint64(n))
	return int32(hi)
}

// FlowHash returns the hash of a flow between two hosts, for Packet.FlowHash. The protocol is UDP.
func FlowHash(src, dst HostID, srcPort, dstPort uint16) uint64 {
	return mix(mix(uint64(uint32(src))<<32|uint64(uint32(dst))) ^ (uint64(srcPort)<<16 | uint64(dstPort)))
}

// mix is the output function of splitmix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of the input
// changes each bit of the result with a probability near one half.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
