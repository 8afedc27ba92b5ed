package experiment

import (
	"weft/host"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
)

// Stand makes the network of a lab that is to stay up, in a subnet.
func Stand(l *lab.Lab, subnet topology.Subnet) (*Experiment, error) {
	g, err := NetworkOf(l)
	if err != nil {
		return nil, err
	}
	cfg, _, err := checkNetwork(l, g)
	if err != nil {
		return nil, err
	}
	if l.Engine.Kind == "sim" {
		return nil, l.Errorf("engine.kind", "the simulator deploys nothing; --engine emu deploys this lab")
	}
	if err := Fits(l, g); err != nil { // and more than the subnet has addresses for
		return nil, err
	}
	addRoutes(&cfg, l, g)
	g.Number(subnet)
	x := &Experiment{Lab: l, Graph: g, Fabric: cfg, Watched: -1, Subnet: subnet}
	x.Fabric.Disturbable = l.Queues.PFC == nil // by weft link
	x.addHosts()
	x.BaseRTT = g.BaseRTT(dataWire(l.Topology.MTU), ackWire)
	return x, x.checkKernel()
}

// addHosts adds a plan for each host, with nothing to do.
func (x *Experiment) addHosts() {
	x.Plans = make([]host.Plan, x.Graph.Hosts)
	for h := range x.Plans {
		x.Plans[h] = host.Plan{
			Host: transport.HostID(h),
			Name: x.Graph.Nodes[h].Name,
			Seed: x.Lab.Seed,
			Endpoint: transport.Config{
				Host:     transport.HostID(h),
				MTU:      x.Lab.Topology.MTU,
				LineRate: x.NicRate(topology.NodeID(h)),
				Seed:     x.Lab.Seed,
				Switches: transport.HostID(x.Graph.Hosts),
			},
		}
	}
}
