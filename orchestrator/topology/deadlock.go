package topology

// Deadlock returns the Circle of a network under PFC. It returns nil without a search for kinds
// whose registration gives a reason: the search takes a minute in a fat-tree of 8192 hosts.
func (g *Graph) Deadlock() []int {
	if !g.searched {
		return nil
	}
	return g.Circle()
}

// Circle returns links, by the ports that send on them (Port), that packets on the routes of the
// graph could wait for in a cycle: packets on each wait for room on the next, and those on the
// last for the first. It returns nil if there is none, so that PFC cannot deadlock (Dally and
// Seitz, 1987: a cycle in the graph of dependencies between channels). Only paths that hosts use
// count, but all that a switch may choose.
func (g *Graph) Circle() []int {
	after := g.dependencies()
	state := make([]uint8, g.Ports()) // 1: on the current path, 2: known to be in no cycle
	var path []int
	var walk func(p int) []int
	walk = func(p int) []int {
		state[p] = 1
		path = append(path, p)
		for _, q := range after[p] {
			switch state[q] {
			case 1:
				for i := range path {
					if path[i] == q {
						return path[i:]
					}
				}
			case 0:
				if c := walk(q); c != nil {
					return c
				}
			}
		}
		path = path[:len(path)-1]
		state[p] = 2
		return nil
	}
	for p := range state {
		if state[p] == 0 {
			if c := walk(p); c != nil {
				return c
			}
		}
	}
	return nil
}

// dependencies lists, for each port, the ports that a packet it sent may have to wait for at the
// next switch.
func (g *Graph) dependencies() [][]int {
	after := make([][]int, g.Ports())
	known := map[[2]int]bool{}
	add := func(p, q int) {
		if k := [2]int{p, q}; !known[k] {
			known[k] = true
			after[p] = append(after[p], q)
		}
	}
	r := g.routes
	for i, home := range r.homes {
		reached := make([]bool, g.Switches())
		var queue []NodeID
		for h := range g.Hosts {
			at := g.Home(NodeID(h))
			if at == home || reached[int(at)-g.Hosts] {
				continue
			}
			reached[int(at)-g.Hosts] = true
			queue = append(queue, at)
		}
		for ; len(queue) > 0; queue = queue[1:] {
			at := queue[0]
			for _, l := range r.choices(i, int(at)-g.Hosts, true) {
				to := g.Links[l].Other(at)
				if to == home {
					continue
				}
				for _, m := range r.choices(i, int(to)-g.Hosts, !g.aside(l)) {
					add(g.Port(l, at), g.Port(m, to))
				}
				if !reached[int(to)-g.Hosts] {
					reached[int(to)-g.Hosts] = true
					queue = append(queue, to)
				}
			}
		}
	}
	return after
}

// choices returns the links on which a switch, counted from 0, may send towards a home, with
// detours if asked for.
func (r *Routes) choices(home, sw int, detours bool) []LinkID {
	i := home*r.switches + sw
	group := r.groups[sw][r.via[i]]
	if !detours || r.asides == nil || r.asides[i] < 0 {
		return group
	}
	return append(group[:len(group):len(group)], r.groups[sw][r.asides[i]]...)
}
