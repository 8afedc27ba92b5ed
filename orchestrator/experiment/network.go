package experiment

import (
	"fmt"
	"net/netip"
	"slices"

	"weft/fabric"
	"weft/internal/splitmix"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/transport/wire"
	"weft/units"
)

// Network is the network of an experiment.
type Network struct {
	Graph  *topology.Graph
	Fabric fabric.Config   // its ports, queues and routes
	Subnet topology.Subnet // of its addresses
}

// fabric describes the network's ports and queues for the modelled fabric. addRoutes adds the
// routes, which are most of a large network's configuration. Port 2l is link l from A to B, port
// 2l+1 the opposite direction. A size in BDPs is of the port's rate and the base RTT of the
// network.
func (m *memory) fabric(l *lab.Lab) fabric.Config {
	g := m.g
	cfg := fabric.Config{Seed: l.Seed, Hosts: g.Hosts, Ports: make([]fabric.PortConfig, 0, g.Ports())}
	for i := range g.Links {
		k := &g.Links[i]
		cfg.Ports = append(cfg.Ports, m.port(topology.LinkID(i), k.A), m.port(topology.LinkID(i), k.B))
	}
	m.coordinate(&cfg)
	if l.Clocks.PeerToPeer {
		cfg.Stations = l.Clocks.Kind().Bridged
	}
	cfg.Switches = make([]fabric.SwitchConfig, g.Switches())
	for s := range cfg.Switches {
		id := topology.NodeID(g.Hosts + s)
		cfg.Switches[s] = fabric.SwitchConfig{Name: g.Nodes[id].Name, Buffer: m.of(id)}
	}
	return cfg
}

// addRoutes adds to cfg how switches choose ports.
func addRoutes(cfg *fabric.Config, l *lab.Lab, g *topology.Graph) {
	for s, routed := range switches(l, g, g.Routes()) {
		routed.Buffer = cfg.Switches[s].Buffer
		cfg.Switches[s] = routed
	}
	for i := range g.Links {
		aside := g.Aside(topology.LinkID(i))
		cfg.Ports[2*i].Aside, cfg.Ports[2*i+1].Aside = aside, aside
	}
}

// switches returns how each switch chooses ports by the given routes.
func switches(l *lab.Lab, g *topology.Graph, routes *topology.Routes) []fabric.SwitchConfig {
	var all []fabric.SwitchConfig
	var further [][]int32 // notifications are sent to switches
	if transport.FactsOf(l.Transport.Kind).Coordinated {
		further = g.ToSwitches()
	}
	for s := range g.Switches() {
		id := topology.NodeID(g.Hosts + s)
		sw := fabric.SwitchConfig{Name: g.Nodes[id].Name, Seed: switchSeed(l.Seed, s), Balance: balance(l),
			Route: routes.Row(id)}
		if further != nil {
			sw.Route = append(sw.Route, further[s]...)
		}
		for _, links := range routes.Groups(id) {
			ports := make([]int32, len(links))
			for i, k := range links {
				ports[i] = int32(g.Port(k, id))
			}
			sw.Groups = append(sw.Groups, ports)
		}
		sw.Aside = routes.Asides(id)
		all = append(all, sw)
	}
	return all
}

// balance returns how switches choose among equal paths.
func balance(l *lab.Lab) fabric.Balance {
	if transport.FactsOf(l.Transport.Kind).Coordinated {
		return fabric.CCM
	}
	return l.Queues.Balance()
}

// coordinate adds what switches need for coordinated congestion management.
func (m *memory) coordinate(cfg *fabric.Config) {
	if c := m.coord; c != nil {
		cfg.Port = wire.Port
		cfg.CCM = &fabric.CCMConfig{RTT: m.rtt, Every: c.Every, Refresh: c.Refresh, Strict: c.Strict, Loss: c.Loss,
			Spray: m.queues.Balance().Random()}
	}
}

// switchSeed returns the seed of a switch's ECMP hash. Independent hashes keep tiers from
// polarising.
func switchSeed(seed uint64, s int) uint64 {
	return (seed+splitmix.Gamma)*0xbf58476d1ce4e5b9 ^ uint64(s+1)*0x94d049bb133111eb
}

// NICRate returns the line rate of a host's NIC.
func (n *Network) NICRate(h topology.NodeID) units.Bandwidth {
	return n.Graph.Links[n.Graph.Uplink(h)].Rate
}

// path returns what the transport knows about the idle path from one host to another.
func (n *Network) path(src, dst transport.HostID) transport.Path {
	hops := n.Graph.Path(topology.NodeID(src), topology.NodeID(dst))
	return transport.Path{Propagation: n.Graph.Propagation(hops), Rates: n.Graph.Rates(hops)}
}

// Addrs returns the addresses of the hosts.
func (n *Network) Addrs() []netip.Addr {
	all := make([]netip.Addr, n.Graph.Hosts)
	for h := range all {
		all[h] = n.Subnet.HostAddr(topology.NodeID(h))
	}
	return all
}

// PortNames returns the names of the fabric's ports: "edge0->agg1" is the queue at edge0 towards
// agg1.
func (n *Network) PortNames() []string {
	names := make([]string, len(n.Fabric.Ports))
	for i, p := range n.Fabric.Ports {
		names[i] = n.Graph.Nodes[p.From].Name + "->" + n.Graph.Nodes[p.To].Name
	}
	return names
}

// named finds hosts by their names.
func (n *Network) named(names []string) ([]transport.HostID, error) {
	var found []transport.HostID
	for _, name := range names {
		h := slices.IndexFunc(n.Graph.Nodes[:n.Graph.Hosts], func(k topology.Node) bool { return k.Name == name })
		if h < 0 {
			return nil, fmt.Errorf("no host is named %q", name)
		}
		found = append(found, transport.HostID(h))
	}
	return found, nil
}
