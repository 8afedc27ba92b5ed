package fabric

import "weft/internal/splitmix"

// Path returns the ports that a packet of a flow passes from host src to host dst, beginning with
// the NIC, in a network with some ports down (nil: none). ok is false if the packet does not
// arrive, or if a switch on the path chooses a port for each packet.
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

// Reach is where packets of a flow can go.
type Reach struct {
	Ports   []int // ports that a packet of the flow may pass, beginning with the NIC
	Dead    []int // ports that are down and were the only choices of a packet that is cut off
	Arrives bool  // at least some packets reach their destination
}

// Reach follows the packets of a flow that leave by port nic for host dst, in a network with some
// ports down (nil: none). Where a switch chooses a port for each packet, it follows every choice.
// With anyPath it does so at every switch, for networks whose switches hash flows by a function
// that this package does not know.
func (c *Config) Reach(nic int, dst HostID, flowHash uint64, anyPath bool, down func(port int) bool) Reach {
	flow := uint32(splitmix.Mix(flowHash))
	w := walk{cfg: c, dst: dst, flow: flow, anyPath: anyPath, down: down, seen: map[int32]bool{}}
	w.follow([]int32{int32(nic)}, false, 0)
	return w.Reach
}

// walk is a Reach in progress.
type walk struct {
	Reach
	cfg     *Config
	dst     HostID
	flow    uint32
	anyPath bool
	down    func(int) bool
	seen    map[int32]bool // ports that were followed
}

// follow continues by one of the ports among which a switch chooses, or by each.
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

// at continues from a node. aside: the packet has taken a detour, and takes no other.
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

// live returns the ports that are not down.
func (w *walk) live(ports []int32) []int32 {
	var live []int32
	for _, p := range ports {
		if w.down == nil || !w.down(int(p)) {
			live = append(live, p)
		}
	}
	return live
}
