package topology

// Deadlock returns the Circle of a network under PFC. It is nil for kinds that say in their registration why they need no search, which
// takes a minute in a fat-tree of 8192 hosts.
func (g *Graph) Deadlock() []int {
	if !g.searched {
		return nil
	}
	return g.Circle()
}

// Circle returns links, by the ports that send on them (Port), which packets on the routes of the graph could wait for in a circle:
// those of the first wait for room on the second, and so on, and those of the last for the first. It is nil where there is none, so
// that PFC cannot deadlock (Dally and Seitz, 1987: a cycle in the graph of dependencies between channels). Only ways that
// hosts use count, and all that a switch may choose.
func (g *Graph) Circle() []int {
	after := g.dependencies()
	state := make([]uint8, g.Ports()) // 1: on the present way, 2: known to be in no circle
	var way []int
	var walk func(p int) []int
	walk = func(p int) []int {
		state[p] = 1
		way = append(way, p)
		for _, q := range after[p] {
			switch state[q] {
			case 1:
				for i := range way {
					if way[i] == q {
						return way[i:]
					}
				}
			case 0:
				if c := walk(q); c != nil {
					return c
				}
			}
		}
		way = way[:len(way)-1]
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

// dependencies lists, for each port, those that packets which it sent may have to wait for at the next switch.
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
			for _, l := range r.ways(i, int(at)-g.Hosts, true) {
				to := g.Links[l].Other(at)
				if to == home {
					continue
				}
				for _, m := range r.ways(i, int(to)-g.Hosts, !g.aside(l)) {
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

// ways are the links by which a switch, counted from 0, may send towards a home; with the detours.
func (r *Routes) ways(home, sw int, detours bool) []LinkID {
	i := home*r.switches + sw
	group := r.groups[sw][r.via[i]]
	if !detours || r.asides == nil || r.asides[i] < 0 {
		return group
	}
	return append(group[:len(group):len(group)], r.groups[sw][r.asides[i]]...)
}
