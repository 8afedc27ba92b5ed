package experiment

import (
	"errors"

	"weft/host"
	"weft/orchestrator/lab"
	"weft/orchestrator/topology"
	"weft/transport"
)

// Experiment is a lab made concrete: the network and what every host does on it. It is pure data,
// the same for every engine, and nothing changes it once it is made.
type Experiment struct {
	Lab *lab.Lab // as it was checked; what it leaves open is worked out in the parts

	Network           // network.go
	Workload          // workload.go
	Transport         // transport.go
	Clocks    Clocks  // clocks.go
	Faults    Faults  // faults.go
	Measure   Measure // measure.go

	Plans []host.Plan // by host: what each does
}

// Build makes the experiment of a lab.
func Build(l *lab.Lab) (*Experiment, error) {
	g, err := NetworkOf(l)
	if err != nil {
		return nil, err
	}
	return BuildOn(l, g)
}

// BuildOn makes the experiment of a lab whose network is g.
func BuildOn(l *lab.Lab, g *topology.Graph) (*Experiment, error) {
	return made(compile(l, g, purpose{workload: true}))
}

// SketchOn makes the part of an experiment that checks examine, without connections and without
// what each rank does: those of a large all-to-all take seconds and hundreds of megabytes. g is the
// lab's network.
func SketchOn(l *lab.Lab, g *topology.Graph) (*Experiment, error) {
	return made(compile(l, g, purpose{workload: true, sketch: true}))
}

// ForDeployment makes the experiment of a lab that stays up in a subnet for programs of its users:
// without the lab's workload and faults.
func ForDeployment(l *lab.Lab, subnet topology.Subnet) (*Experiment, error) {
	if l.Engine.Kind == "sim" {
		return nil, l.Errorf("engine.kind", "the simulator deploys nothing; --engine emu deploys this lab")
	}
	g, err := NetworkOf(l)
	if err != nil {
		return nil, err
	}
	if err := Fits(l, g); err != nil { // and more than the subnet has addresses for
		return nil, err
	}
	return made(compile(l, g, purpose{subnet: subnet}))
}

// purpose is what an experiment is for.
type purpose struct {
	workload bool // the lab's workload and faults; without, its network stands and links may change by hand
	sketch   bool // it is only to be checked
	subnet   topology.Subnet
}

// compiler is an experiment while it is made.
type compiler struct {
	*Experiment
	purpose

	reach  reach                        // of the connections
	shared map[wireKey]transport.ConnID // of traces
}

// compile makes an experiment. It returns all errors at once, except those that follow from others.
func compile(l *lab.Lab, g *topology.Graph, p purpose) (*compiler, error) {
	if p.workload {
		if err := Runnable(l); err != nil {
			return nil, err
		}
	}
	cfg, slow, err := checkNetwork(l, g)
	if err != nil && !p.workload {
		return nil, err
	}
	x := &compiler{Experiment: &Experiment{Lab: l}, purpose: p, reach: newReach(g)}
	x.Network = Network{Graph: g, Fabric: cfg, Subnet: p.subnet}
	x.Fabric.Disturbable = !p.workload && l.Queues.PFC == nil // by weft link
	if !p.sketch || l.Engine.OnKernel() {
		addRoutes(&x.Fabric, l, g)
	}
	x.addHosts()
	x.Measure.Watched = -1
	if p.workload {
		err = errors.Join(err, checkCycles(l, g), x.addJob(slow))
	} else {
		g.Number(p.subnet)
		x.BaseRTT, x.Links = g.BaseRTT(dataWire(l.Topology.MTU), ackWire), g.Extent().Hops
		err = x.addStandingClocks()
	}
	if err == nil {
		err = x.checkKernel()
	}
	if err != nil {
		return nil, err
	}
	return x, nil
}

// made returns the experiment of a compiler.
func made(x *compiler, err error) (*Experiment, error) {
	if err != nil {
		return nil, err
	}
	return x.Experiment, nil
}

// addJob adds what a run has and a deployed network does not: the workload, the clocks that it
// begins by, and faults. slow is that of checkNetwork: what follows from connections is then
// unknown.
func (x *compiler) addJob(slow bool) error {
	x.Faults.All = x.Lab.Faults
	failed := x.addWorkload()
	x.Links = x.reach.switches + 1
	if x.BaseRTT = x.reach.rtt; x.BaseRTT == 0 {
		x.BaseRTT = x.Graph.BaseRTT(dataWire(x.Lab.Topology.MTU), ackWire)
	}
	sound := failed == nil && !slow
	errs := []error{failed, x.addPrograms(), x.addClocks(sound)}
	x.tune()
	if sound {
		errs = append(errs, x.checkTransport())
	}
	return errors.Join(append(errs, x.addFaults(), x.addMeasure())...)
}

// addHosts adds a plan for each host, with nothing to do.
func (x *compiler) addHosts() {
	x.Plans = make([]host.Plan, x.Graph.Hosts)
	for h := range x.Plans {
		x.Plans[h] = host.Plan{
			Host: transport.HostID(h),
			Name: x.Graph.Nodes[h].Name,
			Seed: x.Lab.Seed,
			Endpoint: transport.Config{
				Host:     transport.HostID(h),
				MTU:      x.Lab.Topology.MTU,
				LineRate: x.NICRate(topology.NodeID(h)),
				Seed:     x.Lab.Seed,
				Switches: transport.HostID(x.Graph.Hosts),
			},
		}
	}
}
