package sim

import (
	"weft/fabric"
	"weft/internal/splitmix"
	"weft/units"
)

// fatTree returns a 3-tier fat-tree of k-port switches with k³/4 hosts (Al-Fares, SIGCOMM 2008)
// whose links all have the settings of p, with routes in closed form.
func fatTree(k int, p fabric.PortConfig) fabric.Config {
	half := k / 2
	hosts, edges, cores := k*half*half, k*half, half*half
	cfg := fabric.Config{Seed: 1, Hosts: hosts, Switches: make([]fabric.SwitchConfig, 2*edges+cores)}
	for s := range cfg.Switches {
		cfg.Switches[s].Seed = uint64(s) * splitmix.Gamma
	}
	port := func(from, to int) int32 {
		p.From, p.To = fabric.NodeID(from), fabric.NodeID(to)
		cfg.Ports = append(cfg.Ports, p)
		return int32(len(cfg.Ports) - 1)
	}
	// group adds a group of ports to switch s and returns its index.
	group := func(s int, ports ...int32) int32 {
		sw := &cfg.Switches[s]
		sw.Groups = append(sw.Groups, ports)
		return int32(len(sw.Groups) - 1)
	}
	pod, edge := func(h int) int { return h / cores }, func(h int) int { return h / half }
	up := make([][]int32, 2*edges)         // ports to the tier above
	down := make([][]int32, 2*edges+cores) // groups of the single port to each child
	for h := range hosts {
		port(h, hosts+edge(h))
		down[edge(h)] = append(down[edge(h)], group(edge(h), port(hosts+edge(h), h)))
	}
	for e := range edges {
		for j := range half {
			a := edges + e/half*half + j
			up[e] = append(up[e], port(hosts+e, hosts+a))
			down[a] = append(down[a], group(a, port(hosts+a, hosts+e)))
		}
	}
	for a := range edges {
		for m := range half {
			c := 2*edges + a%half*half + m
			up[edges+a] = append(up[edges+a], port(hosts+edges+a, hosts+c))
			down[c] = append(down[c], group(c, port(hosts+c, hosts+edges+a)))
		}
	}
	for s := range cfg.Switches {
		sw := &cfg.Switches[s]
		above := int32(-1)
		if s < 2*edges {
			above = group(s, up[s]...)
		}
		for h := range hosts {
			g := above
			switch {
			case s < edges && edge(h) == s:
				g = down[s][h%half]
			case s >= edges && s < 2*edges && pod(h) == (s-edges)/half:
				g = down[s][edge(h)%half]
			case s >= 2*edges:
				g = down[s][pod(h)]
			}
			sw.Route = append(sw.Route, g)
		}
	}
	return cfg
}

// fast is a 100 Gb/s link of 1 µs.
var fast = fabric.PortConfig{Link: fabric.Link{Rate: 100 * units.Gbps, Delay: units.Microsecond}, Buffer: 10 * units.MB}
