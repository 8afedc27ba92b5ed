package fabric

// Way returns the ports that a packet of a flow passes from one host to another, the first of them the NIC, in a network
// of which some ports are down (nil: none). ok is false when it does not get there, and where a switch on its way
// chooses a port for each packet.
func (c *Config) Way(src, dst HostID, flowHash uint64, down func(port int) bool) (ports []int, ok bool) {
	up := func(port int32) bool { return down == nil || !down(int(port)) }
	flow := uint32(mix(flowHash))
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
		at = live[choose(flow, mix(s.Seed), int32(len(live)))]
	}
	return nil, false
}
