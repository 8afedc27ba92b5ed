package run

import (
	"cmp"
	"context"
	"fmt"

	"weft/host"
	"weft/orchestrator/emulate"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/realtime"
	"weft/transport"
	"weft/transport/wire"
)

// Stand is the network of a lab as it is deployed: to be used by hand, without the lab's workload and faults.
type Stand struct {
	Experiment *Experiment
	Emulation  emulate.Experiment
	Dilation   float64
	Why        string // how the dilation was chosen
}

// Standing makes the network of a lab that is to stay up. The lab needs no workload; if it has one, the dilation is one
// at which this machine could carry it.
func Standing(ctx context.Context, l *lab.Lab, o Options) (*Stand, error) {
	x, err := stand(l, o.Subnet)
	if err != nil {
		return nil, err
	}
	where, err := places(ctx, l)
	if err != nil {
		return nil, fmt.Errorf("this machine cannot emulate: %w", err)
	}
	s := &Stand{Experiment: x, Dilation: cmp.Or(l.Engine.Dilation, o.Dilation), Why: "asked for"}
	if s.Dilation == 0 {
		load, err := standingLoad(l, x)
		if err != nil {
			return nil, err
		}
		if s.Dilation, s.Why, err = where.dilation(ctx, x, load, o); err != nil {
			return nil, err
		}
	}
	s.Emulation = x.emulation(s.Dilation, where.processes(o))
	if k := s.Emulation.Kernel; k != nil {
		k.Slower = x.slower(where, s.Dilation)
		k.Slowed = func(r realtime.Ready) { s.Dilation, s.Why = r.Dilation, slowed(r) }
	}
	s.Emulation.SampleQueues = 0 // nobody keeps samples, and a network that only stands has to cost nothing
	return s, nil
}

// Deployable returns the error with which Standing refuses a lab on every machine.
func Deployable(l *lab.Lab) error {
	x, err := stand(l, 0)
	if err == nil && l.Engine.Dilation == 0 {
		_, err = standingLoad(l, x)
	}
	return err
}

// stand makes the network of a lab that is to stay up, in a subnet.
func stand(l *lab.Lab, subnet topology.Subnet) (*Experiment, error) {
	g, err := graph(l)
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
	if err := fits(l, g); err != nil { // and more than the subnet has addresses for
		return nil, err
	}
	addRoutes(&cfg, l, g)
	g.Number(subnet)
	x := &Experiment{Lab: l, Graph: g, Fabric: cfg, watched: -1, subnet: subnet}
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
				LineRate: x.nicRate(topology.NodeID(h)),
				Seed:     x.Lab.Seed,
				Switches: transport.HostID(x.Graph.Hosts),
			},
		}
	}
}

// standingLoad is how many data packets per second of lab time the network should carry: those of the workload, and
// without one what one host can send. Ours: what people do by hand.
func standingLoad(l *lab.Lab, x *Experiment) (float64, error) {
	if len(l.Workload) > 0 {
		y, err := Build(l)
		if err != nil {
			return 0, err
		}
		return emulate.Load(y.Plans), nil
	}
	most := 0.0
	for h := range x.Plans {
		wire := x.Plans[h].Endpoint.MTU + wire.DataSize + wire.Overhead
		most = max(most, float64(x.Plans[h].Endpoint.LineRate)/float64(8*wire))
	}
	return most, nil
}
