package run

import (
	"weft/fabric"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
	"weft/transport/cc/pc4"
	"weft/units"
)

// fabricConfig describes the graph's ports, queues and routes to the modelled fabric. Port 2l is link l from A to
// B, port 2l+1 the way back. A size that the lab gives in BDPs is of the port's rate and the base RTT of the
// network.
func fabricConfig(l *lab.Lab, g *topology.Graph) fabric.Config {
	rtt := g.BaseRTT(dataWire(l.Topology.MTU), ackWire)
	cfg := fabric.Config{Seed: l.Seed, Hosts: g.Hosts, Ports: make([]fabric.PortConfig, 0, g.Ports())}
	for i := range g.Links {
		k := &g.Links[i]
		p := fabric.PortConfig{From: fabric.NodeID(k.A), To: fabric.NodeID(k.B), Rate: k.Rate, Delay: k.Delay}
		bdp := k.Rate.BytesIn(rtt)
		p.Buffer = sizeOf(l.Queues.Buffer, bdp)
		if e := l.Queues.ECN; e != nil {
			p.ECN = fabric.ECNConfig{
				On: true, Kmin: sizeOf(e.Kmin, bdp), Kmax: sizeOf(e.Kmax, bdp), Pmax: e.Pmax, Ingress: e.Ingress,
			}
		}
		back := p
		back.From, back.To = p.To, p.From
		cfg.Ports = append(cfg.Ports, hostless(p, g), hostless(back, g))
	}
	routes := g.Routes()
	for s := range g.Switches() {
		id := topology.NodeID(g.Hosts + s)
		sw := fabric.SwitchConfig{Name: g.Nodes[id].Name, Seed: switchSeed(l.Seed, s), Route: routes.Row(id)}
		for _, links := range routes.Groups(id) {
			ports := make([]int32, len(links))
			for i, k := range links {
				ports[i] = int32(g.Port(k, id))
			}
			sw.Groups = append(sw.Groups, ports)
		}
		cfg.Switches = append(cfg.Switches, sw)
	}
	return cfg
}

// hostless takes the queue settings of switches off the port of a host: its NIC neither drops nor marks.
func hostless(p fabric.PortConfig, g *topology.Graph) fabric.PortConfig {
	if int(p.From) < g.Hosts {
		p.Buffer, p.ECN = 0, fabric.ECNConfig{}
	}
	return p
}

// sizeOf resolves a size against the bandwidth-delay product of a port.
func sizeOf(s lab.Size, bdp units.Bytes) units.Bytes {
	return s.Bytes + units.Bytes(s.BDP*float64(bdp))
}

// switchSeed keeps the ECMP hashes of switches independent, so that tiers do not polarise.
func switchSeed(seed uint64, s int) uint64 {
	return (seed+0x9e3779b97f4a7c15)*0xbf58476d1ce4e5b9 ^ uint64(s+1)*0x94d049bb133111eb
}

// nicRate is the line rate of a host's NIC.
func (x *Experiment) nicRate(h topology.NodeID) units.Bandwidth {
	return x.Graph.Links[x.Graph.Uplink(h)].Rate
}

// path is what the transport knows about the idle way from one host to another.
func (x *Experiment) path(src, dst transport.HostID) transport.Path {
	hops := x.Graph.Path(topology.NodeID(src), topology.NodeID(dst))
	return transport.Path{Propagation: x.Graph.Propagation(hops), Rates: x.Graph.Rates(hops)}
}

// pc4Params hands the lab's parameters of PC4 to the controller.
func pc4Params(p lab.PC4) pc4.Params {
	return pc4.Params{
		TargetQtime: p.TargetQtime, AdjustInterval: p.AdjustInterval, AI: p.AI, HAI: p.HAI,
		Beta: p.Beta, MaxMDF: p.MaxMDF, PacedBelow: p.PacedBelow, BaseRate: p.BaseRate,
		Initial: p.Initial, InitialWindow: p.InitialWindow, RTT: p.RTT, Epsilon: p.Epsilon,
	}
}
