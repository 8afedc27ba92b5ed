package fabric

import "weft/internal/splitmix"

// Path returns the ports that a packet of a flow passes from one host to another, the first of them the NIC, in a network
// of which some ports are down (nil: none). ok is false when it does not get there, and where a switch on its way
// chooses a port for each packet.
func (c *Config) Path(src, dst HostID, flowHash uint64, down func(port int) bool) (ports []int, ok bool) {
	up := func(port int32) bool { return down == nil || !down(int(port)) }
	flow := uint32(splitmix.Mix(flowHash))
	at := int32(-1)
	for i := range c.Ports {
		if c.Ports[i].From == NodeID(src) {
			at = int32(i)
		}
	}
	for hops := 0; at >= 0 && up(at) && hops <= maxHops; hops++ {
		ports = append(ports, int(at))
		to := c.Ports[at].To
		if int(to) < c.Hosts {
			return ports, HostID(to) == dst
		}
		s := &c.Switches[int(to)-c.Hosts]
		g := s.Route[dst]
		if g < 0 {
			return nil, false
		}
		var live []int32
		for _, p := range s.Groups[g] {
			if up(p) {
				live = append(live, p)
			}
		}
		if len(live) == 0 || len(live) > 1 && (s.Balance == Spray || s.Balance == Adaptive) {
			return nil, false
		}
		at = live[choose(flow, splitmix.Mix(s.Seed), int32(len(live)))]
	}
	return nil, false
}

// Reach is where packets of a flow can come to.
type Reach struct {
	Ports   []int // that a packet of the flow may pass, the NIC's first
	Dead    []int // ports that are down and would have been the only next ones of a packet that is cut off
	Arrives bool  // at least some packets reach their destination
}

// Reach follows the packets of a flow that leave by port nic for host dst, in a network in which some ports are down (nil:
// none). Where a switch chooses a port for each packet it follows every choice; with anyPath it does so everywhere, for
// networks whose switches hash flows in a way that is not known here.
func (c *Config) Reach(nic int, dst HostID, flowHash uint64, anyPath bool, down func(port int) bool) Reach {
	w := walk{cfg: c, dst: dst, flow: uint32(splitmix.Mix(flowHash)), anyPath: anyPath, down: down, seen: map[int32]bool{}}
	w.follow([]int32{int32(nic)}, false, 0)
	return w.Reach
}

// walk is a Reach on its way.
type walk struct {
	Reach
	cfg     *Config
	dst     HostID
	flow    uint32
	anyPath bool
	down    func(int) bool
	seen    map[int32]bool
}

// follow goes on by the ports among which a switch chooses: by one, or by each.
func (w *walk) follow(ports []int32, each bool, seed uint64) {
	live := w.live(ports)
	if len(live) == 0 {
		for _, p := range ports {
			w.Dead = append(w.Dead, int(p))
		}
		return
	}
	if !each {
		live = live[choose(w.flow, seed, int32(len(live))):][:1]
	}
	for _, p := range live {
		if !w.seen[p] {
			w.seen[p] = true
			w.Ports = append(w.Ports, int(p))
			w.at(w.cfg.Ports[p].To, w.cfg.Ports[p].Aside)
		}
	}
}

// at goes on from a node. A packet that came by a detour takes no other.
func (w *walk) at(to NodeID, aside bool) {
	if int(to) < w.cfg.Hosts {
		w.Arrives = w.Arrives || HostID(to) == w.dst
		return
	}
	s := &w.cfg.Switches[int(to)-w.cfg.Hosts]
	g := s.Route[w.dst]
	if g < 0 {
		return
	}
	ports := s.Groups[g]
	if s.Balance.PerPacket() && s.Aside != nil && !aside && s.Aside[w.dst] >= 0 {
		ports = append(ports[:len(ports):len(ports)], s.Groups[s.Aside[w.dst]]...)
	}
	w.follow(ports, w.anyPath || s.Balance.PerPacket(), splitmix.Mix(s.Seed))
}

// live are the ports that are not down.
func (w *walk) live(ports []int32) []int32 {
	var live []int32
	for _, p := range ports {
		if w.down == nil || !w.down(int(p)) {
			live = append(live, p)
		}
	}
	return live
}
